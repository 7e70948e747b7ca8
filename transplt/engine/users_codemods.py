"""LibCST codemods of the user: one looks at a file as it came, and the migration at what it makes of it.

So a codemod sees the names that its author knows, and what it writes is migrated like the rest. All that is said of the
file is then said in places of the file that came: each stretch that the codemod changed is a record of its own, joined
with what the migration did inside of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from operator import attrgetter

from transplt.base.finding import (
    Cause,
    Effort,
    FileResult,
    Finding,
    Ledger,
    Level,
    Operation,
    Replacement,
    TokenRow,
    TokenVerdict,
)
from transplt.base.settings import Settings
from transplt.base.text.cuda_words import find_tokens
from transplt.base.text.source import Source, UnreadableSource, read_source, splice
from transplt.edits.added_codemods import codemod_of
from transplt.edits.added_fixers import Added
from transplt.edits.trees.users_codemods import Transformed, transformed
from transplt.engine.verify import refused

#: What an edit of a codemod is, and what it says or could not do.
EDIT, SAID = "NPU021", "NPU022"
_PIECE = re.compile(rb"[A-Za-z_0-9\x80-\xff]+|[ \t]+|\r\n|.", re.DOTALL)
#: Stretches that change together are one from so many bytes between them down; longer ones are compared by lines alone.
_NEAR, _MOST_PIECES = 3, 4_000
#: A long file, in lines.
_LONG = 2_000
_new_start = attrgetter("new_start")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Bytes `start`..`end` of the file that came are `new_start`..`new_end` of what a codemod made of it."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class Run:
    """What a codemod made of the bytes of a file, with where it changed them; warnings; why it failed."""

    data: bytes
    hunks: tuple[Hunk, ...] = ()
    warnings: tuple[str, ...] = ()
    failed: str = ""


def takes_part(path: str, settings: Settings) -> bool:
    """True where codemods look at a file: at modules, whole ones, and unless NPU021 is switched off for them."""
    looked = settings.codemods and settings.only_lines is None and path.endswith(".py")
    return bool(looked) and not EDIT.startswith(settings.ignored_codes(path) or ("-",))


def after_codemods(data: bytes, path: str, settings: Settings) -> bytes:
    """The bytes of a file after all codemods of the settings."""
    for each in settings.codemods:
        data = run(Added(*each), data, path).data
    return data


def with_codemods(
    data: bytes, path: str, settings: Settings, migrate: Callable[[bytes, Settings], FileResult]
) -> FileResult:
    """The result of `migrate` for what the codemods make of a file, told in places of the file."""
    if not settings.codemods:
        return migrate(data, settings)
    codemod = Added(*settings.codemods[0])
    done = run(codemod, data, path)
    result = with_codemods(done.data, path, replace(settings, codemods=settings.codemods[1:]), migrate)
    said = [_said(path, codemod, f"could not run here: {done.failed}")] if done.failed else []
    said += [_said(path, codemod, warning) for warning in done.warnings]
    if not done.hunks:
        return replace(result, findings=_sorted([*said, *result.findings])) if said else result
    again = run(codemod, result.data, path)
    if again.data != result.data:
        said.append(_said(path, codemod, "a second run would change its own output again", Level.INFO))
    return _told_of(read_source(data), read_source(done.data), codemod, done.hunks, result, said)


def _said(path: str, codemod: Added, what: str, level: Level = Level.MANUAL) -> Finding:
    first = read_source(b"").span(0, 0)
    name = codemod.name.rpartition(".")[2]
    return Finding(
        path, first, SAID, level, f"{name}: {what}", api=codemod.name,
        effort=None if level is Level.INFO else Effort.LOW,
        help=f"see {codemod.name} of {codemod.distribution} {codemod.version}",
    )  # fmt: skip


def _sorted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=Finding.sort_key))


# --- one run ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)  # a file is indexed, and then migrated
def run(codemod: Added, data: bytes, path: str) -> Run:
    """What a codemod makes of a file; the bytes as they are where it fails or Python cannot read what it makes."""
    try:
        source = read_source(data)
    except UnreadableSource:
        return Run(data)  # it is reported when it is migrated
    if refused(source, None):
        return Run(data)
    made: Transformed = transformed(codemod_of(codemod), source.text, path)
    if made.failed or made.text == source.text:
        return Run(data, (), made.warnings, made.failed)
    try:
        utf8 = made.text.encode()
        new = source.encode(utf8)
        if read_source(new).utf8 != utf8:
            raise ValueError("its output has a different encoding from the file")
        if why := refused(read_source(new), None):
            return Run(data, (), made.warnings, f"its output is not valid Python ({why})")
    except (UnreadableSource, ValueError) as error:
        return Run(data, (), made.warnings, f"its output cannot be written: {error}")
    return Run(new, tuple(_hunks(source.utf8, utf8)), made.warnings)


def _hunks(old: bytes, new: bytes) -> Iterator[Hunk]:
    """The stretches that differ, in order and apart: lines first, in them words."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    most = min(len(before), len(after))
    head = next((index for index in range(most) if before[index] != after[index]), most)
    tail = next((index for index in range(most - head) if before[-1 - index] != after[-1 - index]), most - head)
    at, to = _places(before), _places(after)
    found: list[Hunk] = []
    # In long files lines that come up again and again are no anchors: else a table of equal lines takes the square.
    inside, now = before[head : len(before) - tail], after[head : len(after) - tail]
    for tag, a, b, c, d in SequenceMatcher(None, inside, now, autojunk=len(now) > _LONG).get_opcodes():
        if tag != "equal":
            found += _words(old, new, Hunk(at[head + a], at[head + b], to[head + c], to[head + d]))
    last: Hunk | None = None
    for each in found:
        if last is not None and each.start - last.end <= _NEAR and b"\n" not in old[last.end : each.start]:
            last = Hunk(last.start, each.end, last.new_start, each.new_end)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _words(old: bytes, new: bytes, hunk: Hunk) -> list[Hunk]:
    before = _PIECE.findall(old[hunk.start : hunk.end])
    after = _PIECE.findall(new[hunk.new_start : hunk.new_end])
    if not before or not after or len(before) + len(after) > _MOST_PIECES:
        return [hunk]
    at, to = _places(before, hunk.start), _places(after, hunk.new_start)
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [Hunk(at[a], at[b], to[c], to[d]) for tag, a, b, c, d in codes if tag != "equal"]


def _places(pieces: Sequence[bytes], start: int = 0) -> list[int]:
    places = [start]
    for piece in pieces:
        places.append(places[-1] + len(piece))
    return places


# --- the result in the places of the file that came ------------------------------------------------------------------


def _old(hunks: Sequence[Hunk], offset: int, *, end: bool = False) -> int:
    """The place in the file that came of one in what the codemod made; in a stretch that changed, its start or end."""
    before = (bisect_left if end else bisect_right)(hunks, offset, key=_new_start)
    if not before:
        return offset
    hunk = hunks[before - 1]
    if offset < hunk.new_end:
        return hunk.end if end else hunk.start
    return offset + hunk.end - hunk.new_end


def _told_of(
    old: Source, new: Source, codemod: Added, hunks: Sequence[Hunk], result: FileResult, said: list[Finding]
) -> FileResult:
    """The result for what a codemod made as one of the file that came."""
    made = [each for each in result.findings if each.applied and each.edit is not None]
    joined = [*_joined(old, new, result.path, codemod, hunks, made)]
    inside = {id(finding) for _, _, findings in joined for finding in findings}
    placed = [(at, record) for at, record, _ in joined]
    for finding in result.findings:
        if id(finding) not in inside:
            start = _old(hunks, finding.span.start)
            end = max(start, _old(hunks, finding.span.end, end=True))
            placed.append((finding.span.start, replace(finding, span=old.span(start, end))))
    # At one place lines keep the order that they have in the output: those of the migration go in above.
    findings = [*said, *(finding for _, finding in sorted(placed, key=lambda item: (item[0], item[1].code == EDIT)))]
    ledger = _ledger(old, new, hunks, result.ledger)
    comments = sum(token.where == "comment" for token in find_tokens(old.utf8))
    return replace(
        result, findings=_sorted(findings), ledger=ledger, tokens=ledger.total(comments),
        changed=result.data != old.encode(old.utf8),
    )  # fmt: skip


def _joined(
    old: Source, new: Source, path: str, codemod: Added, hunks: Sequence[Hunk], made: Sequence[Finding]
) -> Iterator[tuple[int, Finding, list[Finding]]]:
    """A record for each stretch that the codemod changed, with its place in what the codemod made and the edits of the
    migration that touch it.
    """
    for start, end, taken, inside in _together(hunks, made):
        at = min(taken[0].start - (taken[0].new_start - start), *(hunk.start for hunk in taken))
        last = max(taken, key=lambda hunk: hunk.new_end)
        to = last.end + (end - last.new_end)
        pieces = sorted(
            (each.span.start - start, each.span.end - start, each.edit.after.encode()) for each in inside if each.edit
        )
        before, after = old.slice(at, to), splice(new.utf8[start:end], pieces).decode()
        messages = dict.fromkeys([f"by {codemod.name}", *(each.message for each in inside)])
        operation = Operation.MODIFY if before and after else Operation.DELETE if before else Operation.INSERT
        yield (
            start,
            Finding(
                path, old.span(at, to), EDIT, Level.SAFE, "; ".join(messages),
                api=codemod.name, edit=Replacement(operation, before, after), applied=True,
            ),
            inside,
        )  # fmt: skip


def _together(
    hunks: Sequence[Hunk], made: Sequence[Finding]
) -> Iterator[tuple[int, int, list[Hunk], list[Finding]]]:
    """Stretches of what the codemod made, with the hunks and the edits that touch, one after the other: those that have
    a hunk. A place between two bytes touches a range that it is inside of, not at its ends.
    """
    ranges: list[tuple[int, int, Hunk | Finding]] = [(hunk.new_start, hunk.new_end, hunk) for hunk in hunks]
    ranges += [(each.span.start, each.span.end, each) for each in made]
    ranges.sort(key=lambda item: item[:2])
    index = 0
    while index < len(ranges):
        start, end, _ = ranges[index]
        first = index
        while index < len(ranges) and (index == first or ranges[index][0] < end):
            end = max(end, ranges[index][1])
            index += 1
        members = [each for _, _, each in ranges[first:index]]
        if taken := [each for each in members if isinstance(each, Hunk)]:
            yield start, end, taken, [each for each in members if isinstance(each, Finding)]


def _ledger(old: Source, new: Source, hunks: Sequence[Hunk], ledger: Ledger) -> Ledger:
    """The tokens of the file that came. In a stretch that changed they are converted, but for as many as are left."""
    live = [token for token in find_tokens(new.utf8) if token.where != "comment"]
    causes = {token.start: row.cause for token, row in zip(live, ledger, strict=True)}
    starts = sorted(causes)
    left = {
        hunk: [
            causes[start] for start in starts[bisect_left(starts, hunk.new_start) : bisect_left(starts, hunk.new_end)]
            if causes[start].verdict is not TokenVerdict.CONVERTED
        ]
        for hunk in hunks
    }  # fmt: skip
    rows = []
    for token in find_tokens(old.utf8):
        if token.where == "comment":
            continue
        cause: Cause | None = None
        shift = 0
        at = bisect_right(hunks, token.start, key=lambda hunk: hunk.end)
        if at < len(hunks) and hunks[at].start < token.end:
            cause = left[hunks[at]].pop(0) if left[hunks[at]] else Cause(TokenVerdict.CONVERTED, EDIT)
        elif at:
            shift = hunks[at - 1].new_end - hunks[at - 1].end
        cause = cause or causes.get(token.start + shift) or Cause(TokenVerdict.CONVERTED, EDIT)
        line, column = old.position(token.start)
        rows.append(TokenRow(line, column, old.slice(token.start, token.end), cause))
    return Ledger.of(rows)
