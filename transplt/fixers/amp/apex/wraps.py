"""Wrappers that a model gets behind amp.initialize: where they stand, and whether they can move there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from transplt.fixers.amp.apex.card import MOVES, core
from transplt.flow.callees import DATA_PARALLEL
from transplt.program.program import File, Function, Program, Variable, enclosing_function
from transplt.rules.torch_callables import full_names
from transplt.syntax.nodes import arguments_of, following, inner_nodes
from transplt.syntax.scan import FUNCTIONS, parent, statement

#: What a model goes through in front of training that amp.initialize has to come before.
WRAPPERS = full_names("wraps")


def kind_of(program: Program, file: File, call: ast.Call) -> str:
    """The wrapper that a call makes, that of which its class is derived; empty for anything else."""
    full, made = file.names.qualified(call.func) or "", program.callee(file, call)
    for _ in range(4):
        if full in WRAPPERS or not isinstance(made, ast.ClassDef) or not made.bases:
            break
        owner, base = program.owner[made], made.bases[0]
        full, made = owner.names.qualified(base) or "", program.definition(owner, base)
    return full if full in WRAPPERS else ""


def wraps_model(program: Program, file: File, call: ast.Call, slot: Variable) -> bool:
    """True for `DistributedDataParallel(model, ...)` and the like."""
    if not kind_of(program, file, call):
        return False
    given = arguments_of(call)
    return any(program.slot(file, item) == slot for item in given if isinstance(item, (ast.Name, ast.Attribute)))


def wrapped_elsewhere(
    program: Program, own: File, slot: Variable, function: Function | None
) -> tuple[File, ast.expr] | None:
    """A wrapper around the model, made in another function before the model comes to the optimizer."""
    pending, seen = [slot], set[Variable]()
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        for value in program.values.get(at, ()):
            node = value.node
            if isinstance(node, ast.Call):
                outside = value.file is not own or enclosing_function(node) is not function
                if outside and is_wrapper(program, value.file, node):
                    return value.file, node
            elif isinstance(node, (ast.Name, ast.Attribute)) and value.index is None:
                above = program.slot(value.file, node)
                if above is not None:
                    pending.append(above)
    return None


def is_wrapper(program: Program, file: File, node: ast.expr, depth: int = 0, kinds: Collection[str] = WRAPPERS) -> bool:
    """True for a call that makes a wrapper, by itself or by a function of the program."""
    while isinstance(node, ast.Call):
        if kind_of(program, file, node) in kinds:
            return True
        callee = program.callee(file, node)
        if isinstance(callee, FUNCTIONS):
            owner = program.owner[callee]
            results = program.returns(callee) if depth < 4 else ()
            return any(is_wrapper(program, owner, item, depth + 1, kinds) for item in results)
        if not isinstance(node.func, ast.Attribute):
            return False
        node = node.func.value
    return False


def is_data_parallel(program: Program, file: File, item: ast.stmt | ast.expr) -> bool:
    """True for code that makes DataParallel and no other wrapper: it holds the model in `module`, and changes nothing
    of it when it is made."""
    calls = list(inner_nodes(item, ast.Call))
    kinds = [kind for kind in (DATA_PARALLEL, WRAPPERS - DATA_PARALLEL) for call in calls
             if is_wrapper(program, file, call, kinds=kind)]  # fmt: skip
    return bool(kinds) and all(kind is DATA_PARALLEL for kind in kinds)


def movable(program: Program, file: File, block: list[ast.stmt], index: int, last: int) -> bool:
    """True for `model = DistributedDataParallel(model, ...)`, also under an `if`, on lines of its own, when all that
    follows up to the optimizer asks the model for its parameters only."""
    item = block[index]
    start, end = file.source.extent(item)
    if b"cuda" in file.source.utf8[start:end]:
        return False  # other codemods have something to say there
    slots = {_wrapped_by(program, file, inner) for inner in _leaves(item)}
    if len(slots) != 1 or None in slots:
        return False
    if isinstance(item, ast.If) and any(program.slot(file, node) in slots for node in _names(item.test)):
        return False
    for other in block[index + 1 : last + 1]:
        for node in _names(other):
            above = parent(node)
            if program.slot(file, node) in slots and getattr(above, "attr", "") != "parameters":
                return False
    return True


def deferrable(program: Program, file: File, item: ast.stmt, rest: list[ast.stmt]) -> bool:
    """True for `model = DistributedDataParallel(model, name=...)`, also with `.cuda()` behind, in a branch that does
    more, when what may run after it (`rest` are the statements behind that branch) asks the model for its parameters
    or moves it only: the wrapper can be kept in a variable, and put around the model later."""
    call = wrapper_of(item)
    if call is None or file.names.qualified(call.func) not in WRAPPERS - {"torch.compile"}:
        return False
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred) or any(each.arg is None for each in call.keywords):
        return False
    slot = program.slot(file, item.targets[0]) if isinstance(item, ast.Assign) else None
    if slot is None or program.slot(file, call.args[0]) != slot:
        return False
    for other in [*_run_later(item, rest[0]), *rest[1:]]:
        for node in _names(other):
            attribute = getattr(parent(node), "attr", "")
            if program.slot(file, node) == slot and attribute not in ("parameters", *MOVES):
                return False
    return True


def wrapper_of(item: ast.stmt) -> ast.Call | None:
    """The call of `model = Wrapper(model)`, also of `model = Wrapper(model).cuda()`."""
    if not isinstance(item, ast.Assign) or len(item.targets) != 1:
        return None
    node = core(item.value)
    return node if isinstance(node, ast.Call) else None


def _run_later(item: ast.stmt, top: ast.stmt) -> Iterator[ast.stmt]:
    """The statements behind one in its block, and in those around it, inside of a statement that holds them all."""
    while item is not top:
        yield from following(item)
        item = statement(parent(item))


def _leaves(item: ast.stmt) -> list[ast.stmt]:
    if not isinstance(item, ast.If):
        return [item]
    return [leaf for inner in (*item.body, *item.orelse) for leaf in _leaves(inner)]


def _names(node: ast.AST) -> list[ast.expr]:
    return [at for at in ast.walk(node) if isinstance(at, (ast.Name, ast.Attribute))]


def _wrapped_by(program: Program, file: File, item: ast.stmt) -> Variable | None:
    """The variable of `model = DistributedDataParallel(model, ...)`."""
    if not isinstance(item, ast.Assign) or len(item.targets) != 1 or not isinstance(item.value, ast.Call):
        return None
    call = item.value
    if file.names.qualified(call.func) not in WRAPPERS - {"torch.compile"} or not call.args:
        return None
    slot = program.slot(file, item.targets[0])
    return slot if slot is not None and program.slot(file, call.args[0]) == slot else None
