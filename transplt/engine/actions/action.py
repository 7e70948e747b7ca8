"""One thing to do, with its places."""

from __future__ import annotations

from dataclasses import dataclass, field

from transplt.base.finding import Effort, Finding
from transplt.base.language import Sentence, marked
from transplt.rules.pages import BLOCKS

#: What lets a training stop, or compute something else; the rest makes it slow or untidy.
BLOCKING = frozenset({"import", "first step", "numbers", "later"})
#: The words for each of `BLOCKS`.
BLOCKS_TEXT = dict(
    zip(
        BLOCKS,
        (
            marked("stops at import"), marked("stops at the first step"), marked("wrong numbers"),
            marked("stops later"), marked("slow"), marked("tidy"),
        ),
        strict=True,
    )
)  # fmt: skip
#: The heading of actions that stand aside.
ASIDE_TEXT = marked("not used by training: tests, tools and old code")
#: The heading of what stops containers, jobs and services alone.
CONTAINED_TEXT = marked("in containers and jobs: what starts the program there, not the program itself")


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
    little. `codes` are those of its findings, the commonest first. `aside`: no training script reaches its places;
    `contained`: it stops the program in a container or a job alone.
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
    parts: tuple[Action, ...] = ()

    @property
    def blocking(self) -> str:
        """What it blocks, in words; `aside` where it stands aside."""
        if self.contained:
            return marked("in containers and jobs")
        return marked("not used by training") if self.aside else BLOCKS_TEXT[self.blocks]

    @property
    def heading(self) -> str:
        """The words under which it stands in a list: what it blocks, and where that is not all of the project."""
        if self.contained:
            return CONTAINED_TEXT
        return ASIDE_TEXT if self.aside else BLOCKS_TEXT[self.blocks]

    @property
    def count(self) -> int:
        """How many findings there are."""
        return len(self.findings)

    @property
    def first(self) -> str:
        """The place to begin with, `path:line`."""
        return f"{self.places[0].path}:{self.places[0].lines[0]}"
