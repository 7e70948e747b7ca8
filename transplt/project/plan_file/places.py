"""Places of a plan: how a line of a file is marked, and found again when the file has changed elsewhere."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from transplt.base.errors import reason
from transplt.base.grouped import grouped
from transplt.base.plan_decisions import Choice
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import Source, UnreadableSource, read_source
from transplt.project.plan_file.form import OPEN, PlannedPlace


class Lines:
    """The lines of a source file, each with its mark: its text, and which of how many equal lines it is."""

    def __init__(self, source: Source) -> None:
        self.texts = [source.line_text(number) for number in range(1, len(source.line_starts) + 1)]
        stripped = [text.strip() for text in self.texts]
        total, seen = Counter(stripped), Counter[str]()
        self.marks: list[str] = []
        for text in stripped:
            seen[text] += 1
            digest = hashlib.sha256(f"{seen[text]} of {total[text]}: {text}".encode("utf-8", "surrogatepass"))
            self.marks.append(digest.hexdigest()[:10])

    def mark(self, line: int, column: int) -> str:
        """The mark of a place; line and column from 1, the column in characters."""
        return f"{self.marks[line - 1]}+{column - 1 - self._indent(line)}"

    def find(self, mark: str) -> tuple[int, int] | None:
        """Line and column of a place by its mark; None where the line is not there any more."""
        digest, _, offset = mark.partition("+")
        if digest not in self.marks:
            return None
        line = self.marks.index(digest) + 1
        return line, int(offset) + self._indent(line) + 1

    def _indent(self, line: int) -> int:
        text = self.texts[line - 1]
        return len(text) - len(text.lstrip())


def lines_of(folder: Path, path: str) -> Lines | str:
    """The lines of a file of the project, or why they cannot be told. A link is not followed."""
    full = os.path.join(os.path.realpath(folder), path)
    if not path.endswith(".py"):
        return "it is not a .py file"
    if os.path.realpath(full) != os.path.normpath(full):
        return "it is a link, or reached through one"
    try:
        return Lines(read_source(read_regular(full, SOURCE, follow=False)))
    except FileNotFoundError:
        return "the file does not exist"
    except UnreadableSource as error:
        return f"the file cannot be read: {error.reason}"
    except OSError as error:
        return f"the file cannot be read: {reason(error)}"


def find_places(
    folder: Path, places: Iterable[PlannedPlace]
) -> tuple[tuple[tuple[str, tuple[Choice, ...]], ...], list[str]]:
    """What is decided, by path, at the places as they are now; and what is not there any more, a sentence each."""
    by_path = grouped((place.path, place) for place in places if place.choice != OPEN)
    found, lost = [], []
    for path, its in sorted(by_path.items()):
        lines = lines_of(folder, path)
        choices = []
        for place in its:
            at = lines.find(place.mark) if isinstance(lines, Lines) else None
            if at is not None:
                choices.append(Choice(place.code, *at, place.choice))
            else:
                lost.append(not_followed(place.choice, place.name, lines if isinstance(lines, str) else _CHANGED))
        if choices:
            found.append((path, tuple(sorted(choices))))
    return tuple(found), lost


_CHANGED = "this line no longer exists"


def not_followed(key: str, value: str, why: str) -> str:
    """The sentence for a decision that does not hold."""
    return f"not followed: {key}: {value}: {why}"


def each_choice(places: Iterable[tuple[str, tuple[Choice, ...]]]) -> Iterator[tuple[str, Choice]]:
    """Path and choice, one by one."""
    return ((path, choice) for path, choices in places for choice in choices)
