"""When fused optimizers of torch_npu pack their parameters, and what that does to the passes around it.

They do at their first `zero_grad()` or `step()` that finds a gradient (torch_npu/optim/npu_fused_optim_base.py), and
write the parameters that have one anew: a backward pass whose forward pass was before stops. Those without one stay
out for good. A parameter that is packed moves in each step by its momentum, gradient or not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.layers import heads_of
from transplt.program.models import find_models, spelled
from transplt.program.optimizers import Optimizer
from transplt.program.passes import Origins, PassWalker
from transplt.program.program import File, Program, Variable
from transplt.program.training import find_training
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import keyword_of

#: They leave steps out, and leave nothing packed then; that of torch_npu packs when it unscales.
_SCALERS = frozenset(
    {"torch.GradScaler"} | {f"torch.{of}amp.{file}GradScaler" for of in ("", "cuda.") for file in ("", "grad_scaler.")}
)

Place = tuple[File, ast.Call]
Harm = tuple[str, str]


@dataclass(slots=True, eq=False)
class _Packing:
    """An optimizer on the way through the program. `parts` are its models, and what outputs of them alone need."""

    of: Optimizer
    parts: dict[Variable, str]  # -> what a person calls it
    gradients: Origins = frozenset()  # since they were zeroed
    held: Origins = frozenset()  # that have a tensor for theirs
    packed: Origins = frozenset()
    at: Place | None = None  # the call that packed them
    left_out: bool = False  # a scaler has left out a step
    split: tuple[Place, Place] | None = None  # packed at the first, in front of the backward pass at the second
    steps: dict[Origins, Place] = field(default_factory=dict)

    @property
    def mark(self) -> Variable:
        """What the value of a forward pass before the packing goes back through."""
        return ("packed", self.of.file.path, str(id(self.of.call)))

    def words(self, parts: Origins) -> str:
        """What a person calls some of its parts."""
        return " and ".join(words for part, words in self.parts.items() if part in parts)


def harms_of_packing(program: Program, optimizers: list[Optimizer], *, scaled: bool) -> dict[Optimizer, Harm]:
    """Those that cannot be fused ones: why, and what to do. `scaled`: they get a scaler that leaves steps out."""
    walker = _PackingWalker(program, optimizers, scaled=scaled)
    walker.follow(times=2)
    walker.start()
    return walker.harms


class _PackingWalker(PassWalker):
    def __init__(self, program: Program, optimizers: list[Optimizer], *, scaled: bool) -> None:
        models = find_models(program, program.once(find_training), ())
        self.scaled = scaled
        self.harms: dict[Optimizer, Harm] = {}
        self.outputs: dict[Variable, dict[int, Variable]] = {
            origin: {at: ("output", str(number), str(at)) for at in heads_of(program, origin)}
            for number, origin in enumerate(models.origins)
        }
        self.packings = [_Packing(one, {}) for one in optimizers]
        for each in self.packings:
            for origin in each.of.given.origins:
                each.parts[origin] = f"the parameters of {spelled(origin)}"
                for at, part in self.outputs.get(origin, {}).items():
                    each.parts[part] = f"the layers of output {at + 1} of {spelled(origin)}"
        super().__init__(models)

    def start(self) -> None:
        super().start()
        for each in self.packings:
            if (harm := _harm(each)) is not None:
                self.harms.setdefault(each.of, harm)
        self.packings = [_Packing(each.of, each.parts) for each in self.packings]

    def through(self, origin: Variable) -> Origins:
        return frozenset({origin, *self.outputs.get(origin, {}).values()})

    def assigned(self, file: File, node: ast.Assign | ast.AnnAssign) -> None:
        super().assigned(file, node)
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call() as call) if self.grad:
                origin = self.models.origin(file, call.func)
                outputs = self.outputs.get(origin, {}) if origin is not None else {}
                for at, target in enumerate(targets if outputs else ()):
                    others = {part for position, part in outputs.items() if position != at}
                    self.store(file, target, self.value_again(file, call) - others)

    def call(self, file: File, call: ast.Call) -> Origins:
        reach = super().call(file, call)
        match call.func:
            case ast.Attribute(value=owner, attr="zero_grad"):
                for each in self.held_by(file, owner):
                    self.zeroed(each, (file, call))
                emptied = self.through(origin) if (origin := self.models.origin(file, owner)) else frozenset()
                for each in self.packings:
                    each.gradients -= emptied
            case ast.Attribute(value=owner, attr="step"):
                for each in self.held_by(file, owner):
                    self.stepped(each, (file, call), may_skip=self.scaled)
                scalers = [item for item in values_of(self.program, file, owner) if isinstance(item[1], ast.Call)]
                skips = any(at.names.qualified(getattr(made, "func", made)) in _SCALERS for at, made in scalers)
                for given in call.args[:1]:
                    for each in self.held_by(file, given):
                        self.stepped(each, (file, call), may_skip=self.scaled or skips)
        return reach

    def held_by(self, file: File, node: ast.expr) -> list[_Packing]:
        slot = self.program.slot(file, node)
        return [each for each in self.packings if slot in each.of.holders]

    def zeroed(self, one: _Packing, place: Place) -> None:
        if one.held and one.at is None:
            one.packed, one.at = one.held, place
            for slot, reach in self.reach.items():
                if not one.parts.keys().isdisjoint(reach | self.run_around(reach)):
                    self.reach[slot] = reach | {one.mark}
        one.gradients = frozenset()

    def stepped(self, one: _Packing, place: Place, *, may_skip: bool) -> None:
        if one.gradients:
            one.steps.setdefault(one.gradients, place)
        if may_skip and not one.left_out:
            one.left_out = True
        elif one.held and one.at is None:
            one.packed, one.at = one.held, place

    def run_around(self, reach: Origins) -> Origins:
        """The models of which a value goes back through a method or a parameter, without their forward."""
        return frozenset(self.marks[each][0] for each in reach if each in self.marks)

    def backward(self, file: File, call: ast.Call, reach: Origins) -> None:
        whole = self.run_around(reach)
        if not whole and reach.isdisjoint(self.models.origins):
            whole = frozenset(origin for origin, count in self.fresh.items() if count)
        through = reach.union(*map(self.through, whole))
        for each in self.packings:
            mine = through & each.parts.keys()
            each.gradients |= mine
            each.held |= mine
            if each.mark in reach and each.at is not None and each.split is None:
                each.split = (each.at, (file, call))
        super().backward(file, call, reach)


def _harm(one: _Packing) -> Harm | None:
    if not one.steps:
        return None  # the order in which the program runs is not in sight
    if one.split is not None:
        zeroed, back = map(_where, one.split)
        when = "if the scaler skips the first step" if one.left_out else "with gradients there and no step before"
        return (
            f"its zero_grad ({zeroed}) comes between a forward pass and its backward pass ({back}), {when}",
            "the fused one packs the parameters there, and the backward pass fails (modified by an inplace "
            "operation): call zero_grad before the forward pass",
        )
    for gradients, place in one.steps.items():
        if one.at is not None and (later := gradients - one.packed):
            return (
                f"it would pack the parameters with gradients at {_where(one.at)}, and {one.words(later)} have none "
                "there",
                f"those would not be trained, or stop the step at {_where(place)} (KeyError: 'step'): call the first "
                "zero_grad and step after a backward pass through all its parameters",
            )
    more = (keyword_of(one.of.call, "momentum"), keyword_of(one.of.call, "weight_decay"))
    if one.of.kind.endswith("SGD") and len(one.of.call.args) < 3 and more == (None, None):
        return None  # it moves nothing without a gradient
    for gradients, place in one.steps.items():
        if one.at is not None and (without := one.packed - gradients):
            return (
                f"{one.words(without)} have no gradients at its step ({_where(place)}), but have some at another",
                "the fused one updates all of them in each step, by their momentum and decay",
            )
    return None


def _where(place: Place) -> str:
    return f"{place[0].path}:{place[1].lineno}"
