"""Which curve of each log is the loss, and which of their values belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from transplt.base.errors import UsageError, shown
from transplt.base.render.cell import many
from transplt.precision.loss.course import overfits
from transplt.precision.loss.curve import Curve, Curves, normal
from transplt.precision.loss.line import is_aside

#: Names of a training's loss, the likeliest first.
_LIKELY = (
    "loss", "train_loss", "training_loss", "loss_train", "total_loss", "lm_loss", "train_total_loss", "loss_total",
    "train_loss_step", "loss_step", "batch_loss", "train_batch_loss", "train_inner_loss", "mean_loss",
)  # fmt: skip
#: Not the loss itself.
_BESIDE = re.compile(r"scale|weight|coef|factor|best|min_|max_|mask|average|(?:^|_)avg|epoch")
#: Values of one step that stand nearer than that are those of several processes, or of a step in parts.
_NEAR = 64

Key = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pair:
    """The values of both sides that belong together. `step` and `epoch` as the logs name them, else None."""

    a: float
    b: float
    step: float | None
    epoch: float | None
    number: int

    @property
    def place(self) -> str:
        """Where it is, as people write it: `step 120`, `epoch 2, step 5`, `value 7`."""
        parts = [f"{what} {at:g}" for what, at in (("epoch", self.epoch), ("step", self.step)) if at is not None]
        return ", ".join(parts) if parts else f"value {self.number}"


@dataclass(slots=True)
class Paired:
    """Both curves, value by value. `by_order` where steps did not decide what belongs together."""

    names: tuple[str, str]
    counts: tuple[int, int]
    pairs: list[Pair]
    by_order: bool = False
    remarks: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def paired(a: Curves, b: Curves) -> Paired:
    """The losses of two logs. UsageError where one holds none, or nothing belongs together."""
    ours, theirs = _of_one_process(a), _of_one_process(b)
    one = _chosen(ours, set(theirs), a)
    other = theirs.get(normal(one.name)) or _chosen(theirs, set(ours), b)
    found = Paired((one.name, other.name), (len(one), len(other)), [])
    found.others = sorted({curve.name for curve in (*ours.values(), *theirs.values())} - {one.name, other.name})
    for letter, curves, named, chosen in (("A", a, ours, one), ("B", b, theirs, other)):
        found.remarks += [f"{curves.source}: {remark}" for remark in curves.remarks]
        if text := overfits(named.values(), chosen):
            found.hints.append(f"{letter}, {curves.source}: {text}")
    if normal(one.name) != normal(other.name):
        held = f"`{one.name}` of {a.source} is compared with `{other.name}` of {b.source}"
        found.remarks.append(f"{held} (--name decides)")
    left, right = _keyed(one), _keyed(other)
    for curves, side in ((a, left), (b, right)):
        found.remarks += [f"{curves.source}: {remark}" for remark in side.remarks]
    found.remarks += _numbered_alike(left, right)
    common = sorted(left.values.keys() & right.values.keys())
    if common and 2 * len(common) >= min(len(left.values), len(right.values)):
        with_epoch = left.epochs or right.epochs or any(epoch for epoch, _ in common)
        places = ((n, key, _place(key, with_epoch)) for n, key in enumerate(common, 1))
        found.pairs = [Pair(left.values[key], right.values[key], *place, n) for n, key, place in places]
        return found
    if left.values and right.values and (left.steps, left.epochs) == (right.steps, right.epochs):
        raise UsageError(
            f"{shown(a.source)} and {shown(b.source)} have hardly any steps in common ({left.extent} and "
            f"{right.extent}): compare logs of the same steps"
        )
    found.by_order = True
    if left.values or right.values:
        found.remarks.append("the two logs name their steps differently: values are compared in the order of the logs")
    values = zip(one.values, other.values, strict=False)
    found.pairs = [Pair(mine, yours, None, None, number) for number, (mine, yours) in enumerate(values, 1)]
    return found


def _numbered_alike(a: _Keyed, b: _Keyed) -> list[str]:
    """Number what one log counts from 0 and the other from 1 alike; a remark where that was so."""
    remarks = []
    for at, what in ((0, "epochs"), (1, "steps")):
        ours, theirs = (sorted({key[at] for key in side.values}) for side in (a, b))
        if not ours or len(ours) != len(theirs) or len(ours) < 2 or len(a.values) != len(b.values):
            continue
        gap = theirs[0] - ours[0]
        if {ours[0], theirs[0]} != {0.0, 1.0} or any(two - one != gap for one, two in zip(ours, theirs, strict=True)):
            continue
        late, which = (b, "B") if gap > 0 else (a, "A")
        late.values = {(key[0] - (at == 0), key[1] - (at == 1)): value for key, value in late.values.items()}
        remarks.append(f"{which} numbers its {what} from 1 and the other from 0: the first values of both are compared")
    return remarks


def _of_one_process(curves: Curves) -> dict[str, Curve]:
    """The curves of rank 0, or of what stands first; a log without prefixes has one."""
    if not curves.by_who:
        return {}
    full = {who: named for who, named in curves.by_who.items() if named}
    who = min(full, key=lambda each: (each != "rank 0", each == "", len(each), each)) if full else ""
    if len(full) > 1:
        curves.remark(f"values of {len(full)} processes; those of {who or 'the lines without a prefix'} are used")
    return full.get(who, {})


def _chosen(named: dict[str, Curve], elsewhere: set[str], curves: Curves) -> Curve:
    """The curve that is the training's loss."""
    if not named:
        raise UsageError(
            f"{shown(curves.source)} has no loss; name the value with --name (as written in the log) or --pattern (a "
            "regular expression whose first group is the value)"
        )
    most = max(map(len, named.values()))
    keys: Sequence[str] = list(named)

    def rank(key: str) -> tuple[bool, bool, bool, bool, int, int]:
        likely = _LIKELY.index(key) if key in _LIKELY else len(_LIKELY)
        few = 10 * len(named[key]) < most
        # Of a detector's losses the sum is the one that is written last or alone; the likely names show which.
        return (is_aside(key), bool(_BESIDE.search(key)), few, key not in elsewhere, likely, keys.index(key))

    return named[min(keys, key=rank)]


#: Stands for a step that the log does not give.
_NONE = -1.0


@dataclass(slots=True)
class _Keyed:
    """The values by epoch and step; none where a value has neither. `steps` and `epochs`: the log gives them."""

    values: dict[Key, float] = field(default_factory=dict)
    steps: bool = False
    epochs: bool = False
    remarks: list[str] = field(default_factory=list)

    @property
    def extent(self) -> str:
        """From where to where it goes."""
        ends = (_place(key, self.epochs) for key in (min(self.values), max(self.values)))
        return " to ".join(Pair(0, 0, step, epoch, 0).place for step, epoch in ends)


def _place(key: Key, with_epoch: bool) -> tuple[float | None, float | None]:
    """(step, epoch) of a key."""
    return None if key[1] == _NONE else key[1], key[0] if with_epoch else None


def _keyed(curve: Curve) -> _Keyed:
    """A step that starts again where no epoch is named begins the next epoch; what is written twice is one value."""
    found = _Keyed()
    seen: dict[Key, tuple[int, int]] = {}
    epoch_from_steps, last, least = 0.0, -1.0, float("inf")
    again = merged = 0
    for number, (value, step, epoch) in enumerate(curve.points()):
        if step is None and epoch is None:
            return _Keyed()
        found.steps |= step is not None
        found.epochs |= epoch is not None
        if epoch is None and step is not None:
            begun = seen.get((epoch_from_steps, step), (0, 0))[0]
            if step < last and step <= least and number - begun > 2:
                epoch_from_steps += 1
            last, least = step, min(least, step)
        key = (epoch_from_steps if epoch is None else epoch, _NONE if step is None else step)
        if key in seen and number - seen[key][0] <= _NEAR:
            times = seen[key][1] + 1
            found.values[key] += (value - found.values[key]) / times
            seen[key] = number, times
            merged += 1
            continue
        again += key in seen
        found.values[key] = value
        seen[key] = number, 1
    if merged:
        more = f"{many(merged, 'value')} more than steps, as several processes write them"
        found.remarks.append(f"{more}: the mean of each step's values is used")
    if again:
        found.remarks.append(f"{many(again, 'step')} written again after a restart: the last value is used")
    return found
