"""Which optimizers of a program can be the fused ones of torch_npu, and where each of them goes.

The fused optimizers pack parameters and gradients into one tensor each at their first step (torch_npu/optim/
npu_fused_optim_base.py). What takes a gradient or a parameter out of there afterwards trains wrongly without a word, so
an optimizer is only changed when everything that happens to it and to its gradients is in sight.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.base.settings import Settings
from transplt.edits.work import Work
from transplt.fixers.around import program_around
from transplt.fixers.tunings.facts import schemas
from transplt.fixers.tunings.gradients import hazards, modules_zeroed
from transplt.program.cards import on_card
from transplt.program.imports import imports_of
from transplt.program.loops import loops_around
from transplt.program.optimized import parameters_given
from transplt.program.program import File, Program, Slot, class_name, enclosing_function
from transplt.program.trained import trained
from transplt.program.values import uses
from transplt.rules.torch_callables import names_of
from transplt.syntax.asks import by_place, hides_arguments, keyword_of, last_name
from transplt.syntax.scan import parent

#: Those that have a fused form under the same arguments.
CLASSES = {name: f"torch_npu.optim.NpuFused{name}" for name in ("Adam", "AdamW", "SGD", "Adadelta", "RMSprop")}
#: Keywords that only choose among implementations of the same formula.
_CHOICES = frozenset({"foreach", "fused"})
#: Keywords that change what is computed unless they are False.
_OFF = frozenset({"maximize", "capturable", "differentiable", "decoupled_weight_decay"})
#: Functions of libraries that only read `param_groups`, or call step and zero_grad without arguments.
_READERS = (
    "torch.optim.lr_scheduler.",
    "torch.optim.swa_utils.",
    "transformers.get_",
    "transformers.optimization.get_",
)
_SCALERS = frozenset({"step", "unscale_"})
_READS = frozenset(
    {"param_groups", "state_dict", "load_state_dict", "defaults", "state", "step", "zero_grad", "__class__"}
)

_CHANGES = frozenset({"append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"})


@dataclass(slots=True, eq=False)
class Made:
    """A call of an optimizer class. `why` says why it stays what it is; `dropped` are keywords the fused one lacks."""

    file: File
    call: ast.Call
    name: str
    why: str = ""
    help: str = ""
    dropped: tuple[str, ...] = ()
    slots: set[Slot] = field(default_factory=set)
    home: Slot | None = None  # the first of them
    zeroing: list[tuple[File, ast.Call]] = field(default_factory=list)  # zero_grad(set_to_none=True)
    silent: bool = False  # nothing to say about it
    fused: bool = False  # it was written as a fused one

    def refuse(self, why: str, help_: str = "") -> None:
        """Note the first reason for which it stays."""
        if not self.why:
            self.why, self.help = why, help_


@dataclass(slots=True)
class Optimizers:
    """All optimizers of a program with a fused form, and which variables hold them."""

    made: list[Made] = field(default_factory=list)
    by_slot: dict[Slot, list[Made]] = field(default_factory=dict)
    by_call: dict[ast.Call, Made] = field(default_factory=dict)
    zeroing: set[ast.Call] = field(default_factory=set)
    modules: set[ast.Call] = field(default_factory=set)  # model.zero_grad()


def find_optimizers(program: Program, settings: Settings) -> Optimizers:
    """Look at every optimizer of the program; those that comments or settings switch off stay."""
    found = Optimizers()
    for file in sorted(program.files, key=lambda item: item.path):
        for call in by_place(file.scan.calls):
            full = file.names.qualified(call.func) or ""
            name = class_of(full)
            if name:
                made = Made(file, call, name)
                _arguments(made)
            elif full.startswith("torch_npu.optim.NpuFused"):
                made = Made(file, call, full.rpartition(".")[2], fused=True)
            else:
                continue
            _follow(program, made, call, set())
            found.made.append(made)
            found.by_call[call] = made
    if not found.made:
        return found
    for made in found.made:
        for slot in made.slots:
            found.by_slot.setdefault(slot, []).append(made)
    every = hazards(program, {slot for made in found.made for slot in made.slots})
    alongside = imports_of(program.project).alongside({file.path for file in program.files}) if every else {}
    for made in found.made:
        if made.fused:
            made.why = ""
            continue
        if _switched_off(made, settings) or _is_test(made.file.path) or not on_card(program):
            made.silent, made.why = True, "it is not asked for"
        if (hazard := next((what for path, what in every if path in alongside[made.file.path]), None)) is not None:
            made.why, made.help = hazard
    _twice(program, found)
    _chosen_together(found)
    for made in found.made:
        if not made.why and not made.fused:
            found.zeroing.update(call for _, call in made.zeroing)
    if any(not made.why for made in found.made):
        slots = {slot for made in found.made for slot in made.slots}
        found.modules = {call for _, call in modules_zeroed(program, slots)}
    return found


def optimizers_around(work: Work) -> Optimizers | None:
    """The optimizers of the program around the file on the bench; found once for all of its files."""
    program = program_around(work)
    return None if program is None else program.once(find_optimizers, work.settings)


def class_of(full: str) -> str:
    """`Adam` for `torch.optim.Adam` and for `torch.optim.adam.Adam`, empty for what has no fused form."""
    if not full.startswith("torch.optim."):
        return ""
    name = full.rpartition(".")[2]
    return name if name in CLASSES and full in (f"torch.optim.{name}", f"torch.optim.{name.lower()}.{name}") else ""


def _switched_off(made: Made, settings: Settings) -> bool:
    off = settings.ignored_codes(made.file.path)
    lines = {made.call.lineno, made.call.end_lineno or made.call.lineno}
    return "NPU750".startswith(off or ("-",)) or any("transplt:" in made.file.source.line_text(at) for at in lines)


def _is_test(path: str) -> bool:
    """True for a file of tests, which has nothing to gain."""
    *folders, name = path.split("/")
    return name.startswith(("test_", "conftest.")) or "tests" in folders


def _twice(program: Program, found: Optimizers) -> None:
    """Two that hold the same parameters at the same time would pack them in turn."""
    models = [
        (made, trained(program, made.file, made.call), parameters_given(program, made.file, made.call))
        for made in found.made
    ]
    for made, model, given in models:
        if any(
            other.home != made.home and ((model and same == model) or given.shares(theirs))
            for other, same, theirs in models
        ):
            made.refuse("another optimizer holds the same parameters", "the fused ones pack parameters for themselves")


def _chosen_together(found: Optimizers) -> None:
    """Where one of several that a variable may hold stays, its calls have to fit both: only zeroing differs."""
    for every in found.by_slot.values():
        stays = [made for made in every if made.why and not made.silent]
        for made in every:
            if stays and made.zeroing and not made.why:
                made.refuse("the same variable may hold an optimizer that stays what it is", stays[0].why)


def _arguments(made: Made) -> None:
    call = made.call
    signature = ast.parse(f"def {schemas(CLASSES[made.name])[0]}: pass").body[0]
    assert isinstance(signature, ast.FunctionDef)
    takes = [arg.arg for arg in signature.args.args]
    if hides_arguments(call):
        made.refuse("its arguments come from a tuple or a dict", f"call {CLASSES[made.name]} with arguments it takes")
        return
    if len(call.args) > len(takes):
        made.refuse(f"NpuFused{made.name} takes only {', '.join(takes)}", "give the other arguments by keyword")
    dropped = []
    given = {*takes[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
    for keyword in call.keywords:
        off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
        if keyword.arg in _CHOICES or (keyword.arg in _OFF and off):
            dropped.append(keyword.arg or "")
        elif keyword.arg not in takes:
            made.refuse(f"NpuFused{made.name} has no argument {keyword.arg}", "decide whether it can do without")
    rate = next((k.value for k in call.keywords if k.arg == "lr"), call.args[1] if len(call.args) > 1 else None)
    if isinstance(rate, ast.Call) and "tensor" in ast.unparse(rate.func).lower():
        made.refuse("its learning rate is a tensor", "NpuFused optimizers take a number")
    if "lr" not in given and made.name == "SGD":
        made.refuse("NpuFusedSGD has no default for lr", "write the learning rate: torch.optim.SGD takes 1e-3")
    if _is_generator_of_tensors(call):
        made.refuse("it trains tensors that no module holds", "fused optimizers are for the parameters of a model")
    made.dropped = tuple(dropped)


def _is_generator_of_tensors(call: ast.Call) -> bool:
    """True for `Adam([latent])` and `Adam([latent] + list(noise.values()))`: single tensors, which gain nothing."""
    first = call.args[0] if call.args else keyword_of(call, "params")
    if isinstance(first, ast.BinOp) and "parameters" not in ast.unparse(first):
        while isinstance(first, ast.BinOp):
            first = first.left if isinstance(first.left, (ast.BinOp, ast.List)) else first.right
    if not isinstance(first, (ast.List, ast.Tuple)) or not first.elts:
        return False
    return all(isinstance(item, (ast.Name, ast.Attribute, ast.Subscript)) for item in first.elts)


# --- where an optimizer goes -----------------------------------------------------------------------------------------


def _follow(program: Program, made: Made, node: ast.expr, seen: set[int]) -> None:
    """Follow the value of an expression that is the optimizer."""
    if id(node) in seen:
        return
    seen.add(id(node))
    file, above = made.file, parent(node)
    file = _file_of(program, node) or made.file
    match above:
        case ast.Attribute():
            _method(program, made, file, above)
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() if above.value is node:
            targets = above.targets if isinstance(above, ast.Assign) else [above.target]
            for target in targets:
                _stored(program, made, file, target, seen)
        case ast.Tuple() | ast.List() if isinstance(parent(above), ast.Return):
            _returned(program, made, node, above.elts.index(node), seen)
        case ast.Tuple() if isinstance(stored := parent(above), ast.Assign) and stored.value is above:
            target = stored.targets[0]
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(above.elts):
                _stored(program, made, file, target.elts[above.elts.index(node)], seen)
            else:
                made.refuse("it is kept in a tuple")
        case ast.Return():
            _returned(program, made, node, None, seen)
        case ast.IfExp() if above.test is not node:
            _follow(program, made, above, seen)
        case ast.Call() | ast.keyword():
            _handed(program, made, file, above, node, seen)
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.FormattedValue() | ast.Expr() | ast.If() | ast.IfExp():
            pass
        case _:
            made.refuse("what happens to it cannot be seen: it is kept in a container")


def _file_of(program: Program, node: ast.AST) -> File | None:
    while not isinstance(node, ast.Module):
        node = parent(node)
    return next((file for file in program.files if file.scan.tree is node), None)


def _stored(program: Program, made: Made, file: File, target: ast.expr, seen: set[int]) -> None:
    slot = program.slot(file, target)
    if slot is None:
        made.refuse("it is kept where it cannot be followed")
        return
    if slot in made.slots:
        return
    made.slots.add(slot)
    made.home = made.home or slot
    for _, use in uses(program, {slot}):
        _follow(program, made, use, seen)


def _returned(program: Program, made: Made, node: ast.expr, index: int | None, seen: set[int]) -> None:
    function = enclosing_function(node)
    sites = program.call_sites.get(function, []) if function is not None else []
    if function is not None and function.name == "configure_optimizers":
        made.refuse(
            "Lightning runs the whole step inside of optimizer.step(closure)",
            "the fused optimizers call a closure without gradients; keep it, or use manual optimization",
        )
    elif not sites:
        made.refuse("it is returned to code that is not in sight")
    for file, call in sites:
        above = parent(call)
        if index is None:
            _follow(program, made, call, seen)
        elif isinstance(above, ast.Assign) and isinstance(above.targets[0], (ast.Tuple, ast.List)):
            elements = above.targets[0].elts
            if index < len(elements) and not any(isinstance(item, ast.Starred) for item in elements):
                _stored(program, made, file, elements[index], seen)
            else:
                made.refuse("it is returned in a tuple that cannot be followed")
        else:
            made.refuse("it is returned in a tuple that cannot be followed")


def _handed(
    program: Program, made: Made, file: File, above: ast.Call | ast.keyword, node: ast.expr, seen: set[int]
) -> None:
    call = parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call) or call.func is node:
        made.refuse("what happens to it cannot be seen")
        return
    full = file.names.qualified(call.func) or ""
    last = last_name(call.func)
    looks = last == "getattr" or last in names_of("builtins", "asks", "counts", "shows")
    if full.startswith(_READERS) or looks or "chedul" in last:
        return
    if isinstance(call.func, ast.Attribute) and last in _SCALERS and call.args and call.args[0] is node:
        return
    callee = program.callee(file, call) or _called_object(program, file, call.func, set())
    function = program.constructor(callee) if callee is not None else None
    if callee is None or function is None:
        made.refuse(
            f"it is handed to {ast.unparse(call.func)}, which is not in sight",
            "look whether that sets gradients to None, moves parameters or calls step with a closure",
        )
        return
    for name, argument in program.arguments(call, callee):
        if argument is node:
            slot = program.parameter_slot(function, name)
            if slot not in made.slots:
                made.slots.add(slot)
                for _, use in uses(program, {slot}):
                    _follow(program, made, use, seen)
            return
    made.refuse(f"it is handed to {ast.unparse(call.func)} in a way that cannot be followed")


def _called_object(program: Program, file: File, node: ast.expr, seen: set[Slot]) -> ast.AST | None:
    """The `__call__` of the object that a variable holds, also where it was handed on as an argument."""
    slot = program.slot(file, node)
    if slot is None or slot in seen:
        return None
    seen.add(slot)
    found: set[ast.AST | None] = set()
    for value in program.values.get(slot, ()):
        if isinstance(value.node, ast.Call) and value.index is None:
            made = program.named(value.file, value.node.func)
            known = class_name(program.owner[made], made) if isinstance(made, ast.ClassDef) else ""
            found.add(program.method(known, "__call__"))
        elif isinstance(value.node, (ast.Name, ast.Attribute)) and value.index is None:
            found.add(_called_object(program, value.file, value.node, seen))
        elif not (isinstance(value.node, ast.Constant) and value.node.value is None):
            found.add(None)
    return found.pop() if len(found) == 1 else None


def _method(program: Program, made: Made, file: File, node: ast.Attribute) -> None:
    call = parent(node)
    called = isinstance(call, ast.Call) and call.func is node
    if node.attr not in _READS:
        made.refuse(f"its {node.attr} is used", "fused optimizers pack their parameters at the first step")
    elif node.attr in ("step", "zero_grad") and not called:
        made.refuse(f"its {node.attr} is handed on")
    elif node.attr == "step" and isinstance(call, ast.Call) and (call.args or call.keywords):
        made.refuse(
            "its step gets a closure", "the fused optimizers call it without gradients: torch.no_grad() holds there"
        )
    elif node.attr == "zero_grad" and isinstance(call, ast.Call) and (call.args or call.keywords):
        value = call.args[0] if call.args else call.keywords[0].value
        if not isinstance(value, ast.Constant):
            made.refuse("what zero_grad is told cannot be seen", "the fused optimizers refuse set_to_none=True")
        elif value.value:
            made.zeroing.append((file, call))
    elif node.attr in ("state", "param_groups") and _is_rewritten(node):
        made.refuse(f"its {node.attr} is rewritten", "fused optimizers keep packed copies of what is in there")
    elif node.attr == "load_state_dict" and loops_around(node):
        made.refuse(
            "its state is loaded in a loop", "fused optimizers read a loaded state once, before their first step"
        )


def _is_rewritten(node: ast.Attribute) -> bool:
    """True for `optimizer.state[p] = {}` and the like; numbers such as `param_groups[0]["lr"]` may change."""
    place: ast.AST = node
    above, keys = parent(node), ""
    while isinstance(above, ast.Subscript) and above.value is place:
        keys += ast.unparse(above.slice)
        place, above = above, parent(above)
    if isinstance(getattr(place, "ctx", None), (ast.Store, ast.Del)):
        return place is node or node.attr == "state" or "params" in keys
    changes = isinstance(above, ast.Attribute) and above.attr in _CHANGES
    return changes and (node.attr == "state" or place is node or "params" in keys)
