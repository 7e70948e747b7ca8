"""The last resort: where nothing is known in a log, the line near its end that says that it went wrong."""

from __future__ import annotations

import re

from transplt.precision.diagnose.cann_details import BEFORE_DETAILS
from transplt.precision.diagnose.error_matches import errors_in
from transplt.precision.diagnose.lines import parted, text_of
from transplt.rules.errors import KnownError, error_called

#: So many bytes of the end of a log are kept.
TAIL = 4_000
#: So many lines of the end are looked at, without empty ones, prompts and bars.
_MOST_LINES, _MOST_LAST, _MOST_TEXT = 5, 40, 400
#: What a shell says of a process, and the error that it is.
_SHELL = (
    (re.compile(r"^(?:\S+: line \d+: +\d+ |\[\d+\]\S* +\d* ?)?Killed\b"), "killed"),
    (re.compile(r"^(?:\S+: line \d+: +\d+ )?Aborted\b"), "aborted"),
    (re.compile(r"^(?:\[\d+\]\S* +\d* ?)?segmentation fault\b"), "segmentation-fault"),
)
#: Forms of a message that something went wrong; a sentence of a report that holds such a word is none.
_COMPLAINT = re.compile(
    r"\W{0,3}(?:LLVM )?(?:error|fatal|panic|critical|exception|failed|failure)\b\W|"
    r"(?:[\w.\[\]/-]+: ){1,3}\W?(?:error|fatal|failed|cannot|can't|could not|unable|unsupported|invalid|no such)\b|"
    r"(?:unsupported|invalid|unknown|unrecognized|missing|illegal) [\w ]{2,40}[:=] ?\S|(?:failed|unable) to \w|"
    r"(?:cannot|can't|could not) [a-z]|(?:\S+ ){1,4}failed(?:[:,]| with |$|\.$)|"
    r".*\b(?:error|return|ret|exit|status) ?(?:code|status|no|number)\b\W{0,4}(?:is )?-?[1-9]|"
    r".*\bret(?:urn)?\W{1,3}-?[1-9]\d*\b|.*\bexited? (?:with )?(?:status|code)? ?-?[1-9]",
    re.IGNORECASE,
)
#: What tells a message from prose.
_TECHNICAL = re.compile(r"[:=()\[\]_/<>'\"]|\d")
#: Lines that go well, or on: other levels, numbers of a metric, counts of none.
_FINE = re.compile(
    r"\b(?:INFO|DEBUG|WARN(?:ING)?|TRACE|NOTE)\b|[Ww]arning|\b(?:0|no|zero|without) (?:\w+ )?(?:errors?|fail\w*)\b|"
    r"\b(?:fail(?:ed|ures?)|errors?)\b\W{0,3}(?:0|none|false|no|null)\b|\b\w*error\w*\b\W{1,4}-?\d*\.\d|"
    r"\b(?:fail|error)[^\n]{0,60}[:=] ?(?:0|None|\[\]|\{\}|no|false)\s*$|\berror (?:rate|bar|margin|analysis|norm)|"
    r"(?:mean|absolute|squared|relative|word|char\w*|top-?\d|test|train\w*|val\w*|average) (?:\w+ )?error|"
    r"\bretry|\bretries|fall(?:ing|s)? ?back|ignor|skipp|success|[\d.]+(?:it/s|s/it)|"
    r"^\W*(?:error|failure|exception)[\w ]{0,30}[:\uff1a]\W*$|"
    r"^\s*(?:[$#>+|*-]|\d+[.)] |\w+@|raise |return |File \"|Traceback|assert |Dumping )|"
    r"\bloss\b|\bsteps?\b|\bepochs?\b|\bpassed\b|\bif\b|\?\s*$",
    re.IGNORECASE,
)


_NOT_A_NUMBER = re.compile(r"\bloss\w*['\"]?\s?(?:[:=]|is)\s?(?:tensor\()?['\"]?(?:nan|inf)\b", re.IGNORECASE)


def remark_of(tail: bytes) -> tuple[KnownError, str] | None:
    """(the remark, the line) for an end of a log that goes well and in which a loss is no number."""
    for raw in re.split(rb"[\r\n]+", tail):
        text = text_of(raw).strip()
        if _NOT_A_NUMBER.search(text) and (error := error_called("not-a-number")) is not None:
            return error, text[:_MOST_TEXT]
    return None


def last_lines(tail: bytes) -> tuple[str, ...]:
    """The lines at the end of a log that are not empty, the last one last; none for an empty log."""
    lines = (text_of(raw).strip() for raw in re.split(rb"[\r\n]+", tail))
    return tuple(text[:_MOST_TEXT] for text in lines if text)[-_MOST_LAST:]


def end_of(tail: bytes) -> tuple[KnownError | None, str, tuple[str, ...]] | None:
    """(the error where its form is known, the line, those around it) with which a log that tells of no error ends.
    None where it ends well."""
    whole = [text_of(raw).strip() for raw in re.split(rb"[\r\n]+", tail)]
    whole = [text for text in whole if text][-_MOST_LINES:]
    lines = [parted(text)[1].strip() for text in whole]
    for place, line in enumerate(lines):
        # Lines of CANN without the code that stood before them: the first one is nearest to the cause.
        if BEFORE_DETAILS in line:
            return None, line[:_MOST_TEXT], tuple(text[:200] for text in (*lines[:place], "", *lines[place + 1 :]))
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place][:_MOST_TEXT]
        around = tuple(text[:200] for text in (*lines[max(0, place - 3) : place], "", *lines[place + 1 :][:2]))
        for pattern, name in _SHELL:
            if pattern.match(line):
                return error_called(name), line, around
        if any(map(_FINE.search, (line, whole[place]))) or not _TECHNICAL.search(line):
            continue
        if _COMPLAINT.match(line) and not errors_in(line):
            return None, line, around
    return None
