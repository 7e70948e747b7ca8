"""One thing to do, with its places."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from transplt.base.finding import Effort, Finding
from transplt.base.language import Sentence, marked

#: What lets a training stop, or compute something else; the rest makes it slow or untidy.
BLOCKING = frozenset({"import", "first step", "numbers", "later", "beside"})
#: The words for each of `BLOCKS`, for what concerns containers, jobs and services alone, and for what stands aside; in
#: the order of every list.
BLOCKS_TEXT = {
    "import": marked("stops at import"), "first step": marked("stops at the first step"),
    "numbers": marked("computes wrong numbers"), "later": marked("stops later"),
    "beside": marked("stops another program of the project"),
    "contained": marked("only in containers and jobs"), "slow": marked("runs slower"),
    "aside": marked("not used by training"), "tidy": marked("cosmetic"),
}  # fmt: skip
#: The headings of actions: all of these words, and what they mean.
_HEADINGS = {
    "import": marked("stops at import: the program cannot be installed, or does not start"),
    "first step": marked(
        "stops at the first step: the program starts, but fails when it first computes, or computes on the CPU"
    ),
    "numbers": marked("computes wrong numbers: the program runs, but its results are not those of the original"),
    "later": marked("stops later: after the first training step, with some options, or in scripts that do not train"),
    "slow": marked("runs slower: the program computes the same, but not as fast as it could"),
    "tidy": marked("cosmetic: the program runs the same without this"),
    "aside": marked("not used by training: tests, tools and old code"),
    "beside": marked("stops another program of the project: it has a folder of its own; the main program runs"),
    "contained": marked("only in containers and jobs: what starts the program there, not the program itself"),
}


def written_by(findings: Collection[Finding]) -> tuple[str, bool]:
    """The adaptors that write what findings ask for (`timm`, `a,b`), empty where a person has to write some of it; and
    whether sources and builds of compiled kernels are left then, which nothing needs any more.
    """
    names = {each.adaptor for each in findings}
    if "" not in names:
        return ",".join(sorted(names)), False
    calling = {each.adaptor for each in findings if each.path.endswith(".py") and not each.path.endswith("setup.py")}
    return ("kernels", True) if calling == {"kernels"} else ("", False)


@dataclass(frozen=True, slots=True)
class Place:
    """One file of an action: the lines with findings (from 1, sorted), and how many findings they are.

    `name` says what is there where an action stands for several things, a kernel or an API.
    """

    path: str
    lines: tuple[int, ...]
    count: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One distinct thing to do. `blocks` is one of `BLOCKS`; `title` begins with a verb, `how` says how it is done.

    `hours` are a rough sum for a person who knows the code: the first place costs what its effort says, further ones
    little. `codes` are those of its findings, the commonest first. `aside`: training uses none of its places;
    `contained`: it stops the program in a container or a job alone.
    `beside`: the folders of other programs of the project, where it concerns these alone.
    `parts` are the things to do that stand together in one.
    """

    title: Sentence
    blocks: str
    effort: Effort
    hours: float
    how: str
    codes: tuple[str, ...]
    places: tuple[Place, ...]
    findings: tuple[Finding, ...] = field(repr=False)
    aside: bool = False
    contained: bool = False
    beside: tuple[str, ...] = ()
    parts: tuple[Action, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether the training itself stops without it, or computes something else."""
        return self.stands in BLOCKING

    @property
    def stands(self) -> str:
        """Under which of `BLOCKS_TEXT` it stands."""
        beside = bool(self.beside) and self.blocks in BLOCKING
        return "contained" if self.contained else "aside" if self.aside else "beside" if beside else self.blocks

    @property
    def blocking(self) -> str:
        """What it blocks, in words, or that it stands aside."""
        return BLOCKS_TEXT[self.stands]

    @property
    def heading(self) -> str:
        """The words under which it stands in a list: `blocking`, and what that means."""
        return _HEADINGS[self.stands]

    @property
    def count(self) -> int:
        """How many findings there are."""
        return len(self.findings)

    @property
    def lines(self) -> int:
        """How many lines its places are: two findings of one line are one place for a reader."""
        return len({(place.path, line) for place in self.places for line in place.lines})

    @property
    def first(self) -> str:
        """The place to begin with, `path:line`."""
        return f"{self.places[0].path}:{self.places[0].lines[0]}"
