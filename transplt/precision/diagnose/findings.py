"""What was found in logs: lines, the blocks that they form, and errors in the order of cause and effect.

The lines of one failure stand together: the exception, the code of torch_npu, those of CANN. Such a block is one error,
named by its line that is nearest to the root. Blocks of all ranks and files are put in order by time; what only follows
from another error comes after all that does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from transplt.precision.diagnose.anchors import LOGGED, UNKNOWN
from transplt.precision.diagnose.lines import Moment
from transplt.precision.diagnose.operators import with_operators
from transplt.precision.diagnose.stacks import Frame
from transplt.precision.diagnose.versions_named import VersionsNamed
from transplt.rules.errors import Kind, KnownError, known_errors

#: Lines of one failure are no further apart than that, in lines of the log.
NEAR = 60
_MOST_WHO, _MOST_LINES, _MOST_UNKNOWN, _MOST_SAID = 64, 12, 50, 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line that says something: what (None: an error that is not known), where, when, and who wrote it."""

    error: KnownError | None
    text: str
    source: str
    number: int
    moment: Moment | None
    who: str
    around: tuple[str, ...] = ()
    #: A warning: the program went on.
    passing: bool = False

    @property
    def depth(self) -> float:
        """How near to the root: the smaller explains the larger. What is not known explains what comes at the end.

        Of two alike, words say more than a bare number, and that more than a code of torch_npu.
        """
        if self.error is None:
            return Kind.WRAPPER + 0.5
        if self.error.name.startswith("plog-"):
            return Kind.WRAPPER + 0.6
        general = 0.3 if self.error.alone else 0.1 if self.error.area == "general" or self.error.vague else 0.0
        if self.passing and self.error.kind < Kind.WRAPPER:
            return Kind.WRAPPER + 0.7 + self.error.kind / 100
        code = 0.25 if self.error.code.isdigit() else 0.4 if self.error.code[:3] == "ERR" else 0.0
        return self.error.kind + code + general


@dataclass(slots=True)
class Block:
    """The lines of one failure of one process; `frames` is its traceback, `operators` those that its lines name,
    `details` what CANN says behind a code."""

    lines: list[Line]
    frames: tuple[Frame, ...] = ()
    last: int = 0
    operators: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    def head(self) -> Line:
        """The line that is nearest to the root."""
        return min(self.lines, key=lambda line: line.depth)

    def said(self) -> list[str]:
        """What else the failure says in words: exceptions that are no known error, and what CANN says behind a code."""
        head = self.head()
        found = [line.text for line in self.lines if line.error is None and line is not head]
        found += [detail for detail in self.details if detail.rsplit(" (", 1)[0] not in head.text]
        return list(dict.fromkeys(found))[:_MOST_SAID]


@dataclass(slots=True)
class Failure:
    """One error, with all blocks that it is the head of: `first` is the earliest."""

    head: Line
    first: Block
    times: int = 0
    who: set[str] = field(default_factory=set)
    beside: dict[str, KnownError] = field(default_factory=dict)
    operators: tuple[str, ...] = ()

    @property
    def consequence(self) -> bool:
        """True where it only follows from another error."""
        return self.head.error is not None and self.head.error.kind in (Kind.CONSEQUENCE, Kind.AFTERMATH)

    @property
    def explains(self) -> bool:
        """True where it says what is wrong, or which part failed."""
        return self.head.error is not None and self.head.error.kind in (Kind.CAUSE, Kind.FAULT)

    @property
    def vague(self) -> bool:
        """True where another error says more, if there is one."""
        return self.head.error is not None and self.head.error.vague

    @property
    def wrapper(self) -> bool:
        """True where it only says that something failed: a wrapper, or a sentence of a logger that nobody knows."""
        if self.head.error is None:
            return UNKNOWN.match(self.head.text) is None and LOGGED.search(self.head.text) is None
        return self.head.error.kind is Kind.WRAPPER


@dataclass(slots=True)
class Remark:
    """A line that is no error, and how often it was seen."""

    error: KnownError
    first: Line
    times: int = 0


_OVER = "-over"
#: Frameworks for NPUs without torch, as their logs name them.
_FRAMEWORKS = (b"mindspore", b"MindSpore", b"ggml", b"[MIE", b"mindie", b"paddle", b"tensorflow", b"npu_bridge")


class Collected:
    """Failures and remarks of all logs, of bounded size."""

    def __init__(self) -> None:
        self._failures: dict[str, Failure] = {}
        self.remarks: dict[str, Remark] = {}
        #: Lines that are no errors and decide between the causes of one: the first of each.
        self.clues: dict[str, Line] = {}
        self._named = {"torch": False, "another": False}
        self._ends: list[Line] = []
        #: The last line of each log that tells of no error.
        self.last_lines: list[Line] = []
        self.versions = VersionsNamed()
        self.unknown_left_out = 0
        self._year = 0

    @property
    def torch(self) -> bool:
        """False where the logs name another framework and not torch: it has other switches."""
        return self._named["torch"] or not self._named["another"]

    def wrote(self, piece: bytes) -> None:
        """Looks in a piece of a log for the framework that wrote it."""
        if not self._named["torch"]:
            self._named["torch"] = b"torch" in piece
            self._named["another"] = self._named["another"] or any(name in piece for name in _FRAMEWORKS)

    def remark(self, line: Line) -> None:
        """Counts a line that is no error."""
        assert line.error is not None
        self.remarks.setdefault(line.error.name, Remark(line.error, line)).times += 1

    def clue(self, line: Line) -> None:
        """Keeps a line that decides between causes; one called NAME-over takes back the clue NAME."""
        assert line.error is not None
        if line.error.name.endswith(_OVER):
            self.clues.pop(line.error.name.removesuffix(_OVER), None)
        self.clues.setdefault(line.error.name, line)

    def not_read_on(self, literals: set[str]) -> None:
        """Takes back clues whose end may have been missed, as these literals were looked for no more."""
        for error in known_errors() if literals else ():
            if error.name.endswith(_OVER) and any(sign.literal in literals for sign in error.signs):
                self.clues.pop(error.name.removesuffix(_OVER), None)

    def end(self, line: Line) -> None:
        """Takes the line with which a log ends, which counts where nothing else is found."""
        self._ends.append(line)

    def block(self, block: Block) -> None:
        """Takes a block that is complete."""
        head = block.head()
        self._year = self._year or next((line.moment.year for line in block.lines if line.moment), 0)
        # An unknown one is known again by its text without what differs from time to time: numbers, addresses, times.
        key = head.error.name if head.error else re.sub(r"0x[0-9a-fA-F]+|\d+", "#", head.text)[:200]
        if (failure := self._failures.get(key)) is None:
            unknown = sum(not each.head.error for each in self._failures.values())
            if head.error is None and unknown >= _MOST_UNKNOWN:
                self.unknown_left_out += 1
                return
            failure = self._failures[key] = Failure(head, block)
        elif self._place(head) < self._place(failure.head):
            failure.head, failure.first = head, block
        failure.times += 1
        if head.who and len(failure.who) < _MOST_WHO:
            failure.who.add(head.who)
        failure.operators = with_operators(failure.operators, [*block.operators])
        # A line of a module without a code says nothing that can be looked up.
        named = [line.error for line in block.lines if line.error and not line.error.name.startswith("plog-")]
        others = [error for error in named if error != head.error]
        failure.beside |= {error.name: error for error in others}

    def failures(self) -> list[Failure]:
        """What came first, first. What only says that something below failed comes after what is known to be wrong, and
        what only follows from another error after that."""
        every = [*self._failures.values()] or [Failure(line, Block([line]), 1) for line in self._ends]
        heads = [failure.head for failure in every]
        if len({head.source for head in heads}) == 1 and any(head.moment is None for head in heads):
            found = sorted(every, key=lambda failure: failure.head.number)
        else:
            found = sorted(every, key=lambda failure: self._place(failure.head))
        known = any(failure.explains for failure in found)
        clear = any(failure.explains and not failure.vague for failure in found)
        ended = any(not failure.consequence and not failure.head.passing for failure in found)

        def rank(failure: Failure) -> int:
            if failure.consequence:
                return 2
            return int((known and failure.wrapper) or (clear and failure.vague) or (ended and failure.head.passing))

        return sorted(_last_first(found), key=rank)

    def untimed(self) -> bool:
        """True where lines of several logs cannot be put in order because some have no time."""
        heads = [failure.head for failure in self._failures.values()]
        return len({head.source for head in heads}) > 1 and any(head.moment is None for head in heads)

    def _place(self, line: Line) -> tuple[bool, int, str, float, str, int]:
        if line.moment is None:
            return True, 0, "", line.depth, line.source, line.number
        return False, line.moment.year or self._year, line.moment.day, line.depth, line.source, line.number


def added(block: Block, line: Line) -> None:
    """Puts a line into a block, which stays small."""
    if len(block.lines) < _MOST_LINES or line.depth < block.head().depth:
        block.lines.append(line)


#: A program that worked on for so long after an error had got over it.
_GOT_OVER = timedelta(minutes=5)


def _last_first(found: list[Failure]) -> list[Failure]:
    """What one process got over comes behind the cause that ended it; of several processes the order stays."""
    causes = [each for each in found if each.explains and not each.head.passing]
    if len({(each.head.source, each.head.who) for each in found if not each.consequence}) != 1 or len(causes) < 2:
        return found
    first, last = causes[0], causes[-1]
    if last.head.error is None or last.head.error.kind is not Kind.CAUSE or last.who != first.who:
        return found
    then, now = _reckoned(first.head.moment), _reckoned(last.head.moment)
    if then is None or now is None or now - then < _GOT_OVER:
        return found
    return [last, *(each for each in found if each is not last)]


def _reckoned(moment: Moment | None) -> datetime | None:
    """A moment that can be reckoned with; None where the log does not say one."""
    if moment is None:
        return None
    try:
        return datetime.fromisoformat(f"{moment.year or 2024:04d}-{moment.day[:14].replace(' ', 'T')}")
    except ValueError:
        return None
