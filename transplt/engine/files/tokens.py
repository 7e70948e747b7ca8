"""The CUDA tokens of a file that is not Python: one finding a line, and the account of all of them."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from transplt.base.finding import (
    NO_LEDGER,
    NO_TOKENS,
    Cause,
    Finding,
    Ledger,
    Level,
    Span,
    TokenCount,
    TokenRow,
    TokenVerdict,
)
from transplt.base.grouped import grouped
from transplt.base.render.cell import first_of, many
from transplt.base.settings import TorchTarget
from transplt.base.text.cuda_words import WORD, WORDS, mentions_cuda
from transplt.base.text.ignore_comments import ignore_comments, switched_off
from transplt.engine.files.addresses import names_no_cuda
from transplt.engine.files.kind import FileKind, is_data
from transplt.engine.files.line_advice import advise_on
from transplt.engine.files.native_text import (
    SOURCE_SUFFIXES,
    block_comments,
    has_hash_comments,
    spoken_places,
    starts_a_container,
)
from transplt.engine.own_identifiers import OWN
from transplt.rules.communication_backends import without_own_names
from transplt.rules.reasons import CODE_COMMENT, named

_TOKEN = re.compile(WORD.pattern, re.IGNORECASE)
#: Wheels for CUDA (torch==2.4.0+cu121) hold none of the words: reported, not counted.
_WHEEL = re.compile(rb"\+cu\d{2,3}\b|/whl/cu\d{2,3}\b|" + WORD.pattern)
_WHEEL_KINDS = frozenset({FileKind.SHELL, FileKind.REQUIREMENTS, FileKind.DOCKER})
#: What a person calls the thing around a token: CUDA_VISIBLE_DEVICES, nvidia/cuda:12.1, torch.cuda.amp; the release
#: that a command of sed writes, without the end of the command (`s/torch/torch==1.9.1+cu111/g`).
_NAME = re.compile(rb"\+cu\d+(?=/\w{0,3}['\"])|[\w.+:/@-]{0,200}\w")
_NAME_BYTE = re.compile(rb"[\w.+:/@$-]")
_WORD_BYTE = re.compile(rb"\w")
#: What stands was the name of a variable: $X, ${X}, ${#X}, ${!X}, $env:X, ${{ env.X }}.
_EXPANDS = re.compile(rb"\$(?:env:|\{[!#]?|\{\{[ \t]{0,9}(?:env|vars|secrets)\.)?\Z")
_LONGEST_OPENING = 24
#: The variable was the value that stands in for it: ${GPU:-cuda}.
_DEFAULTS = re.compile(rb"\w+:?[-+]")
_HASH_COMMENT = re.compile(rb"(?:^|[ \t])#(?!!)")
_SLASH_COMMENT = re.compile(rb"(?:^|[ \t;{})])//")
_JSON = (".json", ".jsonc", ".json5")
#: What stands was a comment in JSON: strings, and anything that is no slash.
_JSON_COMMENT = re.compile(rb"(?:[^\"/]|\"(?:[^\"\\]|\\.)*\"|/(?!/))*//")
_HASH_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER, FileKind.SCRIPT})
#: A line of a notebook longer than this is an embedded picture or the output of a cell.
_LONG_LINE_BYTES = 4000
#: How the words begin that such names hold: nvidia/model, ops_cuda.egg-info.
_IN_NAMES = (b"nvidia", b"cuda.e")
_KERNEL = re.compile(rb"__global__|<<<")
_BETWEEN, _DIGIT = re.compile(rb"[\s\"'.,-]"), re.compile(rb"\d")
_LONG_RUN = 60
#: Base64 has a slash in 64 characters, a path has more.
_A_SLASH_IN = 20
_Range = tuple[int, int]
#: What became of the bytes from one offset to another, where somebody else speaks of them.
Known = Callable[[int, int], Cause | None]
#: So many findings are enough for one file; the tokens of all lines are counted.
MAX_FINDINGS = 200
_MAX_NAME = 120
#: So many lines of a source, and of what stands there, are named.
_MOST_NAMED = 5
#: The words of the reasons `file-beside` and `project-beside`.
FILE_BESIDE = "a file for the NPU exists next to it"
PROJECT_BESIDE = "a file for CUDA in a project that supports NPUs"


@dataclass(frozen=True, slots=True)
class OtherFile:
    """What is found in a file that is not Python. `prose` tokens are part of `tokens.ignored`."""

    kind: FileKind
    findings: tuple[Finding, ...] = ()
    tokens: TokenCount = NO_TOKENS
    prose: int = 0
    ledger: Ledger = NO_LEDGER


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that names CUDA: its number from 1, byte offset, bytes, and the places in it: offset, is it a token."""

    number: int
    start: int
    text: bytes
    places: tuple[tuple[int, bool], ...]

    def tokens(self) -> Iterator[_Range]:
        """The tokens among the places, from where to where in the line."""
        for at, is_token in self.places:
            if is_token:
                match = _TOKEN.match(self.text, at)
                assert match is not None
                yield at, match.end()

    def ask(self, known: Known, start: int, end: int) -> Cause | None:
        """What is known of a place in the line."""
        return known(self.start + start, self.start + end)


def scan_other_file(
    data: bytes,
    path: str,
    kind: FileKind,
    target: TorchTarget,
    ignored_codes: Sequence[str] = (),
    beside: str = "",
    known: Known = lambda start, end: None,
) -> OtherFile:
    """Counts and reports the tokens of one file; its bytes stay what they are.

    `ignored_codes` are prefixes of codes that the settings switch off for this file; `beside` are the words of the
    reason why nothing is left to do in it: a file for the NPU lies beside it. `known` gives what became of the bytes
    from one offset to another, where somebody else speaks of them.
    """
    if kind is FileKind.BINARY:
        return OtherFile(kind)
    lowered = data.lower()
    if not mentions_cuda(lowered) and (kind not in _WHEEL_KINDS or b"cu1" not in lowered):
        return OtherFile(kind)
    of_data = is_data(kind, data)
    if kind is FileKind.PROSE or of_data:
        cause = Cause(TokenVerdict.IGNORED, reason="words" if of_data else "prose-file")
        ledger = Ledger.of(
            row
            for line in _lines(data, lowered, WORD)
            for row in _rows(line, [(place, line.ask(known, *place) or cause) for place in line.tokens()])
        )
        return OtherFile(kind, (), ledger.total(), ledger.counts().get(cause, 0), ledger)
    account = _Account(data, path, kind, target, tuple(ignored_codes), beside, known)
    for line in _lines(data, lowered, _WHEEL if kind in _WHEEL_KINDS else WORD):
        account.add(line)
    return account.finished()


class _Account:
    """What becomes of the tokens of each line of a file: `reported` lines have a finding, `comments` are tokens."""

    def __init__(
        self, data: bytes, path: str, kind: FileKind, target: TorchTarget,
        off: tuple[str, ...], beside: str, known: Known,
    ) -> None:  # fmt: skip
        native = kind is FileKind.NATIVE
        self.path, self.kind, self.target, self.off, self.beside, self.known = path, kind, target, off, beside, known
        self.blocks = block_comments(data) if native else []
        self.comment_kind = FileKind.SHELL if native and has_hash_comments(path) else kind
        self.spoken = spoken_places(path, data) if native else []
        self.source = native and path.lower().endswith(SOURCE_SUFFIXES)
        self.row = ("kernels" if _KERNEL.search(data) else "source") if self.source else kind.value
        self.rows: list[TokenRow] = []
        self.findings: list[Finding] = []
        self.comments = self.reported = 0

    def add(self, line: _Line) -> None:
        """Account for a line, and report it where something in it is left to a person."""
        if self.kind is FileKind.NOTEBOOK and len(line.text) > _LONG_LINE_BYTES:
            output = Cause(TokenVerdict.IGNORED, reason="notebook-output")
            self.rows += _rows(line, [(place, line.ask(self.known, *place) or output) for place in line.tokens()])
            return
        limit = comment_start(line.text, self.comment_kind, slashes=self.path.lower().endswith(_JSON))
        commented = {at for at, _ in line.places if at >= limit or _is_inside(self.blocks, line.start + at)}
        causes = [(place, self._cause(line, *place, place[0] in commented)) for place in line.tokens()]
        live = [at for at, _ in line.places if at not in commented and self._cause(line, at, at + 1) is None]
        left = None
        if live:
            finding = self._finding(line, live)
            left = Cause(TokenVerdict.MANUAL, finding.code)
            if finding.ignored:
                left = Cause(TokenVerdict.IGNORED, finding.code, named(finding.ignored))
            self._report(finding)
        rows = []
        for place, cause in causes:
            if place[0] in commented if cause is None else cause.reason == CODE_COMMENT:
                self.comments += 1
            elif (cause := cause or left) is not None:
                rows.append((place, cause))
        self.rows += _rows(line, rows)

    def _report(self, finding: Finding) -> None:
        """Keep a finding: those of a source become one, of another file the first do."""
        self.reported += not (self.source or finding.ignored)
        if self.reported <= MAX_FINDINGS:
            self.findings.append(finding)

    def _cause(self, line: _Line, start: int, end: int, commented: bool = False) -> Cause | None:
        """What became of a word; None where nobody speaks of it, and it is part of no name that stays."""
        name = line.ask(self.known, start, end) or _of_a_name(line, start, self.kind)
        return name or (OWN if not commented and _is_inside(self.spoken, line.start + start) else None)

    def _finding(self, line: _Line, places: Sequence[int]) -> Finding:
        names: list[str] = []
        first, last = places[0], 0
        for place in places:
            if place < last:
                continue
            begin, last = _around(line.text, place, last)
            if not names:
                first = begin
            name = line.text[begin:last].decode("utf-8", "replace")[:_MAX_NAME]
            if name not in names:
                names.append(name)
        starts = self.kind is FileKind.NATIVE and starts_a_container(self.path, line.text)
        text = line.text.rstrip(b"\r").decode("utf-8", "replace")
        advice = advise_on(FileKind.SHELL.value if starts else self.row, text, names, self.target)
        columns = [len(line.text[:at].decode("utf-8", "replace")) + 1 for at in (first, last)]
        return Finding(
            path=self.path,
            span=Span(line.number, columns[0], line.number, columns[1], line.start + first, line.start + last),
            code=advice.code,
            level=Level.MANUAL,
            message=advice.message,
            api=names[0],
            effort=advice.effort,
            help=advice.help,
            ignored=switched_off(advice.code, self.off, ignore_comments(line.text)) or self.beside,
            details=tuple(("name", name) for name in names),
        )

    def finished(self) -> OtherFile:
        """All findings; one stands for the lines that are not reported one by one."""
        if self.reported > MAX_FINDINGS:
            last = next(finding for finding in reversed(self.findings) if not finding.ignored)
            number, end = last.span.line + 1, last.span.end
            rest = Finding(
                path=last.path,
                span=Span(number, 1, number, 1, end, end),
                code=last.code,
                level=Level.MANUAL,
                message=f"{self.reported - MAX_FINDINGS} more lines of this file name CUDA",
                effort=last.effort,
                help=last.help,
            )
            self.findings.append(rest)
        ledger = Ledger.of(self.rows)
        findings = _one_a_source(self.findings) if self.source else self.findings
        return OtherFile(self.kind, tuple(findings), ledger.total(self.comments), 0, ledger)


def _one_a_source(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The lines of a source are ported together: what is left of them is one finding, at the first of them."""
    by_reason = grouped((finding.ignored, finding) for finding in findings)
    for same in by_reason.values():
        names = tuple(dict.fromkeys(detail for each in same for detail in each.details))
        lines = first_of([str(each.span.line) for each in same], _MOST_NAMED)
        message = f"{same[0].message.partition(' uses ')[0]} uses CUDA in {many(len(same), 'line')} ({lines}): "
        message += first_of([name for _, name in names], _MOST_NAMED)
        helps = "; ".join(dict.fromkeys(each.help for each in same))
        yield replace(same[0], message=message, details=names, help=helps) if same[1:] else same[0]


def tokens_of_one_cause(data: bytes, cause: Cause) -> Ledger:
    """All tokens of a file that nobody has read, those in its comments too."""
    return Ledger.of(
        row for line in _lines(data, data.lower(), WORD) for row in _rows(line, [(at, cause) for at in line.tokens()])
    )


def _rows(line: _Line, tokens: Iterable[tuple[_Range, Cause]]) -> Iterator[TokenRow]:
    """The tokens of a line with their causes; the characters of a long line are counted once."""
    at, column = 0, 1
    for (start, end), cause in tokens:
        column += len(line.text[at:start].decode("utf-8", "replace"))
        at = start
        yield TokenRow(line.number, column, line.text[start:end].decode(), cause)


def _of_a_name(line: _Line, at: int, kind: FileKind) -> Cause | None:
    """Why a word stays that is part of a name which merely holds it, or a name of a library's own."""
    if line.text[at : at + 6].lower() in _IN_NAMES and names_no_cuda(line.text, at, kind):
        return Cause(TokenVerdict.IGNORED, reason="address")
    if line.text[at : at + 4] == b"nccl" and len(line.text) <= _LONG_LINE_BYTES:
        left, library = without_own_names(line.text.decode("latin-1"))
        if library and left[at] == " ":
            return Cause(TokenVerdict.IGNORED, reason="own-registry", detail=library)
    return None


def _is_data(data: bytes, at: int) -> bool:
    """True in a run of letters and digits that no word is made of: a mask in an annotation, a key, a picture."""
    before, after = data[max(0, at - _MAX_NAME) : at], data[at : at + _MAX_NAME]
    run = _BETWEEN.split(before)[-1] + _BETWEEN.split(after, maxsplit=1)[0]
    if len(run) < _LONG_RUN or run.count(b"/") > len(run) // _A_SLASH_IN or run.islower() or run.isupper():
        return False
    return len(_DIGIT.findall(run)) >= _LONG_RUN // 6


def _is_inside(ranges: Sequence[_Range], at: int) -> bool:
    """True for a place in one of some ranges, which are sorted and apart."""
    before = bisect_right(ranges, (at, sys.maxsize)) - 1
    return before >= 0 and at < ranges[before][1]


def _lines(data: bytes, lowered: bytes, pattern: re.Pattern[bytes]) -> Iterator[_Line]:
    """The lines with a place of the pattern; four letters that meet by chance in encoded data are no word."""
    number, counted = 1, 0
    start, end = 0, -1
    places: list[tuple[int, bool]] = []
    for match in pattern.finditer(lowered):
        at = match.start()
        if _is_data(data, at):
            continue
        if at > end:
            if places:
                yield _Line(number, start, data[start:end], tuple(places))
                places = []
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            number += data.count(b"\n", counted, start)
            counted = start
        places.append((at - start, match.group() in WORDS))
    if places:
        yield _Line(number, start, data[start:end], tuple(places))


def comment_start(line: bytes, kind: FileKind, *, slashes: bool = False) -> int:
    """Where the comment of a line begins; its length where it has none. `slashes`: two of them begin it (JSON)."""
    if kind in _HASH_KINDS and not slashes:
        match = _HASH_COMMENT.search(line)
    elif slashes:
        found = _JSON_COMMENT.match(line) if len(line) < _LONG_LINE_BYTES else None
        return len(line) if found is None else found.end() - 2
    elif kind is FileKind.NATIVE:
        match = _SLASH_COMMENT.search(line)
    else:
        match = None
    return len(line) if match is None else match.start()


def _around(text: bytes, place: int, floor: int) -> tuple[int, int]:
    """Where the name begins and ends that holds the token at `place`; it begins at `floor` or later.

    Of a variable that a shell, make or a workflow puts in, the name alone: `${CUDA_HOME:-/usr}` names CUDA_HOME.
    """
    floor = max(floor, place - _MAX_NAME)
    begin = place
    while begin > floor and _WORD_BYTE.match(text, begin - 1):
        begin -= 1
    end = place
    while end < min(len(text), place + _MAX_NAME) and _WORD_BYTE.match(text, end):
        end += 1
    was = text[max(0, begin - _LONGEST_OPENING) : begin]
    if _EXPANDS.search(was) or (was.endswith(b"$(") and text[end : end + 1] in (b")", b":")):
        return begin, end
    while begin > floor and _NAME_BYTE.match(text, begin - 1):
        begin -= 1
    if text[max(0, begin - 2) : begin] == b"${" and (name := _DEFAULTS.match(text, begin, place)):
        begin = name.end()
    match = _NAME.match(text, place)
    return begin, max(match.end() if match is not None else 0, place + 4)
