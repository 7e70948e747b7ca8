"""What CANN says behind a code: the lines with [FUNC:...][FILE:...], of which the first is nearest to the cause."""

from __future__ import annotations

import re

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
