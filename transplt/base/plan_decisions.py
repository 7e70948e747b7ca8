"""What somebody has decided before the edits are made, in a plan (`transplt plan`): data, the same for every file."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

#: What a place can be decided to be. A string in question names the NPU, or its backend; an edit on offer is made; or
#: a place is left as it is.
NPU, HCCL, APPLY, LEAVE = "npu", "hccl", "apply", "leave"
#: Codes of strings in question, with the word that makes each the device or the backend of the NPU.
IN_QUESTION = {"NPU203": NPU, "NPU302": HCCL}

#: Why something stays that a plan leaves; the words of a reason in rules/support/reasons.json.
PLAN_LEAVES = "the plan keeps it unchanged"
#: The help of an edit that could be made, where somebody picks others.
NOT_PICKED = "not picked; --fix without --pick makes this edit"


class Choice(NamedTuple):
    """What is decided of one finding: its code, its place (line and column from 1, in characters), and the choice."""

    code: str
    line: int
    column: int
    choice: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions of a plan that differ from what a run would do without it.

    `plan` is the name of its file. `keys` are (key, value) of settings, `places` the choices by path, `left` globs of
    files that stay as they are, `codes` code prefixes that are switched off, by the glob of the files. `said` are
    sentences on what of the plan does not hold.
    """

    plan: str
    keys: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[str, tuple[Choice, ...]], ...] = ()
    left: tuple[str, ...] = ()
    codes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    said: tuple[str, ...] = ()

    def leaves(self, path: str) -> bool:
        """True for a file that stays as it is."""
        return any(matches(path, pattern) for pattern in self.left)

    def codes_off(self, path: str) -> tuple[str, ...]:
        """Prefixes of the codes that are switched off in a file."""
        return tuple(code for pattern, codes in self.codes if matches(path, pattern) for code in codes)

    def at(self, path: str) -> tuple[Choice, ...]:
        """The choices in a file."""
        return next((choices for each, choices in self.places if each == path), ())


def matches(path: str, pattern: str) -> bool:
    """True for a path that a glob of a plan means: the whole path, or a folder above it."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern.rstrip('/')}/*")
