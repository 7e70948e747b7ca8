"""The one record type that every report renders, and the result of migrating one file."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

#: The code of the remark that says which level of apex a program got, and why.
APEX_LEVEL = "NPU773"
#: The help of an edit that is made on request, where it says nothing else.
ON_REQUEST = "applied with --unsafe-fixes"

#: What kernels in Triton say to a GPU: a project for NPUs too may have other kernels for them.
KERNEL_CODES = ("NPU56", "NPU57")


class Level(str, Enum):
    """How far a finding may be trusted to a machine."""

    SAFE = "safe"  # applied by every migration
    UNSAFE = "unsafe"  # applied on request only (--unsafe-fixes, -sim, --tune)
    MANUAL = "manual"  # a person has to act
    UNKNOWN = "unknown"  # a CUDA token that no rule understands; a person has to look
    INFO = "info"  # worth knowing, never work left


class Effort(str, Enum):
    """What a manual finding costs a person who knows the code."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Operation(str, Enum):
    """What an edit does to the source, as `change_list.csv` names it."""

    INSERT = "INSERT"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in an input file.

    Lines and columns count from 1, columns in characters; `end_column` is the column after the last
    character. `start` and `end` are byte offsets into the UTF-8 form of the decoded text (no BOM).
    """

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement of the source at `Finding.span` by `after`."""

    operation: Operation
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the tool did or has to say about one place.

    `path` is relative to the input folder, with forward slashes. `edit` is set when the finding comes with a
    rewrite; `applied` says whether the output holds it. `ignored` holds the reason when a finding was switched off
    (by a comment or the settings), or when a token binds to something that has to stay as it is. `within` says where
    the place is for a reader of a file that no editor shows line by line: `cell 3, line 2` of a notebook. `aside`: no
    training script of the project reaches the file. `option` is what somebody has to ask for before the place counts,
    `late` when the file is loaded if not at the start: `called` by a function, in a `branch`, by `other` scripts, or
    behind a `guard`; `handled` says that the project trains on NPUs as it is. `blocks`: what this one keeps a program
    from, where its code says another thing of most (BLOCKS in transplt/rules/pages.py). `adaptor` is what writes the
    thing that is missing, where it is asked for (`--adapt`). `details` are what the message says, for those who go by
    it: (what, value), as ("library", "warp"); messages may be worded anew, or translated. `places` is how many planned
    edits it is: none for the second piece of one, and for a line that an edit needs.
    """

    path: str
    span: Span
    code: str
    level: Level
    message: str
    api: str = ""
    effort: Effort | None = None
    help: str = ""
    edit: Replacement | None = None
    applied: bool = False
    ignored: str = ""
    within: str = ""
    aside: bool = False
    option: str = ""
    late: str = ""
    blocks: str = ""
    adaptor: str = ""
    details: tuple[tuple[str, str], ...] = ()
    places: int = 1

    def detail(self, what: str) -> str:
        """The first detail of a kind; empty where there is none."""
        return next(self.every_detail(what), "")

    def every_detail(self, what: str) -> Iterator[str]:
        """The details of a kind, in the order of the message."""
        return (value for kind, value in self.details if kind == what)

    def as_far_as(self, other: Finding) -> Finding:
        """It, as far from the training as another one."""
        program = tuple(each for each in other.details if each[0] == "program")
        return replace(self, aside=other.aside, late=other.late, details=(*self.details, *program))

    @property
    def text(self) -> str:
        """The message, with the place where the line of the file does not say enough, and the option it is behind."""
        name = self.option.removesuffix("=")
        passed = name if name == self.option else f"the {'setting' if '.' in name else 'argument'} {name}"
        behind = f"only with {passed}" if passed else ""
        written = f"`--adapt {self.adaptor}` writes the replacement" if self.adaptor else ""
        rest = ", ".join(filter(None, (self.within, behind, written)))
        return f"{self.message} ({rest})" if rest else self.message

    @property
    def open(self) -> bool:
        """True when a person still has something to do here."""
        if self.ignored or self.applied:
            return False
        return self.level is not Level.INFO

    def sort_key(self) -> tuple[str, int, int]:
        """By place; sorting is stable, so that lines that go in at one place keep the order they have in the output."""
        return (self.path, self.span.start, self.span.end)


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The account of one file's CUDA-bound tokens: found = converted + manual + unknown + ignored.

    `comments` are counted apart and are not part of `found`.
    """

    found: int = 0
    converted: int = 0
    manual: int = 0
    unknown: int = 0
    ignored: int = 0
    comments: int = 0

    def __add__(self, other: TokenCount) -> TokenCount:
        return TokenCount(
            self.found + other.found,
            self.converted + other.converted,
            self.manual + other.manual,
            self.unknown + other.unknown,
            self.ignored + other.ignored,
            self.comments + other.comments,
        )


NO_TOKENS = TokenCount()


class HelperUse(NamedTuple):
    """What a file calls of the functions of the port, and the files that are to hold them (npu_port.py).

    `program`: modules that one interpreter may find by the same name belong together, and hold the same; empty for one
    of a package, which is no other's.
    """

    paths: tuple[str, ...]
    names: tuple[str, ...]
    program: str = ""


class TokenVerdict(str, Enum):
    """What became of a CUDA-bound token."""

    CONVERTED = "converted"
    MANUAL = "left"
    UNKNOWN = "not understood"
    IGNORED = "ignored"


class Cause(NamedTuple):
    """Why a token has its verdict: the code of the finding that speaks of it; of an ignored one the name of a reason.

    The names stand in rules/support/reasons.json; `detail` is what goes into the words of some (the library's name).
    """

    verdict: TokenVerdict
    code: str = ""
    reason: str = ""
    detail: str = ""


class TokenRow(NamedTuple):
    """A CUDA-bound token of an input file: line and column of its first character, both from 1, and its text."""

    line: int
    column: int
    token: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every counted token of a file, by place: 16 bytes a token, for big projects hand it from process to process.

    `packed` holds line, column, and the places of the text in `words` and of the cause in `causes`, of four bytes each.
    """

    words: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    packed: bytes = b""

    @staticmethod
    def of(rows: Iterable[TokenRow]) -> Ledger:
        """The ledger of tokens, in the order given."""
        words: dict[str, int] = {}
        causes: dict[Cause, int] = {}
        numbers = array("I")
        for row in rows:
            word = words.setdefault(row.token, len(words))
            numbers.extend((row.line, row.column, word, causes.setdefault(row.cause, len(causes))))
        return Ledger(tuple(words), tuple(causes), numbers.tobytes())

    def __len__(self) -> int:
        return len(self.packed) // (4 * array("I").itemsize)

    def __iter__(self) -> Iterator[TokenRow]:
        numbers = array("I", self.packed)
        for at in range(0, len(numbers), 4):
            line, column, word, cause = numbers[at : at + 4]
            yield TokenRow(line, column, self.words[word], self.causes[cause])

    def counts(self) -> dict[Cause, int]:
        """How many tokens each cause has."""
        found = dict.fromkeys(self.causes, 0)
        for cause in array("I", self.packed)[3::4]:
            found[self.causes[cause]] += 1
        return found

    def total(self, comments: int = 0) -> TokenCount:
        """The sums; `comments` are counted apart."""
        sums = dict.fromkeys(TokenVerdict, 0)
        for cause, count in self.counts().items():
            sums[cause.verdict] += count
        return TokenCount(len(self), **{each.name.lower(): count for each, count in sums.items()}, comments=comments)


NO_LEDGER = Ledger()


class Status(str, Enum):
    """What became of a file."""

    OK = "ok"  # read; changed or not
    UNREADABLE = "unreadable"  # could not be decoded or parsed; copied as it is
    INTERNAL = "internal"  # a defect of ours (or a dead worker); copied as it is


@dataclass(frozen=True, slots=True)
class FileSupport:
    """What one file uses of torch: APIs with the number of uses, and its names that fall with an extension."""

    uses: tuple[tuple[str, int], ...] = ()
    fallen: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FileResult:
    """What `migrate_source` makes of one file. `data` is the new content (the input's when nothing changed).

    `findings` are sorted by place and include the applied edits: exactly one record per edit. `ledger` holds
    the tokens that `tokens` sums up, one by one. `support` is what the file uses of torch, where the settings ask for
    the analysis.
    """

    path: str
    data: bytes
    findings: tuple[Finding, ...] = ()
    tokens: TokenCount = NO_TOKENS
    status: Status = Status.OK
    changed: bool = False
    ledger: Ledger = NO_LEDGER
    support: FileSupport | None = None
