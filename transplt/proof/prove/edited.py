"""The lines in which a port differs from its original, but for devices: one of them makes it train otherwise."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from transplt.base.text.source import lines_of
from transplt.proof.prove.branches import HELPER, files_of_both
from transplt.proof.prove.evaluation import RESULTS
from transplt.proof.prove.found import Difference
from transplt.proof.prove.steps import SETTING
from transplt.proof.prove.training import Place

#: Names of one kind of card, which a port changes everywhere.
_DEVICES = (
    (re.compile(r"\b(?:torch_npu\.npu|torch_npu|torch\.npu|torch\.cuda)\b"), "torch.card"),
    (re.compile(r"\b(?:cuda|npu)\b"), "card"),
    (re.compile(r"\.to\((?:\w+\.)?device\)"), ".card()"),
    (re.compile(r"\b(?:nccl|hccl)\b"), "ccl"),
    (re.compile(r"\b(?:CUDA_VISIBLE_DEVICES|ASCEND_RT_VISIBLE_DEVICES)\b"), "VISIBLE"),
)
#: What only many cards need: who reads the program sees at once that it is others there.
_OF_RANKS = re.compile(
    r"\b(?:dist|distributed|rank|world|world_size|LOCAL_RANK|WORLD_SIZE|DistributedSampler|DistributedDataParallel|"
    r"set_epoch|all_reduce|all_gather|broadcast|barrier|init_process_group|destroy_process_group|torchrun|npu_port)\b"
)
_BARE = re.compile(r"\s*(?:#.*|import .*|from \S+ import .*)?$")
#: What each port to many cards has, and has rightly nearly always.
_KNOWN = re.compile(
    r"DistributedSampler|DistributedDataParallel|\bDDP\(|set_epoch|process_group|barrier\(|set_device|environ|sampler=|"
    r"local_rank|rank\w*(?:\(\))? == 0|is_main|print\(|\b(?:rank|world\w*|device)\b[\w, ]* = "
)
#: What a difference tells, and what the line is seen by that causes it, be the others as many as they may; whether it
#: may be any such line, where the place of the difference hangs on none.
_SURE = tuple(
    (re.compile(told), re.compile(words), anywhere)
    for told, words, anywhere in (
        ("no gradients were exchanged", r"no_sync", True),
        ("changed after the wrapper", r"\w_\(|\.data\b|load_state_dict", True),
        ("on the same device", r"\bcard:\d|\.card\(\d", True),
        (r"starts with other values on rank|the buffer \S+ of rank \d+ is not that", r"seed\w*\(.*rank", True),
        ("sampler is a DistributedSampler|set_epoch is not called", r"Sampler\(", False),
    )
)
#: A cause that has its place.
_PLACED = re.compile(r"'s \S+:\d+ is missing$")
#: So many lines somebody looks at; where more are others, none of them is the one.
_FEW = 6
#: So many statements that a place hangs on are looked at.
_NEAR = 12


#: What a difference tells, and what lines that cause it do: the first row that its words fit counts.
_CAUSES = tuple(
    (re.compile(told), re.compile(words, re.IGNORECASE))
    for told, words in (
        ("starts with other values", r"seed|broadcast|load|init_|copy"),
        ("noise|draws", r"seed|generator|rand"),
        ("learning rate|weight decay|ReduceLROnPlateau|^lr ", r"\blr\b|optim|sched|loss|metric"),
        (r"\bsamples?\b|epoch \d+|batch \d+|same data", r"sampler|shuffle|seed|perm|loader|shard|epoch|rank|::"),
        (r"\b(?:writes?|removes|renames|No such file)\b", r"save|write|open|dump|remove|rename|barrier|wait|rank"),
        ("evaluat|running_|buffer", r"reduce|gather|sync|buffer|ema|eval|valid|copy|average|update"),
        ("once more|more often|does not reach|waits in", r"\bif\b|\bwhile\b|break|stop|range|\[:|len\(|steps"),
        ("gradient|loss of step|differs between", r"grad|reduce|gather|average|sync|clip|wrap|parallel|ddp|loss|mean"),
    )
)


@dataclass(frozen=True)
class Edit:
    """A run of lines that stands for another one in the original. `first` and `last` count from 1; where the port has
    no line there, both are the line that comes next, or the last one of the block that ends there. `original` is the
    first line in the original; `of_ranks`: only many cards need it; `text` is the code of both, `lost` and `code` the
    lines of each."""

    path: str
    first: int
    last: int
    original: int
    of_ranks: bool
    text: str = field(default="", compare=False)
    lost: Sequence[_Line] = field(default=(), compare=False, repr=False)
    code: Sequence[_Line] = field(default=(), compare=False, repr=False)

    @property
    def place(self) -> Place:
        return Place(self.path, self.first)

    def is_near(self, place: Place | None, *, beside: bool = True, below: bool = True) -> bool:
        """Whether a line is one of it, or one beside, or the one below, which comes of it."""
        if place is None or place.path != self.path:
            return False
        return self.first - beside <= place.line <= self.last + below

    def calls(self, at: Place) -> bool:
        """Whether a call stands in it or beside it; what many cards need does not change the call in the next line."""
        own = [line.text for line in self.code if line.number == at.line and at.path == self.path]
        return any(not _KNOWN.search(text) for text in own) if self.of_ranks else self.is_near(at)


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
        lines = [line.number for line in right[c:d]] or [1]
        if c == d and right:  # at the line that comes where one is lost, or the one before where that ends the block
            ends = c == len(right) or right[c].depth < left[a].depth
            lines = [right[max(c - ends, 0)].number]
        origin = left[min(a, len(left) - 1)].number if left else 1
        text = "\n".join(line.text for line in (*left[a:b], *right[c:d]))
        yield Edit(name, lines[0], lines[-1], origin, bool(_OF_RANKS.search(text)), text, left[a:b], right[c:d])


def _moved(name: str, left: Sequence[_Line], right: Sequence[_Line], opens: bool) -> Iterator[Edit]:
    """Lines that stand in another block than in the original; those behind a new header, or a lost one, go with it."""
    shift = right[0].depth - left[0].depth if opens else 0
    for mine, theirs in zip(left, right, strict=True):
        moved = theirs.depth - mine.depth
        if moved and moved != shift:
            of_ranks = bool(_OF_RANKS.search(theirs.text))
            yield Edit(name, theirs.number, theirs.number, mine.number, of_ranks, theirs.text)
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


def pointed(
    first: Difference,
    found: Sequence[Edit],
    of_ranks: bool | None = False,
    hangs_on: Callable[[Place], Iterable[range]] = lambda place: (),
    follow: bool = True,
) -> Difference:
    """The difference at the line that may cause it: where that was found is among those that are as in the original, a
    caller of it that is not, else the one place that is not (`of_ranks`: for several cards), or of a few the one that
    does what such a difference comes from, else that which the place hangs on, as `hangs_on` tells, if it is to
    `follow` that; else all of a few are named."""
    sure = _surely(first, found, hangs_on)
    if sure is not None:
        return sure
    computed = bool(of_ranks) and first.cause.endswith("than with one process")  # the first line that does
    given = _is_given(first, found, follow)
    follow = given or (follow and not (first.event or computed))
    hung = _hung_on(first.place, found, hangs_on, given) if follow else None
    if given and hung is not None:
        return _moved_to(hung, first)
    beside = not (of_ranks and hung is not None)
    near = next((edit for edit in found if edit.is_near(first.place, beside=beside)), None)
    if near is not None and first.place is not None:
        # Beside the only one it is that one.
        line = min(max(first.place.line, near.first), near.last) if len(found) == 1 or not beside else first.place.line
        return replace(first, place=Place(near.path, line), original=first.original or Place(near.path, near.original))
    own = [edit for edit in found if of_ranks in (None, edit.of_ranks)] or (found if of_ranks else [])
    others = [Place(edit.path, line) for edit in own for line in range(edit.first, edit.last + 1)]
    few = len(others) <= _FEW and not of_ranks  # what only many cards need is right in most
    one, cause = _cause_among(own, first, found, few)
    if one is not None:
        cause = "; ".join(filter(None, (cause, _seen(first))))
        return replace(first, place=one.place, original=Place(one.path, one.original), cause=cause)
    if hung is not None:
        return _moved_to(hung, first)
    if int(not first.event) < len(others) <= _FEW:
        told = f"lines that differ from the original in more than devices: {', '.join(map(str, others))}"
        return replace(first, cause="; ".join(filter(None, (first.cause, told))))
    return first


def _is_given(first: Difference, found: Sequence[Edit], follow: bool) -> bool:
    """Whether a difference is at a line that only uses what is otherwise: a number comes of what the line that sets it
    is given, unless that is another one itself, and results of all that is done with them."""
    here = any(edit.is_near(first.place, beside=False, below=False) for edit in found)
    return first.figure == RESULTS or (follow and first.figure[:1] == (SETTING,) and not here)


def _moved_to(place: Place, first: Difference) -> Difference:
    """The difference told at another place, unless it is that already."""
    return first if place == first.place else replace(first, place=place, original=None, cause=_seen(first))


def _seen(first: Difference) -> str:
    """The cause of a difference that is told at another place."""
    if first.place is None or _PLACED.search(first.cause):
        return first.cause
    return f"{first.place}: {first.cause}" if first.cause else f"seen at {first.place}"


def _surely(
    first: Difference, found: Sequence[Edit], hangs_on: Callable[[Place], Iterable[range]]
) -> Difference | None:
    """The difference at the line that is known by what it says, or that stands for the one of the original which is
    missing."""
    told = f"{first.what}; {first.cause}"
    for kind, words, anywhere in _SURE:
        if kind.search(told):
            lines = [(each.path, line) for each in found for line in each.code if words.search(line.text)]
            name = re.match(r"\S+(\.\w+) starts", first.what)  # of a parameter, which a line may write
            own = [each for each in lines if name is not None and re.search(rf"{name[1]}\b", each[1].text)]
            fits = [Place(path, line.number) for path, line in own or lines]
            hanging = [first.place] if fits and first.place is not None else []
            way = (Place(each.path, line) for each in hanging for part in hangs_on(each) for line in part)
            at = next((each for each in chain(way, fits[:anywhere]) if each in fits), None)
            return _moved_to(at, first) if at is not None else None
    return _lost_line(first, found) if first.cause.endswith(("is missing", "is not called")) else None


def _lost_line(first: Difference, found: Sequence[Edit]) -> Difference | None:
    """The difference at the line most like that of the original which is missing."""
    for edit in found:
        lost = [line.text for line in edit.lost if first.original == Place(edit.path, line.number)]
        texts = {line.text: line.number for each in found if each.path == edit.path for line in each.code}
        for text in difflib.get_close_matches(lost[0], texts, 1) if lost else ():
            return replace(first, place=Place(edit.path, texts[text]))
    return None


def _hung_on(
    place: Place | None, found: Sequence[Edit], hangs_on: Callable[[Place], Iterable[range]], nearest: bool
) -> Place | None:
    """The nearest line that a place hangs on and that is another than in the original, but for what each port has; one
    that reckons with ranks before one that does not, unless it is to be the `nearest`."""
    if place is None:
        return None
    texts = {line.number: line.text for edit in found if edit.path == place.path for line in edit.code}
    kept = {number: text for number, text in texts.items() if not _KNOWN.search(text)}
    lines = [line for statement in islice(hangs_on(place), _NEAR) for line in statement if line in kept]
    of_ranks = [line for line in lines if _OF_RANKS.search(kept[line]) and not nearest]
    return next((Place(place.path, line) for line in (*of_ranks, *lines)), None)


def _cause_among(own: Sequence[Edit], first: Difference, found: Sequence[Edit], few: bool) -> tuple[Edit | None, str]:
    """Which of these edits the difference comes from, and how that is known; an event has its place, unless one place
    is all that is another."""
    another = "this line differs from the original"
    if not first.event and (called := [(edit, at) for at in first.callers for edit in own if edit.calls(at)]):
        edit, at = called[0]
        return replace(edit, first=min(max(at.line, edit.first), edit.last)), another
    if len(own) == 1 and (len(found) == 1 or not first.event):
        what = f"differs from the original in more than devices{' and distributed training' * (len(found) > 1)}"
        what = "for several cards differs from the original" if len(found) > 1 and own[0].of_ranks else what
        return own[0], f"no other line {what}"
    return _fitting(first, own) if few else None, another


def _fitting(first: Difference, own: Sequence[Edit]) -> Edit | None:
    """Of a few edits the one that does what such a difference comes from: of several the last before it."""
    told = f"{first.what}; {first.cause}"
    words = next((words for kind, words in _CAUSES if kind.search(told)), None)
    fits = [edit for edit in own if words is not None and words.search(edit.text)]
    before = [edit for edit in fits if first.place is not None and edit.place <= first.place]
    return next(iter([*before[::-1], *fits]), None)

