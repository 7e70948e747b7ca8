"""The weights of a step by their names, and how far an optimizer moved them on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.base.render.cell import figure
from transplt.precision.align import api_of
from transplt.precision.distance import TOLERANCES, by_figures, largest, tolerance
from transplt.precision.match import Matched, pairs
from transplt.precision.record import MODULE, Row, Tensor

Both = tuple[Tensor, Tensor]
#: Units in the last place of a type, as a share of a value.
_UNITS = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}
#: What a figure of a weight may be off besides, in such units.
_ROUNDINGS = 16
#: A move is another one from here on, as a share of it, and if two of the figures say so.
_APART = 0.1
_AGREE = 0.05
_NORM = 3


@dataclass(slots=True)
class Weights:
    """The weights as the modules of a step read them, NPU and bench; `noise` has those whose gradients were nothing but
    rounding: what an optimizer makes of them means nothing."""

    by_name: dict[str, Both] = field(default_factory=dict)
    noise: frozenset[str] = frozenset()


def full_name(module: Row, parameter: Tensor) -> str:
    """`layer1.conv.weight`."""
    name = api_of(module).rpartition(".")[0].removeprefix("Module.")
    own = parameter.name.removeprefix("parameters.")
    return f"{name}.{own}" if name else own


def weights_of(matched: Matched, before: Weights | None) -> Weights:
    """Those of a step, for the next one."""
    found: dict[str, Both] = {}
    for each in matched.model:
        if each.npu is not None and each.bench is not None and each.npu.kind == MODULE:
            for one, other in pairs(each.npu.parameters, each.bench.parameters):
                found.setdefault(full_name(each.npu, one), (one, other))
    noise = {*(before.noise if before is not None else ()), *_noise(matched)}
    return Weights(found, frozenset(noise))


def _noise(matched: Matched) -> Iterator[str]:
    """Parameters whose gradients differ, and only by what sums of the others are off."""
    for each in (*matched.gradients, *matched.steps):
        if each.npu is None or each.bench is None:
            continue
        module = api_of(each.npu).rpartition(".")[0].removeprefix("Module.")
        for one, other in pairs(each.npu.inputs or each.npu.outputs, each.bench.inputs or each.bench.outputs):
            kind, _, name = one.name.partition(".")
            if kind == "gradient" and by_figures(one, other) > tolerance(one, other, None):
                own = name if each.npu.inputs else name.rpartition(".")[0]
                yield own if each.npu.inputs or not module else f"{module}.{own}"


def apart_by_noise(matched: Matched, before: Weights | None) -> str:
    """A weight of that kind that differs at the start of a step; empty without one."""
    if before is None or not before.noise:
        return ""
    now = weights_of(matched, None).by_name
    apart = (name for name in sorted(before.noise & {*now}) if by_figures(*now[name]) > tolerance(*now[name], None))
    return next(apart, "")


def moved(before: Both, after: Both) -> str:
    """A clause about how far the NPU's side moved a weight, where the bench's moved it otherwise; empty if alike."""
    if len({tensor.shape for tensor in (*before, *after)}) > 1:
        return ""
    ratios, apart, known = [], 0, 0
    four = (tensor[3:7] for tensor in (before[0], after[0], before[1], after[1]))
    for at, (a, b, c, d) in enumerate(zip(*four, strict=True)):
        if a is None or b is None or c is None or d is None:
            continue
        ours, theirs = b - a, d - c
        unit = _UNITS.get(after[1].dtype, 2.0**-23) if after[1].dtype in TOLERANCES else 0.0
        slack = _ROUNDINGS * unit * max(largest(after[1]), largest(before[1]), abs(d) if at == _NORM else 0.0)
        known += 1
        apart += not abs(ours - theirs) <= slack + _APART * max(abs(ours), abs(theirs))
        if at < _NORM and abs(theirs) > 4 * slack:  # norms do not grow in proportion
            ratios.append(ours / theirs)
    if not apart or (apart < 2 and known > 1):
        return ""
    middle = sorted(ratios)[len(ratios) // 2] if ratios else 0.0
    if len(ratios) > 1 and all(abs(each - middle) <= _AGREE * max(abs(middle), 0.1) for each in ratios):
        return "moved not at all" if abs(middle) < 1e-3 else f"moved {figure(middle, 3)} times as far as on the bench"
    return "moved otherwise than on the bench"
