"""The CUDA tokens of a file that is not Python: one finding a line, and the account of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from transplt.files.kind import FileKind
from transplt.files.line_advice import advise_on
from transplt.finding import NO_TOKENS, Finding, Level, Span, TokenCount
from transplt.settings import TorchTarget
from transplt.text.cuda_words import WORD, WORDS, mentions_cuda
from transplt.text.ignore_comments import ignore_comments

#: Wheels for CUDA (torch==2.4.0+cu121) hold none of the words: reported, not counted.
_WHEEL = re.compile(rb"\+cu\d{2,3}\b|/whl/cu\d{2,3}\b|" + WORD.pattern)
_WHEEL_KINDS = frozenset({FileKind.SHELL, FileKind.REQUIREMENTS, FileKind.DOCKER})
#: What a person calls the thing around a token: CUDA_VISIBLE_DEVICES, nvidia/cuda:12.1, torch.cuda.amp.
_NAME = re.compile(rb"[\w.+:/@-]{0,200}\w")
_NAME_BYTE = re.compile(rb"[\w.+:/@$-]")
_WORD_BYTE = re.compile(rb"\w")
#: What stands before the name of a variable: $X, ${X}, ${#X}, ${!X}, $env:X, ${{ env.X }}.
_EXPANDS = re.compile(rb"\$(?:env:|\{[!#]?|\{\{[ \t]{0,9}(?:env|vars|secrets)\.)?\Z")
_LONGEST_OPENING = 24
#: The variable before the value that stands in for it: ${GPU:-cuda}.
_DEFAULTS = re.compile(rb"\w+:?[-+]")
_HASH_COMMENT = re.compile(rb"(?:^|[ \t])#(?!!)")
_SLASH_COMMENT = re.compile(rb"(?:^|[ \t;{})])//")
_HASH_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER, FileKind.SCRIPT})
#: A line of a notebook longer than this is an embedded picture or the output of a cell.
_LONG_LINE_BYTES = 4000
#: So many findings say enough about one file; the tokens of all lines are counted.
MAX_FINDINGS = 200
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class OtherFile:
    """What is to say about a file that is not Python. `prose` tokens are part of `tokens.ignored`."""

    kind: FileKind
    findings: tuple[Finding, ...] = ()
    tokens: TokenCount = NO_TOKENS
    prose: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that names CUDA: its number from 1, byte offset, bytes, and the places in it: offset, is it a token."""

    number: int
    start: int
    text: bytes
    places: tuple[tuple[int, bool], ...]


def scan_other_file(
    data: bytes, path: str, kind: FileKind, target: TorchTarget, ignored_codes: Sequence[str] = ()
) -> OtherFile:
    """Counts and reports the tokens of one file; its bytes stay what they are.

    `ignored_codes` are prefixes of codes that the settings switch off for this file.
    """
    if kind is FileKind.BINARY:
        return OtherFile(kind)
    lowered = data.lower()
    if not mentions_cuda(lowered) and (kind not in _WHEEL_KINDS or b"cu1" not in lowered):
        return OtherFile(kind)
    if kind is FileKind.PROSE:
        count = sum(1 for _ in WORD.finditer(lowered))
        return OtherFile(kind, (), TokenCount(found=count, ignored=count), count)
    manual = comments = skipped = reported = 0
    prefixes = tuple(ignored_codes)
    findings: list[Finding] = []
    for line in _lines(data, lowered, _WHEEL if kind in _WHEEL_KINDS else WORD):
        tokens = sum(is_token for _, is_token in line.places)
        if kind is FileKind.NOTEBOOK and len(line.text) > _LONG_LINE_BYTES:
            skipped += tokens
            continue
        limit = comment_start(line.text, kind)
        live = tuple(place for place in line.places if place[0] < limit)
        counted = sum(is_token for _, is_token in live)
        comments += tokens - counted
        if not live:
            continue
        finding = _finding(path, kind, target, line, [at for at, _ in live])
        if finding.code.startswith(prefixes):
            finding = replace(finding, ignored="ignored for this file by the settings")
        elif _switched_off(line.text, finding.code):
            finding = replace(finding, ignored="ignored by a comment")
        if finding.ignored:
            skipped += counted
        else:
            manual += counted
            reported += 1
        if reported <= MAX_FINDINGS:
            findings.append(finding)
    if reported > MAX_FINDINGS:
        findings.append(_rest(findings, reported - MAX_FINDINGS))
    account = TokenCount(found=manual + skipped, manual=manual, ignored=skipped, comments=comments)
    return OtherFile(kind, tuple(findings), account)


def _switched_off(line: bytes, code: str) -> bool:
    """The same comment as in Python, behind the comment sign of the file."""
    return any(comment.holds_for(code) for comment in ignore_comments(line))


def _lines(data: bytes, lowered: bytes, pattern: re.Pattern[bytes]) -> Iterator[_Line]:
    number, counted = 1, 0
    start, end = 0, -1
    places: list[tuple[int, bool]] = []
    for match in pattern.finditer(lowered):
        at = match.start()
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


def comment_start(line: bytes, kind: FileKind) -> int:
    """Where the comment of a line begins; its length where it has none."""
    if kind in _HASH_KINDS:
        match = _HASH_COMMENT.search(line)
    elif kind is FileKind.NATIVE:
        match = _SLASH_COMMENT.search(line)
    else:
        match = None
    return len(line) if match is None else match.start()


def _finding(path: str, kind: FileKind, target: TorchTarget, line: _Line, places: list[int]) -> Finding:
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
    text = line.text.rstrip(b"\r").decode("utf-8", "replace")
    advice = advise_on(kind, text, names, target)
    columns = [len(line.text[:at].decode("utf-8", "replace")) + 1 for at in (first, last)]
    return Finding(
        path=path,
        span=Span(line.number, columns[0], line.number, columns[1], line.start + first, line.start + last),
        code=advice.code,
        level=Level.MANUAL,
        message=advice.message,
        api=names[0],
        effort=advice.effort,
        help=advice.help,
    )


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
    before = text[max(0, begin - _LONGEST_OPENING) : begin]
    if _EXPANDS.search(before) or (before.endswith(b"$(") and text[end : end + 1] in (b")", b":")):
        return begin, end
    while begin > floor and _NAME_BYTE.match(text, begin - 1):
        begin -= 1
    if text[max(0, begin - 2) : begin] == b"${" and (name := _DEFAULTS.match(text, begin, place)):
        begin = name.end()
    match = _NAME.match(text, place)
    return begin, max(match.end() if match is not None else 0, place + 4)


def _rest(findings: Sequence[Finding], lines: int) -> Finding:
    """Stands for the lines of a file that are not reported one by one."""
    last = next(finding for finding in reversed(findings) if not finding.ignored)
    number = last.span.line + 1
    return Finding(
        path=last.path,
        span=Span(number, 1, number, 1, last.span.end, last.span.end),
        code=last.code,
        level=Level.MANUAL,
        message=f"{lines} more lines of this file name CUDA",
        effort=last.effort,
        help=last.help,
    )
