"""Where a model would be wrapped in DistributedDataParallel: behind all that sets it up, in front of what trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.flow.callees import DATA_PARALLEL
from transplt.program.cards import goes_to_card
from transplt.program.loops import lifted
from transplt.program.models import Models
from transplt.program.program import File, Program, Variable, enclosing_function, stores_of, text_of
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import begins, block_of, call_of, ends, inner_nodes, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent, statement

_PARTS = frozenset({"apply", "load_state_dict", "requires_grad_"})


@dataclass(frozen=True, slots=True)
class Wrap:
    """Where a model is wrapped: after a statement, under the name it has there. `parallel` are DataParallel calls.

    `in_place`: one DataParallel becomes the wrapper where it stands, and what was asked of it is asked of the wrapper.
    `placed`: the program itself has put the model there on the device that it chose, which may be the CPU.
    """

    file: File
    origin: Variable
    after: ast.stmt
    name: str
    parallel: tuple[ast.Call, ...]
    in_place: bool = False
    placed: bool = False


def find_wrap(models: Models, origin: Variable) -> Wrap | None:
    """The place after the last statement that sets a model up, in the block in which it is made."""
    program = models.program
    stores = stores_of(program, origin)
    if not stores:
        return None
    file = stores[0][0]
    stores = [item for item in stores if item[0] is file]
    function = enclosing_function(stores[0][1])
    stores = [item for item in stores if enclosing_function(item[1]) is function]
    setups = [node for _, node in stores]
    same = {origin, *_other_names(program, origin)}
    for node in names_and_attributes(file):
        if program.slot(file, node) in same and enclosing_function(node) is function and _sets_up(file, node):
            setups.append(node)
    block = block_of(statement(stores[0][1]))
    while any(lifted(statement(node), block) is None for _, node in stores):
        above = parent(block[0])
        if not isinstance(above, ast.stmt) or isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            return None
        block = block_of(above)
    trains = models.training.first_in(file, block)
    places = [index for node in setups if (index := lifted(statement(node), block)) is not None and index < trains]
    if not places:
        return None
    parallel = tuple(_data_parallel(program, file, origin))
    name = text_of(file, stores[0][1])
    if len(parallel) == 1 and _stays_in(block, parallel[0]):
        placed = _is_placed(file, setups, parallel[0])
        return Wrap(file, origin, statement(parallel[0]), name, parallel, in_place=True, placed=placed)
    return Wrap(file, origin, block[max(places)], name, parallel, placed=_is_placed(file, setups))


def _is_placed(file: File, setups: list[ast.expr], parallel: ast.Call | None = None) -> bool:
    """Whether a name that sets a model up moves it, in front of a call of DataParallel or in what that is given."""
    if parallel is not None:
        setups = [node for node in setups if ends(statement(node)) <= begins(parallel)]
        if _chain_moves(file, parallel.args[0]):
            return True
    return any(_is_moved(file, node) for node in setups)


def _is_moved(file: File, node: ast.expr) -> bool:
    """True for the name of a whole model in `model.to(device)`, and in `model = Net().to(device).train()`."""
    if isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
        call = call_of(parent(node))
        return call is not None and goes_to_card(file.names, call)
    match statement(node):
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _chain_moves(file, value)
    return False


def _chain_moves(file: File, value: ast.expr) -> bool:
    """Whether one of the methods that are called one after the other moves what they belong to."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if goes_to_card(file.names, value):
            return True
        value = value.func.value
    return False


def _data_parallel(program: Program, file: File, origin: Variable) -> Iterator[ast.Call]:
    """The calls of DataParallel whose result a variable is given."""
    for call in file.scan.calls:
        if file.names.qualified(call.func) in DATA_PARALLEL:
            stored = statement(call)
            targets = stored.targets if isinstance(stored, ast.Assign) else []
            if any(program.slot(file, target) == origin for target in targets):
                yield call


def _stays_in(block: list[ast.stmt], call: ast.Call) -> bool:
    """True for a call of DataParallel that becomes the wrapper where it stands: in the block, or in one that runs on
    every card. Under another name, or with more to set up below, it is not clear which of them is trained.
    """
    stored = statement(call)
    if not call.args or isinstance(call.args[0], ast.Starred):
        return False
    if stored in block:
        return True
    match stored, parent(stored):
        case ast.Assign(targets=[target, *_]), ast.If() as above if above in block and stored in above.body:
            return _asks_for_cards(above.test) and ast.unparse(target) == ast.unparse(call.args[0])
    return False


def _other_names(program: Program, origin: Variable) -> Iterator[Variable]:
    """`net = ssd_net`, `net = DataParallel(ssd_net)`: what is done to the one is done to the other."""
    for value in program.values.get(origin, ()):
        node = value.node
        if isinstance(node, ast.Call) and value.file.names.qualified(node.func) in DATA_PARALLEL and node.args:
            node = node.args[0]
        slot = program.slot(value.file, node)
        if slot is not None:
            yield slot


def _asks_for_cards(test: ast.expr) -> bool:
    """True for `device == "cuda"`, `torch.cuda.is_available()`, `args.cuda`: so on every card, one or several."""
    match test:
        case ast.Compare(ops=[ast.Eq()], comparators=[device]):
            return (string_of(device) or "").startswith(("cuda", "npu"))
        case ast.Call(func=func):
            return last_name(func) == "is_available"
    return last_name(test).lower() in ("cuda", "use_cuda", "gpu", "use_gpu", "on_gpu", "npu", "use_npu")


def part_at(node: ast.expr) -> ast.expr:
    """The part of a model that is asked for or assigned: `model.body.head[1]` at `model`."""
    while isinstance(outer := parent(node), (ast.Attribute, ast.Subscript)) and outer.value is node:
        node = outer
    return node


def _sets_up(file: File, node: ast.expr) -> bool:
    """True for `model.cuda()`, `model.head = Linear(...)` and the like, and where the model goes to apex's
    amp.initialize."""
    above = parent(node)
    if isinstance(above, (ast.Attribute, ast.Subscript)):
        part = part_at(node)  # or of a part of it: model.head.apply(init)
        known = names_of(MODULE, "alters") if part is above else _PARTS
        attribute = part.attr if isinstance(part, ast.Attribute) else ""
        return isinstance(getattr(part, "ctx", None), ast.Store) or (attribute in known and call_of(part) is not None)
    call = parent(above) if isinstance(above, (ast.keyword, ast.List)) else above
    return isinstance(call, ast.Call) and (file.names.qualified(call.func) or "").endswith("amp.initialize")


def early_uses(models: Models, wrap: Wrap) -> list[ast.Call]:
    """Calls above the place where a model is wrapped, of functions that use it: what they see is not wrapped yet."""
    program, found = models.program, []
    for file, call in ((wrap.file, call) for call in wrap.file.scan.calls):
        callee = program.callee(file, call)
        same = enclosing_function(call) is enclosing_function(wrap.after)
        if not isinstance(callee, FUNCTIONS) or not same or not before_wrap(file, call, wrap):
            continue
        owner = program.owner[callee]
        uses = [node for node in ast.walk(callee) if isinstance(node, (ast.Name, ast.Attribute))]
        if any(program.slot(owner, node) == wrap.origin and isinstance(node.ctx, ast.Load) for node in uses):
            found.append(call)
    return found


def buffers_apart(models: Models, origin: Variable) -> bool:
    """True when a model with buffers that training writes runs more than once in a step, as discriminators do."""
    if not any(b"BatchNorm" in other.source.utf8 for other in models.program.files):
        return False
    return any(
        sum(models.origin(at, call.func) == origin for call in inner_nodes(loop, ast.Call)) > 1
        for at, loop, _ in models.training.loops
    )


def may_have_buffers(models: Models, origin: Variable) -> bool:
    """True for a model with buffers, as a batch norm has, or of a class that is not in sight."""
    program = models.program
    if any(word in file.source.utf8 for file in program.files for word in (b"register_buffer", b"Norm")):
        return True
    made = [value for value in program.values.get(origin, ()) if isinstance(value.node, ast.Call)]
    return any(
        program.callee(value.file, call) is None
        and not (value.file.names.qualified(call.func) or "torch.").startswith("torch.")
        for value in made
        for call in inner_nodes(value.node, ast.Call)
    )


def before_wrap(file: File, node: ast.AST, wrap: Wrap) -> bool:
    """True for code that runs before the model is wrapped: above that line in the same function."""
    if file is not wrap.file or enclosing_function(node) is not enclosing_function(wrap.after):
        return False
    return begins(node) < ends(wrap.after)
