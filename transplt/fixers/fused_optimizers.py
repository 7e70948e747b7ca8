"""Which optimizers of a program can be the fused ones of torch_npu, and where each of them goes.

The fused optimizers pack parameters and gradients into one tensor each at their first step (torch_npu/optim/
npu_fused_optim_base.py). What takes a gradient or a parameter out of there afterwards trains wrongly silently, so
an optimizer is only changed when everything that happens to it and to its gradients is in sight.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.base.settings import Settings
from transplt.edits.work import Work
from transplt.fixers.around import program_around
from transplt.program.cards import on_card
from transplt.program.imports import imports_of
from transplt.program.loops import loops_around
from transplt.program.models import optimizer_class
from transplt.program.optimizer_variables import CONFIGURED, OptimizerUse
from transplt.program.optimizers import Optimizer, find_optimizers
from transplt.program.packed_gradients import hazards, modules_zeroed
from transplt.program.packing import harms_of_packing
from transplt.program.program import File, Program, Variable
from transplt.rules.tuning_facts import schemas
from transplt.syntax.nodes import argument_at, hides_arguments
from transplt.syntax.scan import parent

#: Those that have a fused form under the same arguments.
CLASSES = {name: f"torch_npu.optim.NpuFused{name}" for name in ("Adam", "AdamW", "SGD", "Adadelta", "RMSprop")}
#: Keywords that only choose among implementations of the same formula.
_CHOICES = frozenset({"foreach", "fused"})
#: Keywords that change what is computed unless they are False.
_OFF = frozenset({"maximize", "capturable", "differentiable", "decoupled_weight_decay"})
_READS = frozenset(
    {"param_groups", "state_dict", "load_state_dict", "defaults", "state", "step", "zero_grad", "__class__"}
)

_CHANGES = frozenset({"append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"})


@dataclass(slots=True, eq=False)
class Made:
    """An optimizer of torch. `why` is the reason that it stays as it is; `dropped` are keywords the fused one lacks."""

    of: Optimizer
    name: str
    why: str = ""
    help: str = ""
    dropped: tuple[str, ...] = ()
    zeroing: list[tuple[File, ast.Call]] = field(default_factory=list)  # zero_grad(set_to_none=True)
    silent: bool = False  # nothing to report about it
    fused: bool = False  # it was written as a fused one

    def refuse(self, why: str, help_: str = "") -> None:
        """Note the first reason for which it stays."""
        if not self.why:
            self.why, self.help = why, help_


@dataclass(slots=True)
class Optimizers:
    """All optimizers of a program with a fused form, and which variables hold them."""

    made: list[Made] = field(default_factory=list)
    by_slot: dict[Variable, list[Made]] = field(default_factory=dict)
    by_call: dict[ast.Call, Made] = field(default_factory=dict)
    zeroing: set[ast.Call] = field(default_factory=set)
    modules: set[ast.Call] = field(default_factory=set)  # model.zero_grad()


def fusible(program: Program, settings: Settings) -> Optimizers:
    """Look at every optimizer of the program; those that comments or settings switch off stay."""
    found = Optimizers()
    for one in sorted(program.once(find_optimizers), key=lambda each: each.file.path):
        if (made := _looked_at(one)) is None:
            continue
        found.made.append(made)
        found.by_call[one.call] = made
        for slot in one.holders:
            found.by_slot.setdefault(slot, []).append(made)
    if not found.made:
        return found
    _unasked_or_read(found, program, settings)
    _twice(found)
    fusing = [made.of for made in found.made if not made.why and not made.fused]
    scaled = (settings.amp, settings.amp_dtype, settings.loss_scale) == ("native", "float16", "dynamic")
    harms = harms_of_packing(program, fusing, scaled=scaled) if fusing else {}
    for made in found.made:
        if made.of in harms:
            made.refuse(*harms[made.of])
    _chosen_together(found)
    for made in found.made:
        if not made.why and not made.fused:
            found.zeroing.update(call for _, call in made.zeroing)
    if any(not made.why for made in found.made):
        found.modules = {call for _, call in modules_zeroed(program, {*found.by_slot})}
    return found


def _unasked_or_read(found: Optimizers, program: Program, settings: Settings) -> None:
    """Leave those that nobody asks for, and those whose gradients something beside them reads or changes."""
    every = hazards(program, {*found.by_slot})
    alongside = imports_of(program.project).alongside({file.path for file in program.files}) if every else {}
    for made in found.made:
        if made.fused:
            made.why = ""
            continue
        *folders, name = made.of.file.path.split("/")
        of_tests = name.startswith(("test_", "conftest.")) or "tests" in folders  # they have nothing to gain
        if _switched_off(made, settings) or of_tests or not on_card(program):
            made.silent, made.why = True, "it is not asked for"
        if (hazard := next((what for path, what in every if path in alongside[made.of.file.path]), None)) is not None:
            made.why, made.help = hazard


def _looked_at(one: Optimizer) -> Made | None:
    """An optimizer with a fused form, judged by its call and by its uses alone."""
    full = one.file.names.qualified(one.call.func) or ""
    unsure = "" if full else _of_a_star(one.file, one.call)
    name = class_of(full) or unsure
    fused = full.startswith("torch_npu.optim.NpuFused")
    if not name and not fused:
        return None
    made = Made(one, name or full.rpartition(".")[2], fused=fused)
    if unsure:
        made.refuse("several star imports may define it", f"import {name} by its name")
    if not fused:
        _arguments(made)
    for use in one.uses:
        _used(made, use)
    return made


def optimizers_around(work: Work) -> Optimizers | None:
    """The optimizers of the program around the file on the bench; found once for all of its files."""
    program = program_around(work)
    return None if program is None else program.once(fusible, work.settings)


def class_of(full: str) -> str:
    """`Adam` for `torch.optim.Adam` and for `torch.optim.adam.Adam`, empty for what has no fused form."""
    name = optimizer_class(full).removeprefix("torch.optim.")
    return name if name in CLASSES else ""


def _of_a_star(file: File, call: ast.Call) -> str:
    """The optimizer that `from torch.optim import *` may give, where a later star may give another of that name."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in CLASSES or "torch.optim" not in file.scan.root.stars:
        return ""
    return name if file.names.lookup(name, file.scan.scope_of(call)) is None else ""


def _switched_off(made: Made, settings: Settings) -> bool:
    file, call = made.of.file, made.of.call
    off = settings.ignored_codes(file.path)
    lines = {call.lineno, call.end_lineno or call.lineno}
    return "NPU750".startswith(off or ("-",)) or any("transplt:" in file.source.line_text(at) for at in lines)


def _twice(found: Optimizers) -> None:
    """Two that hold the same parameters at the same time would pack them in turn."""
    for made in found.made:
        others = (each.of for each in found.made if each.of.holders[:1] != made.of.holders[:1])
        if any(made.of.given.shares(other.given) for other in others):
            made.refuse("another optimizer holds the same parameters", "the fused ones pack parameters for themselves")


def _chosen_together(found: Optimizers) -> None:
    """Where one of several that a variable may hold stays, its calls have to fit both: only zeroing differs."""
    for every in found.by_slot.values():
        stays = [made for made in every if made.why and not made.silent]
        for made in every:
            if stays and made.zeroing and not made.why:
                made.refuse("the same variable may hold an optimizer that is not replaced", stays[0].why)


def _arguments(made: Made) -> None:
    call = made.of.call
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
            made.refuse(f"NpuFused{made.name} has no argument {keyword.arg}", "remove the argument, if possible")
    rate = argument_at(call, 1, "lr")
    if isinstance(rate, ast.Call) and "tensor" in ast.unparse(rate.func).lower():
        made.refuse("its learning rate is a tensor", "NpuFused optimizers take a number")
    if "lr" not in given and made.name == "SGD":
        made.refuse("NpuFusedSGD has no default for lr", "write the learning rate: torch.optim.SGD takes 1e-3")
    if _is_generator_of_tensors(call):
        made.refuse("it trains tensors that no module holds", "fused optimizers are for the parameters of a model")
    made.dropped = tuple(dropped)


def _is_generator_of_tensors(call: ast.Call) -> bool:
    """True for `Adam([latent])` and `Adam([latent] + list(noise.values()))`: single tensors, which gain nothing."""
    first = argument_at(call, 0, "params")
    if isinstance(first, ast.BinOp) and "parameters" not in ast.unparse(first):
        while isinstance(first, ast.BinOp):
            first = first.left if isinstance(first.left, (ast.BinOp, ast.List)) else first.right
    if not isinstance(first, (ast.List, ast.Tuple)) or not first.elts:
        return False
    return all(isinstance(item, (ast.Name, ast.Attribute, ast.Subscript)) for item in first.elts)


# --- what is done with an optimizer ----------------------------------------------------------------------------------


def _used(made: Made, use: OptimizerUse) -> None:
    above = parent(use.node)
    call = parent(above) if isinstance(above, ast.keyword) else above
    if use.lost == CONFIGURED:
        made.refuse(
            "Lightning runs the whole step inside of optimizer.step(closure)",
            "the fused optimizers call a closure without gradients; keep it, or use manual optimization",
        )
    elif use.lost:
        made.refuse(use.lost)
    elif isinstance(above, ast.Attribute):
        if _is_step_as_tensor(above):
            made.refuse("its step count is read as a tensor", "fused optimizers have a number: write int(...)")
        _method(made, use.file, above)
    elif isinstance(call, ast.Call):
        made.refuse(
            f"it is handed to {ast.unparse(call.func)}, which was not found",
            "check whether that code sets gradients to None, moves parameters or calls step with a closure",
        )


def _method(made: Made, file: File, node: ast.Attribute) -> None:
    call = parent(node)
    called = isinstance(call, ast.Call) and call.func is node
    if node.attr not in _READS:
        made.refuse(f"its {node.attr} is used", "fused optimizers pack their parameters at the first step")
    elif node.attr in ("step", "zero_grad") and not called:
        made.refuse(f"its {node.attr} is handed on")
    elif node.attr == "step" and isinstance(call, ast.Call) and (call.args or call.keywords):
        made.refuse("its step gets a closure", "the fused optimizers call it under torch.no_grad(), without gradients")
    elif node.attr == "zero_grad" and isinstance(call, ast.Call) and (call.args or call.keywords):
        value = call.args[0] if call.args else call.keywords[0].value
        if not isinstance(value, ast.Constant):
            made.refuse("the arguments of zero_grad are unknown", "the fused optimizers refuse set_to_none=True")
        elif value.value:
            made.zeroing.append((file, call))
    elif node.attr in ("state", "param_groups") and _is_rewritten(node):
        made.refuse(f"its {node.attr} is rewritten", "fused optimizers keep packed copies of its contents")
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


def _is_step_as_tensor(node: ast.Attribute) -> bool:
    """True for `optimizer.state[p]["step"].item()`."""
    match step := parent(parent(node)):
        case ast.Subscript(slice=ast.Constant(value="step")) if node.attr == "state":
            return isinstance(parent(step), ast.Attribute)
    return False
