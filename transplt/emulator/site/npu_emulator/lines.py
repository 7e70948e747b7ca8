"""Which of the watched lines ran. Costs nothing for files that hold none."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from .config import config
from .record import record

#: What `sys.settrace` has, None where nothing is traced by it.
_tracer: Any = None
_paused = 0


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
    """For Pythons before 3.12: every call of a function costs a look into a dict."""
    real = _resolver(watched)
    handlers: dict[str, Any] = {}

    def handler_of(filename: str) -> Any:
        path = real(filename)
        if path is None:
            return None
        wanted, seen = watched[path], record.lines.setdefault(path, set())

        def on_line(frame: FrameType, event: str, arg: Any) -> Any:
            if frame.f_lineno in wanted and event != "return":
                seen.add(frame.f_lineno)
            return on_line

        return on_line

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        filename = frame.f_code.co_filename
        try:
            handler = handlers[filename]
        except KeyError:
            handler = handlers[filename] = handler_of(filename)
        return None if handler is None else handler(frame, event, arg)

    global _tracer
    _tracer = on_call
    threading.settrace(on_call)
    sys.settrace(on_call)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Let what runs now go untraced: the import of a large library, in which there are no watched lines."""
    global _paused
    if _tracer is None:
        yield
        return
    _paused += 1
    sys.settrace(None)
    try:
        yield
    finally:
        _paused -= 1
        if not _paused:
            sys.settrace(_tracer)
