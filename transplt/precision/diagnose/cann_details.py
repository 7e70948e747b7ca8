"""What CANN says behind a code: the lines with [FUNC:...][FILE:...], of which the first is nearest to the cause."""

from __future__ import annotations

import re

from transplt.precision.diagnose.lines import parted, text_of

#: So many are kept of one failure.
MOST = 3
BEFORE_DETAILS = "[FUNC:"
_DETAIL = re.compile(r"^(?P<said>.*?)\.? ?\[FUNC: ?(?P<function>\w+)\] ?\[FILE: ?(?P<file>[\w.]+)\]")
#: They hand on what another function has said.
_HANDED_ON = re.compile(
    r"Report(?:CallError|InnerError|FuncErrorReason|ErrorInfo)|FuncErrorReason|GetDevErrMsg|PrintCoreInfoErrMsg|"
    r"ProcessStarsCoreErrorInfo|PrintCoreErrorInfo|ReportErrorInfoForModel"
)
_BEFORE = re.compile(
    r"^\s*(?:E[0-9A-Z]\d{4}(?:: ?|(?=\[)))?(?:\[PID: ?\d+\] ?)?(?:\d{4}-\d\d-\d\d-[\d:.]+ ?)?(?:\(E\w{5}\): *)?"
)


def detail_in(text: str) -> str:
    """What the line says, and the file of CANN that says it; empty for none and for lines that hand on another one."""
    if BEFORE_DETAILS not in text:
        return ""
    match = _DETAIL.match(text)
    if match is None or _HANDED_ON.search(match["function"]):
        return ""
    said = _BEFORE.sub("", match["said"], count=1).strip()
    return f"{said[:300]} ({match['file']})" if said else ""


def with_details(known: tuple[str, ...], more: str) -> tuple[str, ...]:
    """Details that are known and a new one, each once and not too many."""
    return tuple(dict.fromkeys((*known, more)))[:MOST] if more else known


#: A message goes on in the next lines where it ends so, up to what begins another one.
_GOES_ON = re.compile(r"(?:[,:]|\bbut|\band)$")
_ANOTHER = re.compile(
    r"Trace[Bb]ack|\[?(?:ERROR|INFO|WARNING)\b|E[0-9A-Z]\d{4}|\[\w+\]|Solution|Possible Cause|///|File \""
)
_MOST_REST, _MOST_TEXT = 3, 400


def with_rest(text: str, piece: bytes, end: int) -> str:
    """A line whose message goes on in the next ones, with those; `end` is where the line ends in the piece."""
    if not _GOES_ON.search(text):
        return text
    lines = piece[end : end + 1_200].strip(b"\r\n").splitlines()[: _MOST_REST + 1]
    for place, raw in enumerate(lines[:_MOST_REST]):
        more = parted(text_of(raw))[1].strip()
        if not more and text.endswith(":") and any(line[:1].isspace() for line in lines[place + 1 :][:1]):
            continue  # CMake sets what it names apart, by an empty line and an indent
        if not more or _ANOTHER.match(more) or len(text) > _MOST_TEXT:
            break
        text = f"{text} {more}"
        if not _GOES_ON.search(text):
            break
    return text
