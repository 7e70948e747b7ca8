"""The lines in which a port differs from its original, but for devices: one of them makes it train otherwise."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transplt.proof.prove.branches import files_of_both
from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Place

#: Names of one kind of card, which a port changes everywhere.
_DEVICES = (
    (re.compile(r"\b(?:torch_npu|torch\.npu|torch\.cuda)\b"), "torch.card"),
    (re.compile(r"\b(?:cuda|npu)\b"), "card"),
    (re.compile(r"\b(?:nccl|hccl)\b"), "ccl"),
    (re.compile(r"\b(?:CUDA_VISIBLE_DEVICES|ASCEND_RT_VISIBLE_DEVICES)\b"), "VISIBLE"),
)
#: What only many cards need: who reads the program sees at once that it is others there.
_OF_RANKS = re.compile(
    r"\b(?:dist|distributed|rank|world|world_size|LOCAL_RANK|WORLD_SIZE|DistributedSampler|DistributedDataParallel|"
    r"set_epoch|all_reduce|all_gather|broadcast|barrier|init_process_group|destroy_process_group|torchrun)\b"
)
_BARE = re.compile(r"\s*(?:#.*|import .*|from \S+ import .*)?$")
#: So many lines somebody looks at; where more are others, none of them is the one.
_FEW = 6


@dataclass(frozen=True)
class Edit:
    """A run of lines that stands for another one in the original; `first` and `last` count from 1, and lie before and
    behind it where the port has no line there. `original` is the first line there."""

    path: str
    first: int
    last: int
    original: int
    of_ranks: bool

    @property
    def place(self) -> Place:
        return Place(self.path, self.first)

    def is_near(self, place: Place | None) -> bool:
        """Whether a line is one of it, or one beside."""
        return place is not None and place.path == self.path and self.first - 1 <= place.line <= self.last + 1


def edits(original: Path, migrated: Path) -> list[Edit]:
    """Where the two programs differ, but for devices, imports and comments."""
    return [edit for name, before, after in files_of_both(original, migrated) for edit in _edits(name, before, after)]


def _edits(name: str, before: str, after: str) -> Iterator[Edit]:
    left, right = _written(before), _written(after)
    matcher = difflib.SequenceMatcher(None, [text for _, text in left], [text for _, text in right], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        lines = [number for number, _ in right[c:d]] or [right[min(c, len(right) - 1)][0] if right else 1]
        origin = left[min(a, len(left) - 1)][0] if left else 1
        of_ranks = any(_OF_RANKS.search(text) for _, text in (*left[a:b], *right[c:d]))
        yield Edit(name, lines[0], lines[-1], origin, of_ranks)


def _written(text: str) -> list[tuple[int, str]]:
    """The lines with code, by number, with one name for all kinds of cards."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if _BARE.match(line):
            continue
        for pattern, name in _DEVICES:
            line = pattern.sub(name, line)
        found.append((number, line.strip()))
    return found


def pointed(first: Difference, found: Sequence[Edit], *, between_ranks: bool = False) -> Difference:
    """The difference at the line that may cause it: where that was found is among those that are as in the original, a
    caller of it that is not, else the one place that is not; of a few lines all. What differs `between_ranks` comes
    from what only many cards need, everything else from the other lines."""
    near = next((edit for edit in found if edit.is_near(first.place)), None)
    if near is not None and first.original is None:
        return replace(first, original=Place(near.path, near.original))
    if first.place is None or near is not None:
        return first
    own = [edit for edit in found if edit.of_ranks == between_ranks]
    called = next((edit for place in first.callers for edit in own if edit.is_near(place)), None)
    seen = f"; {first.place}: {first.cause}" if first.cause else f"; seen at {first.place}"
    if called is not None:
        cause = f"this line is not that of the original{seen}"
        return replace(first, place=called.place, original=Place(called.path, called.original), cause=cause)
    if len(own) == 1:
        cause = f"no other line differs from the original, but for devices{seen}"
        return replace(first, place=own[0].place, original=Place(own[0].path, own[0].original), cause=cause)
    lines = [Place(edit.path, line) for edit in own for line in range(edit.first, edit.last + 1)]
    if 1 < len(lines) <= _FEW:
        others = ", ".join(map(str, lines))
        cause = f"{first.cause}; " if first.cause else ""
        return replace(first, cause=f"{cause}lines that differ from the original, but for devices: {others}")
    return first
