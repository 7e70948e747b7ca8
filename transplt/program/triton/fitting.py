"""Whether the tiles of a kernel fit the unified buffer, and from which size of its blocks on they do not."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import count

from transplt.flow.facts import ProjectFacts
from transplt.program.triton.live import Lives
from transplt.program.triton.sizes import ANY, Range, Setting, settings_of

#: A size with which the growth of a peak is looked at: large enough that small tiles do not count.
_LARGE = 1 << 14
#: The largest tile that Triton takes (TRITON_MAX_TENSOR_NUMEL).
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Overflow:
    """A kernel that needs more than there is: at `node`, with `sizes`, or `each` bytes for each element of a product of
    `names`, which is too much from `least` on. `sure`: it happens with the sizes that the program has, or it depends
    on the data alone.
    """

    node: ast.stmt
    sure: bool
    bytes: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    each: float = 0.0
    least: int = 0


def overflow_of(lives: Lives, project: ProjectFacts, room: int) -> Overflow | None:
    """How a kernel overflows `room` bytes; None where it does not, or nothing is known of its sizes."""
    settings = settings_of(lives.model.kernel, project)
    found = [each for each in (_with(lives, setting, room) for setting in settings) if each is not None]
    found.sort(key=lambda each: (not each.sure, not each.sizes, each.least))
    return found[0] if found else None


def _with(lives: Lives, setting: Setting, room: int) -> Overflow | None:
    known = {name: size.known for name, size in setting.sizes.items() if size.known is not None}
    names = [name for name in sorted(lives.names) if name not in known]
    if not names:
        peak = lives.peak(known)
        if peak.bytes <= room or peak.node is None:
            return None
        return Overflow(peak.node, True, peak.bytes, {name: known[name] for name in sorted(lives.names & set(known))})
    ranges = {name: setting.sizes.get(name, ANY) for name in names}
    most = {name: each.most for name, each in ranges.items()}
    bounded = {name: size for name, size in most.items() if size is not None}
    if len(bounded) == len(most) and lives.peak({**known, **bounded}).bytes <= room:
        return None
    large = dict.fromkeys(names, _LARGE)
    before = lives.peak({**known, **large}).bytes
    # What adds little counts as 1: the rest is the product that the tiles grow with, or nothing is said.
    growing = [name for name in names if _doubles(lives, {**known, **large}, name, before)]
    known |= {name: max(1, ranges[name].least) for name in names if name not in growing}
    names, large = growing, dict.fromkeys(growing, _LARGE)
    peak = lives.peak({**known, **large})
    if not names or peak.node is None or not all(
        _doubles(lives, {**known, **large}, name, peak.bytes) for name in names
    ):
        return None
    if len(names) == 1:
        least = _least(lives, known, names[0], room)
    else:
        least = _power_over(room * _LARGE ** len(names) / peak.bytes)
    limit = 1
    for name in names:
        limit *= most.get(name) or _LARGEST
    if not least or least > min(limit, _LARGEST):
        return None
    sure = any(_grows(ranges[name]) for name in names) and (len(names) == 1 or all(_grows(ranges[n]) for n in names))
    return Overflow(peak.node, sure, names=tuple(names), each=peak.bytes / _LARGE ** len(names), least=least)


def _grows(each: Range) -> bool:
    return each.grows


def _doubles(lives: Lives, sizes: dict[str, int], name: str, before: int) -> bool:
    after = lives.peak({**sizes, name: 2 * sizes[name]}).bytes
    return before > 0 and 1.9 < after / before < 2.1


def _least(lives: Lives, known: dict[str, int], name: str, room: int) -> int:
    for exponent in count():
        size = 1 << exponent
        if size > _LARGEST:
            return 0
        if lives.peak({**known, name: size}).bytes > room:
            return size
    return 0


def _power_over(number: float) -> int:
    size = 1
    while size < number:
        size *= 2
    return size
