"""The lines in which a port differs from its original, but for devices: one of them makes it train otherwise."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from transplt.base.text.source import lines_of
from transplt.proof.prove.branches import HELPER, files_of_both
from transplt.proof.prove.found import Difference, Lines
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
    r"set_epoch|all_reduce|all_gather|broadcast|barrier|init_process_group|destroy_process_group|torchrun|npu_port)\b"
)
_BARE = re.compile(r"\s*(?:#.*|import .*|from \S+ import .*)?$")
#: So many lines somebody looks at; where more are others, none of them is the one.
_FEW = 6


@dataclass(frozen=True)
class Edit:
    """A run of lines that stands for another one in the original. `first` and `last` count from 1; where the port has
    no line there, both are the line that comes next. `original` is the first line in the original; `of_ranks`: only
    many cards need it."""

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
    return [
        edit
        for name, before, after in files_of_both(original, migrated)
        if name.rpartition("/")[2] != HELPER
        for edit in _edits(name, before, after)
    ]


def _edits(name: str, before: str, after: str) -> Iterator[Edit]:
    left, right = _written(before), _written(after)
    matcher = difflib.SequenceMatcher(None, [line.text for line in left], [line.text for line in right], autojunk=False)
    opens = False
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _moved(name, left[a:b], right[c:d], opens)
            continue
        opens = any(line.text.endswith(":") for line in (*left[a:b], *right[c:d]))
        lines = [line.number for line in right[c:d]] or [right[min(c, len(right) - 1)].number if right else 1]
        origin = left[min(a, len(left) - 1)].number if left else 1
        of_ranks = any(_OF_RANKS.search(line.text) for line in (*left[a:b], *right[c:d]))
        yield Edit(name, lines[0], lines[-1], origin, of_ranks)


def _moved(name: str, left: Sequence[_Line], right: Sequence[_Line], opens: bool) -> Iterator[Edit]:
    """Lines that stand in another block than in the original; those behind a new header, or a lost one, go with it."""
    shift = right[0].depth - left[0].depth if opens else 0
    for mine, theirs in zip(left, right, strict=True):
        moved = theirs.depth - mine.depth
        if moved and moved != shift:
            yield Edit(name, theirs.number, theirs.number, mine.number, bool(_OF_RANKS.search(theirs.text)))
        shift = shift if moved else 0


class _Line(NamedTuple):
    number: int
    text: str
    depth: int


def _written(text: str) -> list[_Line]:
    """The lines with code, with one name for all kinds of cards."""
    found: list[_Line] = []
    outer: list[int] = []
    for number, line in enumerate(lines_of(text), 1):
        if _BARE.match(line):
            continue
        plain = line.expandtabs().rstrip()
        bare = plain.lstrip()
        for pattern, name in _DEVICES:
            bare = pattern.sub(name, bare)
        indent = len(plain) - len(plain.lstrip())
        while outer and outer[-1] >= indent:
            outer.pop()
        found.append(_Line(number, bare, len(outer)))
        outer.append(indent)
    return found


def pointed(first: Difference, found: Sequence[Edit], lines: Lines = Lines.OTHERS) -> Difference:
    """The difference at the line that may cause it: where that was found is among those that are as in the original, a
    caller of it that is not, else the one place of these `lines` that is not; of a few all. The place of an event
    stays."""
    near = next((edit for edit in found if edit.is_near(first.place)), None)
    if near is not None and first.original is None:
        return replace(first, original=Place(near.path, near.original))
    if first.place is None or near is not None:
        return first
    own = _chosen_edits(found, lines)
    called = next((edit for place in first.callers for edit in own if edit.is_near(place)), None)
    seen = f"; {first.place}: {first.cause}" if first.cause else f"; seen at {first.place}"
    if called is not None and not first.event:
        cause = f"this line differs from the original{seen}"
        return replace(first, place=called.place, original=Place(called.path, called.original), cause=cause)
    if len(own) == 1 and not first.event:
        cause = f"no other line{_of_kind(own[0], found)}{seen}"
        return replace(first, place=own[0].place, original=Place(own[0].path, own[0].original), cause=cause)
    others = [Place(edit.path, line) for edit in own for line in range(edit.first, edit.last + 1)]
    if int(not first.event) < len(others) <= _FEW:
        cause = f"{first.cause}; " if first.cause else ""
        told = f"lines that differ from the original in more than devices: {', '.join(map(str, others))}"
        return replace(first, cause=f"{cause}{told}")
    return first


def _chosen_edits(found: Sequence[Edit], lines: Lines) -> list[Edit]:
    of_ranks = [edit for edit in found if edit.of_ranks]
    if lines is Lines.OF_RANKS or (lines is Lines.OF_RANKS_FIRST and of_ranks):
        return of_ranks
    return [edit for edit in found if lines is Lines.ALL or not edit.of_ranks]


def _of_kind(one: Edit, found: Sequence[Edit]) -> str:
    """What is true of all other lines, where one is the only one of its kind."""
    if len(found) == 1:
        return " differs from the original in more than devices"
    if one.of_ranks:
        return " for several cards differs from the original"
    return " differs from the original in more than devices and distributed training"
