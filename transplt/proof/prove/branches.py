"""Which ways through the program only one side took: the branches of conditions, and handlers."""

from __future__ import annotations

import ast
import difflib
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename
from typing import TypeVar

from transplt.base.text.frames import decoded
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import lines_of
from transplt.proof.prove.rank_conditions import parsed, read_source
from transplt.proof.prove.training import Place

_File = TypeVar("_File")
#: The helper of a port to many cards: none of its own lines makes the program train otherwise.
HELPER = "npu_port.py"
#: What gives a function that draws numbers another stream of them.
_GIVES = "generator="
#: Share of the lines of a file by which another one is its successor.
_SAME = 0.4
#: Of a line that is in more files than these nothing is learnt.
_MOST = 8


@dataclass(frozen=True)
class Way:
    """A branch: the line of its condition and the first line in it, in the original and in the migrated program."""

    path: str
    header: tuple[int, int]
    first: tuple[int, int]
    word: str


@dataclass(frozen=True)
class OneSided:
    """A branch that only one of the two took."""

    place: Place
    original: Place
    word: str
    by_original: bool

    def __str__(self) -> str:
        who = "the original" if self.by_original else "the migrated program"
        return f"only {who} runs the lines under the {self.word} of {self.place}"


def ways(original: Path, migrated: Path) -> list[Way]:
    """The branches that both programs have, matched by the lines of their conditions; files that do not parse have
    none. What is the first line of a branch in the original may stand deeper in the migrated program, behind a
    question for an NPU."""
    found: list[Way] = []
    for name, *texts in files_of_both(original, migrated):
        mine, theirs = ([*_branches(parsed(text))] for text in texts)
        lines = _matched(*texts)
        there = {(header, word): first for header, first, word in theirs}
        for header, first, word in mine:
            same = lines.get(header, 0)
            if first in lines and (same, word) in there:
                found.append(Way(name, (header, same), (first, there[same, word]), word))
    return found


def inserted(original: Path, migrated: Path) -> dict[str, list[int]]:
    """The lines of the migrated program that no line of the original stands for, in any file, by path; those too that
    give a generator of their own where the original gives none."""
    found: dict[str, list[int]] = {}
    both = [*files_of_both(original, migrated)]
    old = {name: text for name, _, text in files_of_both(migrated, original)}
    named = twins(old, {name: text for name, _, text in both}, lines_of)
    origins = {other: old[name] for name, other in named.items()}
    lines_in = {text: {line.strip() for line in lines_of(text)} for text in old.values()}
    for name, before, after in both:
        before = before or origins.get(name, "")
        texts = lines_of(before), lines_of(after)
        gives = [[_GIVES in line for line in lines] for lines in texts]
        lines_of_both = _matched(before, after)
        kept = {new for old, new in lines_of_both.items() if gives[0][old - 1] or not gives[1][new - 1]}
        kept |= _seeds(*texts, {*lines_of_both}, kept)
        moved = set[str]().union(*(lines for text, lines in lines_in.items() if text != before))
        lines = [new for new, line in enumerate(texts[1], 1) if new not in kept and line.strip() not in moved]
        found |= {name: lines} if lines else {}
    return found


def _seeds(before: Sequence[str], after: Sequence[str], matched: set[int], kept: set[int]) -> set[int]:
    """Lines of a seed that stands elsewhere, or is another one: that of the original all the same."""
    seeds = [line.partition("(")[0].strip() for at, line in enumerate(before, 1) if at not in matched]
    found = set[int]()
    for at, line in enumerate(after, 1):
        if at not in kept and "seed" in (call := line.partition("(")[0].strip()) and call in seeds:
            seeds.remove(call)
            found.add(at)
    return found


def twins(
    before: Mapping[str, _File], after: Mapping[str, _File], texts_of: Callable[[_File], Iterable[str]]
) -> dict[str, str]:
    """Paths of files that only the original has -> those that only the port has and that hold what they held, by the
    lines or statements of both."""
    gone, new = (
        {path: {*texts_of(file)} for path, file in side.items() if path not in other}
        for side, other in ((before, after), (after, before))
    )
    there: dict[str, list[str]] = defaultdict(list)
    for path, texts in new.items():
        for text in texts:
            there[text].append(path)
    found: dict[str, str] = {}
    for path, texts in gone.items():
        taken = {*found.values()}
        votes = Counter(other for text in texts for other in there[text][:_MOST] if other not in taken)
        best = max(votes, key=lambda each: (votes[each], basename(each) == basename(path), each), default="")
        if best and votes[best] >= _SAME * len(texts):
            found[path] = best
    return found


def draws_by_itself(migrated: Path, lines: Mapping[str, Sequence[int]]) -> bool:
    """Whether one of these lines of a program seeds what draws, or gives it a generator; not those of the helper."""
    for path, own in lines.items():
        texts = lines_of(read_source(str(migrated / path)) or "") if not path.endswith(HELPER) else []
        if any(re.search(rf"seed|{_GIVES}", texts[line - 1]) for line in own if line <= len(texts)):
            return True
    return False


def matched(original: Path, migrated: Path) -> dict[Place, Place]:
    """The lines of the original -> those that stand for them in the migrated program."""
    return {
        Place(name, line): Place(name, other)
        for name, before, after in files_of_both(original, migrated)
        for line, other in _matched(before, after).items()
    }


def files_of_both(original: Path, migrated: Path) -> Iterator[tuple[str, str, str]]:
    """Path, text in the original ("" for a file that it lacks) and in the migrated program; what cannot be read is
    left out."""
    for path in sorted(migrated.rglob("*.py")):
        name = path.relative_to(migrated)
        if any(part.startswith(".") for part in name.parts):
            continue
        try:
            twin = original / name
            before = decoded(read_regular(twin, SOURCE)).text if twin.is_file() else ""
            yield name.as_posix(), before, decoded(read_regular(path, SOURCE)).text
        except OSError:
            continue


@functools.lru_cache(maxsize=256)
def _matched(before: str, after: str) -> dict[int, int]:
    """Line (from 1) of the original -> line of the migrated file; changed lines match where as many stand for them."""
    left, right = ([line.strip() for line in lines_of(text)] for text in (before, after))
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return {
        a + k + 1: c + k + 1
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag == "equal" or (tag == "replace" and b - a == d - c)
        for k in range(b - a)
    }


def _branches(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            yield node.lineno, node.body[0].lineno, "if"
            if node.orelse and not (len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)):
                yield node.lineno, node.orelse[0].lineno, "else"
        elif isinstance(node, ast.Try):
            for handler in node.handlers:
                yield handler.lineno, handler.body[0].lineno, "except"


def one_sided(found: list[Way], original: dict[str, set[int]], migrated: dict[str, set[int]]) -> list[OneSided]:
    """The branches that ran on one side only, where both came to the condition. The lines that ran, by path."""
    taken = []
    for way in found:
        before, after = original.get(way.path, set()), migrated.get(way.path, set())
        if way.header[0] not in before or way.header[1] not in after:
            continue
        mine, theirs = way.first[0] in before, way.first[1] in after
        if mine != theirs:
            taken.append(OneSided(Place(way.path, way.header[1]), Place(way.path, way.header[0]), way.word, mine))
    return taken
