"""The account of a file: every CUDA-bound token is converted, manual, unknown, or ignored with a reason."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from transplt.base.finding import NO_LEDGER, Cause, Effort, Finding, Ledger, Level, TokenCount, TokenRow, TokenVerdict
from transplt.base.text.cuda_words import Token, find_tokens
from transplt.base.text.source import Source
from transplt.edits.edit import Note
from transplt.edits.work import Work
from transplt.engine.own_identifiers import LongerNames, Range, ignored, own_names
from transplt.flow.callees import FRAMEWORKS, NEEDS_A_CARD
from transplt.rules.reasons import named

#: What speaks of a token that no edit took away, the first before the others.
_OTHERWISE = (TokenVerdict.MANUAL, TokenVerdict.UNKNOWN, TokenVerdict.IGNORED)
_IMPORTS_TORCH = re.compile(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.M)
#: What an edit for both puts beside a word of CUDA.
_OF_AN_NPU = re.compile(r"npu|hccl|HCCL_|ASCEND_")


@dataclass(frozen=True, slots=True)
class Account:
    """The sums of one file, the notes on tokens that nobody accounts for, and the tokens one by one."""

    tokens: TokenCount
    unknown: list[Note]
    ledger: Ledger


class Cover:
    """Ranges with a cause each; asks for tokens in any order cost a binary search.

    Of the ranges that hold a token the one that begins last gives the cause: it is the most specific.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.ranges = sorted(ranges, key=lambda item: (item[0], -item[1]))
        self.starts = [item[0] for item in self.ranges]
        # outer[i]: the nearest range before i that ends behind it, -1 where there is none.
        self.outer: list[int] = []
        for index, item in enumerate(self.ranges):
            before = index - 1
            while before >= 0 and self.ranges[before][1] <= item[1]:
                before = self.outer[before]
            self.outer.append(before)

    def cause(self, token: Token) -> Cause | None:
        """The cause of a range that holds the token, None when there is none."""
        index = bisect_right(self.starts, token.start) - 1
        while index >= 0 and self.ranges[index][1] < token.end:
            index = self.outer[index]
        return self.ranges[index][2] if index >= 0 else None


def settle(
    work: Work,
    applied: Sequence[tuple[int, int, bytes]],
    done: Iterable[Finding],
    findings: Iterable[Finding],
    switched_off: Callable[[str, int, int], str],
) -> Account:
    """Count the tokens of a file and say of those that nothing accounts for that they are unknown.

    `applied` are the edits of the output (start, end, new bytes), sorted, `done` their records; `findings` is what is
    said without an edit; `switched_off` gives the reason why a code is not wanted from one line to another, empty when
    it is.
    """
    source = work.source
    tokens = find_tokens(source.utf8)
    live = [token for token in tokens if token.where != "comment"]
    if not live:
        return Account(TokenCount(comments=len(tokens)), [], NO_LEDGER)
    ranges_of: defaultdict[TokenVerdict, list[Range]] = defaultdict(list)
    stays = ranges_of[TokenVerdict.IGNORED]
    stays += [(*each.extent, ignored(each.reason, each.detail)) for each in work.kept]
    stays += own_names(work, applied)
    said = [*done, *findings]
    for finding in said:
        cause = cause_of(finding)
        ranges_of[cause.verdict].append((finding.span.start, finding.span.end, cause))
    beside = [*_beside(work, said)]
    ranges_of[TokenVerdict.CONVERTED] += beside
    converted = taken_away(source.utf8, live, applied) | _held(beside, live)
    covers = {verdict: Cover(ranges_of[verdict]) for verdict in TokenVerdict}
    not_converted = [*ranges_of[TokenVerdict.MANUAL], *ranges_of[TokenVerdict.UNKNOWN]]
    open_ = sorted((start, end) for start, end, _ in not_converted)
    longer = LongerNames(work, _Inside(open_))
    # A rule of the user's speaks of one name of a package, a built-in one knows the package.
    packages = {finding.api.split(".")[0] for finding in said if not finding.code.startswith("NPU0")}
    asked: set[str] = set()
    rows: list[TokenRow] = []
    left: list[Note] = []
    for token in live:
        if token.start in converted:
            known: Cause | None = covers[TokenVerdict.CONVERTED].cause(token) or Cause(TokenVerdict.CONVERTED)
        else:
            causes = (covers[verdict].cause(token) for verdict in _OTHERWISE)
            known = next(filter(None, causes), None) or longer.cause(token)
        line, column = source.position(token.start)
        known, package = _unreported(work, known, packages)
        if known is None or package:
            note = _unknown(source, token, package)
            if not package or package not in asked:
                left.append(note)
            asked.add(package)
            reason = switched_off(note.code, line, line)
            known = Cause(TokenVerdict.UNKNOWN, note.code)
            if reason:
                known = Cause(TokenVerdict.IGNORED, note.code, named(reason))
        rows.append(TokenRow(line, column, source.slice(token.start, token.end), known))
    ledger = Ledger.of(rows)
    return Account(ledger.total(len(tokens) - len(live)), _one_a_line(source, left), ledger)


def _beside(work: Work, said: Iterable[Finding]) -> Iterator[Range]:
    """What stays as it is since an edit for both puts what an NPU needs beside it: in the place, or in the next line.
    """
    if work.settings.style != "portable":
        return
    added = [each for each in said if each.applied and each.edit is not None and _OF_AN_NPU.search(each.edit.after)]
    for kept in work.kept if added else ():
        start, end = kept.extent
        behind = work.source.utf8.find(b"\n", end)
        for each in added if kept.reason == "both" else ():
            if start <= each.span.start <= (end if behind < 0 else behind + 1):
                yield start, end, cause_of(each)


def _held(ranges: Iterable[Range], live: Iterable[Token]) -> set[int]:
    """Starts of the tokens in some ranges."""
    inside = Cover(ranges)
    return {token.start for token in live if inside.cause(token) is not None}


def cause_of(finding: Finding) -> Cause:
    """What a finding makes of the tokens in its place."""
    if finding.applied:
        return Cause(TokenVerdict.CONVERTED, finding.code)
    if finding.ignored or finding.level is Level.INFO:
        return Cause(TokenVerdict.IGNORED, finding.code, named(finding.ignored) if finding.ignored else "remark")
    return Cause(TokenVerdict.UNKNOWN if finding.level is Level.UNKNOWN else TokenVerdict.MANUAL, finding.code)


def taken_away(utf8: bytes, live: list[Token], applied: Sequence[tuple[int, int, bytes]]) -> set[int]:
    """Starts of the tokens that an edit took away: of each word as many as the new text has less of it."""
    gone: set[int] = set()
    index = 0
    for start, end, new in applied:
        while index < len(live) and live[index].start < start:
            index += 1
        inside = []
        while index < len(live) and live[index].end <= end:
            inside.append(live[index])
            index += 1
        if not inside:
            continue
        lowered = new.lower()
        words = Counter(utf8[token.start : token.end].lower() for token in inside)
        allowed = {word: count - lowered.count(word) for word, count in words.items()}
        for token in inside:
            word = utf8[token.start : token.end].lower()
            if allowed[word] > 0:
                allowed[word] -= 1
                gone.add(token.start)
    return gone


def _unreported(work: Work, known: Cause | None, packages: Container[str]) -> tuple[Cause | None, str]:
    """The cause of a token, and the package that gives its name, where only a finding knows something of it.

    `packages` are those that findings speak of.
    """
    if work.scan.path in work.project.aside.untorched:
        return known, ""
    match known:
        case Cause(reason="package-name", detail=package) if package:
            pass
        case Cause(reason="library-name", detail=package) if package and package in NEEDS_A_CARD:
            pass
        case _:
            return known, ""
    if package in packages:
        return ignored("reported-package"), ""
    return (ignored("handled-package"), "") if work.project.portable else (known, package)


class _Inside:
    """Whether one of some sorted byte ranges lies inside of another one."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.ranges = ranges

    def __call__(self, start: int, end: int) -> bool:
        at = bisect_left(self.ranges, (start, 0))
        return at < len(self.ranges) and self.ranges[at][1] <= end


def _unknown(source: Source, token: Token, package: str) -> Note:
    text = source.slice(token.start, token.end)
    message = f"{text!r} is not known to any rule"
    help_ = "check whether the program depends on CUDA here; if not, add `# transplt: ignore[NPU602]` with the reason"
    if package:
        message = f"{package} has a name with {text!r} here that no rule knows"
        help_ = f"check what it does without CUDA, and whether {package} supports NPUs in the same way"
    note = Note((token.start, token.end), "NPU602", Level.UNKNOWN, message, package, help_, Effort.LOW)
    # What another framework has stops nothing in a file that has no torch.
    return replace(note, blocks="tidy") if package in FRAMEWORKS and not _IMPORTS_TORCH.search(source.utf8) else note


def _one_a_line(source: Source, notes: list[Note]) -> list[Note]:
    """At most one note for each line and word: the reader looks at lines."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for note in notes:
        key = (source.position(note.extent[0])[0], note.message)
        if key not in seen:
            seen.add(key)
            kept.append(note)
    return kept
