"""Whether the tiles of a kernel fit the memories of a core, and from which size of its blocks on they do not."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from transplt.fixers.triton.reader.live_tiles import Lives, Peak
from transplt.fixers.triton.reader.sizes import ANY, Range, Setting, settings_of
from transplt.flow.facts import ProjectFacts

_Peaks = Callable[[Mapping[str, int]], Peak]
#: A size with which the growth of a peak is looked at: large enough that small tiles do not count.
_LARGE = 1 << 14
#: A size that rows of data often have: blocks that are too large from there on are not taken for unlikely.
USUAL = 1 << 14
_BESIDE = 1 << 9
#: What a head of attention and a state have, by name, and how many of them: no model has more than 256 for long.
_OF_A_HEAD = re.compile(r"(?i)head_?dim|d_?head|hdim|d_?state")
_HEADS = 1 << 8
#: The longest rows that kernels for GPUs take at once (MAX_FUSED_SIZE of many).
_LONG = 1 << 16
#: The largest tile that Triton takes (TRITON_MAX_TENSOR_NUMEL).
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Overflow:
    """A kernel that needs more than there is at `node`: `bytes` with `sizes`, or `each` bytes for each element of a
    product of `names`, which is too much from `least` on. `sure`: it happens with the sizes that the program has, or
    depends on the data alone. `sums`: what does not fit is what one product adds up, in L0C.
    """

    node: ast.stmt
    sure: bool
    bytes: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    each: float = 0.0
    least: int = 0
    sums: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of the memories of a core: for the tiles of a vector core, and for what a cube core adds up."""

    tiles: int
    sums: int


def overflow_of(lives: Lives, project: ProjectFacts, room: Room) -> Overflow | None:
    """How a kernel overflows its memories; None where it does not, or nothing is known of its sizes.

    Of several configurations the one that takes least counts: triton-ascend's autotuner passes over those that do not
    compile (third_party/ascend/backend/runtime/autotuner.py).
    """
    if not lives.names:
        return None
    by_launch: dict[int, dict[tuple[object, ...], Setting]] = {}
    for setting in settings_of(lives.model.kernel, project):
        key = tuple(setting.sizes.get(name, ANY) for name in sorted(lives.names))
        by_launch.setdefault(id(setting.launch), {}).setdefault(key, setting)
    found = []
    for settings in by_launch.values():
        every = [_with(lives, setting, room) for setting in settings.values()]
        over = [each for each in every if each is not None]
        if len(over) == len(every):
            found.append(max(over, key=lambda each: (not each.sizes, each.least, -each.bytes)))
    found.sort(key=lambda each: (not each.sure, not each.sizes, each.least))
    return found[0] if found else None


def passed_over(lives: Lives, project: ProjectFacts, room: Room) -> list[tuple[Setting, Overflow]]:
    """The configurations of an autotuner that do not fit, where others may."""
    found: dict[int, tuple[Setting, Overflow]] = {}
    for setting in settings_of(lives.model.kernel, project) if lives.names and lives.model.kernel.configs else ():
        over = _with(lives, setting, room)
        if over is not None and over.sizes and setting.node is not None:
            found.setdefault(id(setting.node), (setting, over))
    return [*found.values()]


def _with(lives: Lives, setting: Setting, room: Room) -> Overflow | None:
    found = _overflow(lives, lives.peak, setting, room.tiles)
    if found is None or not found.sure:
        sums = _overflow(lives, lives.sums, setting, room.sums)
        found = replace(sums, sums=True) if sums is not None and (found is None or sums.sure) else found
    return found


def _overflow(lives: Lives, peak_of: _Peaks, setting: Setting, room: int) -> Overflow | None:
    known = {name: size.known for name, size in setting.sizes.items() if size.known is not None and name in lives.names}
    names = sorted(lives.names - set(known))
    if not names:
        peak = peak_of(known)
        fits = peak.bytes <= room or peak.node is None
        return None if fits or peak.node is None else Overflow(peak.node, True, peak.bytes, known)
    ranges = {name: setting.sizes.get(name, ANY) for name in names}
    bounded = {name: each.most for name, each in ranges.items() if each.most is not None}
    if len(bounded) == len(names) and peak_of({**known, **bounded}).bytes <= room:
        return None
    # The product that the tiles grow with; where they are a sum, each of its parts, as if the others were 1.
    together = {**known, **dict.fromkeys(names, _LARGE)}
    growing = [name for name in names if _doubles(peak_of, together, name)]
    found = [_growing(peak_of, known, ranges, each, room) for each in ([growing] if growing else [[n] for n in names])]
    over = min((each for each in found if each is not None), key=lambda each: each.least, default=None)
    if over is None or not over.sure or all(ranges[name].most is not None for name in over.names):
        return over
    if any(map(_OF_A_HEAD.search, over.names)):
        return replace(over, sure=over.least <= _HEADS)
    # Rows of data are long where they are tiles of their own; beside another axis they are features of a head.
    return replace(over, sure=over.least <= (USUAL if lives.rows.issuperset(over.names) else _BESIDE))


def _growing(
    peak_of: _Peaks, known: dict[str, int], ranges: dict[str, Range], growing: list[str], room: int
) -> Overflow | None:
    """From where on the product of some names is too large."""
    least = {name: max(1, each.least) for name, each in ranges.items() if name not in growing}
    large = {**known, **least, **dict.fromkeys(growing, _LARGE)}
    peak = peak_of(large)
    if peak.node is None or not all(_doubles(peak_of, large, name) for name in growing):
        return None
    limit = prod(ranges[name].most or _LARGEST for name in growing)
    start = _from(peak_of, {**known, **least}, growing, peak.bytes, room)
    if not start or start > min(limit, _LARGEST):
        return None
    grows = all(ranges[name].grows for name in growing)
    bounded = all(ranges[name].most is not None for name in growing)
    if not bounded and start > (_LONG if grows else USUAL):
        return None  # nobody says that it is ever so large
    each = peak.bytes / _LARGE ** len(growing)
    return Overflow(peak.node, grows, sizes=known, names=tuple(growing), each=each, least=start)


def _from(peak_of: _Peaks, known: dict[str, int], growing: list[str], bytes: int, room: int) -> int:
    """The power of 2 from which on a product of names is too large; 0 where it never is."""
    if len(growing) > 1:
        size = 1
        while size <= _LARGEST and size * bytes <= room * _LARGE ** len(growing):
            size *= 2
        return size if size <= _LARGEST else 0
    low, high = 0, _LARGEST.bit_length()  # what is too large stays so
    while low < high:
        middle = (low + high) // 2
        if peak_of({**known, growing[0]: 1 << middle}).bytes > room:
            high = middle
        else:
            low = middle + 1
    return 1 << low if low < _LARGEST.bit_length() else 0


def _doubles(peak_of: _Peaks, sizes: dict[str, int], name: str) -> bool:
    before = peak_of(sizes).bytes
    after = peak_of({**sizes, name: 2 * sizes[name]}).bytes
    return before > 0 and 1.9 < after / before < 2.1
