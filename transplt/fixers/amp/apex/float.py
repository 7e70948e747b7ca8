"""What runs in float32 in a program under apex: sigmoids in front of binary_cross_entropy, and gradient penalties.

O1 refuses binary_cross_entropy of half precision alone (`err_if_any_half` of apex): what a sigmoid makes of float32 may
go into it. Under `amp.disable_casts()` a penalty is worked out in float32 by weights that O1 leaves in float32, so that
its derivatives know no loss scale and need none. Where this cannot be seen for certain the program is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from transplt.edits.trees.expressions import method_called
from transplt.edits.writer import Writer
from transplt.fixers.amp.apex.card import MOVES, core
from transplt.fixers.amp.apex.checks import check_lines
from transplt.fixers.amp.apex.place import Refused
from transplt.fixers.amp.float_only import LOSSES, losses_called
from transplt.fixers.amp.penalties import Penalty
from transplt.fixers.amp.precision import needs_digits
from transplt.fixers.amp.reading import networks, runs_network
from transplt.fixers.amp.sigmoids import PARALLEL, SAME, Float32, sigmoids_of, write_sigmoids
from transplt.fixers.amp.training_units import Unit, units_of
from transplt.program.program import File, Program, enclosing_function
from transplt.program.variable_values import uses
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import attribute_of, begins, by_place, call_of, ends, last_name, of_kind
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_CODE = "NPU747"
_LOGITS = "return logits from the network (no final sigmoid) and use BCEWithLogitsLoss, then run transplt again"
_DIGITS = (
    "keep this training in float32, or compute the sensitive part from .float() outputs in `with amp.disable_casts():`"
)
_TARGET = "binary_cross_entropy gets its target in float32, too"
_PENALTY = "gradients that enter the loss are computed in float32"


@dataclass(slots=True)
class InFloat32:
    """What of a program stays in float32: `targets` may be half precision where binary_cross_entropy gets them."""

    sigmoids: list[tuple[File, Float32]] = field(default_factory=list)
    targets: list[tuple[File, ast.expr]] = field(default_factory=list)
    penalties: list[tuple[File, Penalty]] = field(default_factory=list)


def read_float32(program: Program, level: str) -> InFloat32:
    """What has to run in float32; raises Refused where that cannot be written."""
    found = InFloat32()
    _losses(program, level, found)
    units = [unit for file in program.files if b".backward(" in file.source.utf8 for unit in units_of(program, file)]
    _penalties(program, level, found, units)
    for unit in units if level == "O1" else ():
        for region in unit.regions:
            if (trouble := needs_digits(program, unit.file, region)) is not None:
                raise Refused(unit.file, trouble[0] or unit.first, trouble[1], _DIGITS)
    return found


# --- binary_cross_entropy ---------------------------------------------------------------------------------------------


def _losses(program: Program, level: str, found: InFloat32) -> None:
    network = _sigmoid_of_a_network(program)
    if level == "O2" and not network:
        return  # what comes out of the model is float32
    losses: dict[int, tuple[File, list[ast.Call]]] = {}
    made: dict[ast.Call, File] = {}
    called: set[ast.Call] = set()
    for file in program.files:
        for call in by_place(file.scan.calls):
            if file.names.qualified(call.func) in LOSSES:
                made[call] = file
            if (objects := losses_called(program, file, call)) is not None:
                losses.setdefault(id(file), (file, []))[1].append(call)
                called.update(objects)
    unseen = [(file, call) for call, file in made.items() if call not in called and _is_used(program, file, call)]
    where = unseen[0] if unseen else None
    for file, calls in losses.values():
        traced = sigmoids_of(program, file, calls)
        if traced is None or (level == "O2" and not _ends_the_model(file, traced)):
            where = where or (file, calls[0])
            break
        found.sigmoids.append((file, traced))
        targets = [call.args[1] for call in calls if not isinstance(call.args[1], ast.Starred)]
        found.targets += [(file, node) for node in targets if level == "O1" and _may_be_half(program, file, node)]
    if where is not None:
        why = "under opt_level O1, binary_cross_entropy only works after a sigmoid of the same file, in float32"
        if level == "O2":
            why = f"binary_cross_entropy gets a sigmoid of the model ({network}) that was rounded to half precision"
        raise Refused(*where, why, _LOGITS)


def _is_used(program: Program, file: File, made: ast.Call) -> bool:
    """False for a loss that the program makes and perhaps moves, and nothing more."""
    stored = statement(made)
    slot = program.slot(file, stored.targets[0]) if isinstance(stored, ast.Assign) and stored.value is made else None
    reads = uses(program, {slot}) if slot is not None else []
    return slot is None or any(getattr(parent(node), "attr", "") not in MOVES for _, node in reads)


def _sigmoid_of_a_network(program: Program) -> str:
    """Where a model of the program has a sigmoid, which would run in half precision; empty when none has."""
    for file in program.files:
        for call in by_place(file.scan.calls):
            last = last_name(call.func)
            members = [item for at in of_kind(ast.ClassDef, chain(call)) for item in at.body]
            inside = any(isinstance(item, FUNCTIONS) and item.name == "forward" for item in members)
            if last == "Sigmoid" or (inside and last in ("sigmoid", "sigmoid_")):
                return f"{file.path}:{call.lineno}"
    return ""


def _may_be_half(program: Program, file: File, node: ast.expr) -> bool:
    """False for a target that is surely data: no network runs for it, as far as its values can be followed."""
    pending: list[tuple[File, ast.expr]] = [(file, node)]
    seen: set[int] = set()
    while pending:
        at, value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > 100:
            return True
        known = networks(at)
        for inner in ast.walk(value):
            if isinstance(inner, ast.Call) and runs_network(program, at, inner, known):
                return True
            if isinstance(inner, (ast.Name, ast.Attribute)) and isinstance(inner.ctx, ast.Load):
                slot = program.slot(at, inner)
                values = program.values.get(slot, ()) if slot is not None else ()
                pending += [(each.file, each.node) for each in values]
    return False


def _ends_the_model(file: File, traced: Float32) -> bool:
    """True when what the sigmoids give leaves their model as it is: with O2 no weight of float16 gets the float32."""
    if not all(_leaves(file, call, 3) for call in traced.calls.values()):
        return False
    for call in traced.layers.values():
        above = parent(call)
        last = isinstance(above, ast.Call) and above.args[-1] is call  # of a Sequential
        stored = statement(call)
        if not isinstance(stored, ast.Assign) or len(stored.targets) != 1:
            return False
        made = core(stored.value)
        if made is not call and not (last and made is above):
            return False
        if not _run_last(file, stored.targets[0]):
            return False
    return True


def _run_last(file: File, target: ast.expr) -> bool:
    """True for a layer (`self.main`) of a class whose calls all leave the model, and for a network of the script."""
    if isinstance(target, ast.Name):
        return enclosing_function(target) is None
    if not isinstance(target, ast.Attribute):
        return False
    cls = next(of_kind(ast.ClassDef, chain(target)), None)
    reads = [
        node
        for node in file.scan.attributes.get(target.attr, ())
        if isinstance(node.ctx, ast.Load) and (getattr(node.value, "id", "") != "self" or cls in chain(node))
    ]
    for node in reads:
        match parent(node):
            case ast.Call(func=of, args=[first, *_]) as run if first is node and file.names.qualified(of) in PARALLEL:
                pass  # `data_parallel(self.main, x)`
            case ast.Call(func=func) as run if func is node:
                pass
            case _:
                return False
        if not _leaves(file, run, 3):
            return False
    return bool(reads)


def _leaves(file: File, node: ast.expr, depth: int) -> bool:
    """True when a value is only returned, in whatever shape, by `forward` or by methods that `forward` returns of."""
    if not any(isinstance(at, ast.ClassDef) for at in chain(node)):
        return True  # behind the model, which has cast it to float32
    above = parent(node)
    if attribute_of(above) in names_of(TENSOR, "asks"):
        return True
    while True:
        call = call_of(above) if attribute_of(above) in SAME else None
        if call is not None:
            above = parent(call)
        elif isinstance(above, ast.Tuple):
            above = parent(above)
        else:
            break
    function = enclosing_function(node)
    match above:
        case ast.Return() if function is not None:
            if function.name == "forward":
                return not _a_part(file, function)
            runs = [at for at in file.scan.attributes.get(function.name, ()) if isinstance(at.ctx, ast.Load)]
            calls = [call_of(at) for at in runs]
            return depth > 0 and all(each is not None and _leaves(file, each, depth - 1) for each in calls)
        case ast.Assign(targets=[ast.Name(id=name)]):
            reads = [at for at in file.scan.names.get(name, ()) if enclosing_function(at) is function]
            later = [at for at in reads if isinstance(at.ctx, ast.Load) and begins(at) > ends(above)]
            return depth > 0 and bool(later) and all(_leaves(file, at, depth - 1) for at in later)
    return False


def _a_part(file: File, forward: ast.AST) -> bool:
    """True for the `forward` of a class that another class of the file makes a part of itself."""
    cls = parent(forward)
    name = cls.name if isinstance(cls, ast.ClassDef) else ""
    around = (list(of_kind(ast.ClassDef, chain(node))) for node in file.scan.names.get(name, ()))
    return any(classes and cls not in classes for classes in around)


# --- gradient penalties -----------------------------------------------------------------------------------------------


def _penalties(program: Program, level: str, found: InFloat32, units: list[Unit]) -> None:
    every = [
        (file, call)
        for file in program.files
        for call in by_place(file.scan.calls)
        if file.names.qualified(call.func) == "torch.autograd.grad"
    ]
    if not every:
        return
    do = "keep this training in float32, or scale the value that it differentiates by hand"
    if level == "O1":  # with O2 the weights are float16
        found.penalties = [(unit.file, penalty) for unit in units for penalty in unit.penalties]
        for file, penalty in found.penalties:
            check_lines(file, penalty.stmt)
        do = "put it into a function penalty(D, real, fake) that the loop calls as `p = penalty(...)`, or " + do
    apart = {id(penalty.stmt.value) for _, penalty in found.penalties}
    penalties = _only_for(program, apart)
    for file, call in every:
        if enclosing_function(call) not in penalties:
            raise Refused(file, call, "torch.autograd.grad returns gradients without the loss scale", do)


def _only_for(program: Program, apart: set[int]) -> set[ast.AST]:
    """The functions that nothing calls but some calls, and that nothing hands on."""
    found = set[ast.AST]()
    for function, owner in program.owner.items():
        sites = program.call_sites.get(function, []) if isinstance(function, FUNCTIONS) else []
        if not isinstance(function, FUNCTIONS) or not sites or not all(id(call) in apart for _, call in sites):
            continue
        called = {id(call.func) for _, call in sites}
        reads = [at for file in program.files for at in file.scan.names.get(function.name, ())]
        if all(id(at) in called or program.definition(owner, at) is not function for at in reads):
            found.add(function)
    return found


# --- writing ----------------------------------------------------------------------------------------------------------


def write_in_float32(writer: Writer, own: File, found: InFloat32, amp: Callable[[], str], seen: set[int]) -> None:
    """What of this file runs in float32; `seen` are ids of what another program of the file has had written."""
    mine = [traced for file, traced in found.sigmoids if file is own and id(traced.losses[0]) not in seen]
    seen.update(id(traced.losses[0]) for traced in mine)
    write_sigmoids(writer, mine, _CODE)
    for file, node in found.targets:
        if file is own and id(node) not in seen:
            seen.add(id(node))
            writer.rewrite(node, _CODE, _TARGET, method_called("float"), apart=True)
    for file, penalty in found.penalties:
        if file is own and id(penalty.stmt) not in seen:
            seen.add(id(penalty.stmt))
            writer.wrap([penalty.stmt], f"with {amp()}.disable_casts():", _CODE, _PENALTY)
            for argument in penalty.half:
                writer.rewrite(argument, _CODE, _PENALTY, method_called("float"), apart=True)
