"""Why CUDA words stay as they are: the closed list of reasons in rules/support/reasons.json."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from transplt.base.finding import Cause
from transplt.rules.tables import read_table

#: The reason of words in comments of code, which are counted apart.
CODE_COMMENT = "code-comment"


class Doubt(IntEnum):
    """How far a reader should trust a reason; what sorts first is to be read first."""

    HIGH = 0  # nobody followed the value: it was taken for what its name or place suggests
    MEDIUM = 1  # decided from the whole project, but other code may do otherwise
    LOW = 2  # follows from the grammar, from an edit or a finding beside it, or from what the user said


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: its name, its words (`{}` stands for a detail), how doubtful it is, and what a reader looks at."""

    name: str
    words: str
    doubt: Doubt
    check: str

    def text(self) -> str:
        """The page that `transplt explain` prints, Markdown."""
        return (
            f"# {self.name}: {self.words.replace('{}', 'LIBRARY')} (doubt: {self.doubt.name.lower()})\n\n"
            f"A reason why a CUDA word is not changed; tokens.csv lists the words with this reason.\n\n"
            f"## To check it\n\n{self.check}\n\n## Doubt\n\n{_MEANING[self.doubt]}\n"
        )


_MEANING = {
    Doubt.HIGH: "high: the value was not followed; its name or place suggests the reason.",
    Doubt.MEDIUM: "medium: decided from the whole project, but code that was not followed may use it differently.",
    Doubt.LOW: "low: it follows from the syntax, from an edit or finding next to it, or from a comment or setting.",
}


@cache
def reasons() -> dict[str, Reason]:
    """All reasons by name, the doubtful ones first."""
    table = read_table("support/reasons.json")
    every = [Reason(name, row["words"], Doubt[row["doubt"].upper()], row["check"]) for name, row in table.items()]
    return {each.name: each for each in sorted(every, key=lambda each: each.doubt)}


def words_of(cause: Cause) -> str:
    """The words of an ignored token's reason, with its detail. KeyError for a reason that is not in the list."""
    return reasons()[cause.reason].words.replace("{}", cause.detail)


@cache
def named(words: str) -> str:
    """The name of the reason with these words."""
    return next(name for name, each in reasons().items() if each.words == words)
