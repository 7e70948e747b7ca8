"""Which of the watched lines ran. Costs nothing for files that hold none."""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any

from .config import config
from .record import record


def install() -> None:
    """Start recording; does nothing when no line is watched."""
    watched = {path: frozenset(lines) for path, lines in config.watch.items()}
    if not watched:
        return
    if sys.version_info >= (3, 12):
        _monitor(watched)
    else:
        _trace(watched)


def _resolver(watched: dict[str, frozenset[int]]) -> Any:
    import os

    known: dict[str, str | None] = {}

    def real(filename: str) -> str | None:
        if filename not in known:
            path = os.path.realpath(filename)
            known[filename] = path if path in watched else None
        return known[filename]

    return real


def _monitor(watched: dict[str, frozenset[int]]) -> None:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = next((i for i in (3, 4, 5) if monitoring.get_tool(i) is None), None)
    if tool is None:
        record.note("no free slot of sys.monitoring: executed lines are not recorded")
        return
    monitoring.use_tool_id(tool, "transplt")
    real = _resolver(watched)

    def on_start(code: CodeType, offset: int) -> Any:
        if real(code.co_filename) is not None:
            monitoring.set_local_events(tool, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def on_line(code: CodeType, line: int) -> Any:
        path = real(code.co_filename)
        if path is not None and line in watched[path]:
            record.lines.setdefault(path, set()).add(line)
        return monitoring.DISABLE

    monitoring.register_callback(tool, monitoring.events.PY_START, on_start)
    monitoring.register_callback(tool, monitoring.events.LINE, on_line)
    monitoring.set_events(tool, monitoring.events.PY_START)


def _trace(watched: dict[str, frozenset[int]]) -> None:
    real = _resolver(watched)

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        path = real(frame.f_code.co_filename)
        if path is None:
            return None
        wanted = watched[path]
        seen = record.lines.setdefault(path, set())

        def on_line(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line" and frame.f_lineno in wanted:
                seen.add(frame.f_lineno)
            return on_line

        if frame.f_lineno in wanted:
            seen.add(frame.f_lineno)
        return on_line

    threading.settrace(on_call)
    sys.settrace(on_call)
