"""Whether a file that is missing was to be written: the error of `open` does not say for what it was opened."""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
from collections.abc import Iterator
from types import FrameType
from typing import Any

#: In a mode that is text, and in one that is flags.
_WRITES, _FLAGS = frozenset("wax+"), os.O_WRONLY | os.O_RDWR | os.O_CREAT


def is_to_write(error: BaseException) -> bool:
    """True for a file that was opened for writing, or a folder to be made, in a folder that is not there."""
    trace, path = error.__traceback__, getattr(error, "filename", None)
    if not isinstance(error, FileNotFoundError) or not isinstance(path, (str, bytes)) or trace is None:
        return False
    if os.path.isdir(os.path.dirname(os.fsdecode(path)) or "."):
        return False  # what is written would be there then
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    found = [_writes(call, frame) for call in _calls(frame.f_code.co_filename, trace.tb_lineno)]
    told = [each for each in found if each is not None]
    return bool(told) and all(told)


def _calls(filename: str, line: int) -> Iterator[ast.Call]:
    """The calls on a line of a source file."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(filename)))):
            if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno):
                yield node


def _writes(call: ast.Call, frame: FrameType) -> bool | None:
    """Whether a call opens a file for writing; None for one that opens nothing."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "mkdir":
        return True
    if "open" not in name:
        return None
    given = call.args[1:2] or [each.value for each in call.keywords if each.arg in ("mode", "flags")]
    mode = _value(given[0], frame) if given else "r"
    if isinstance(mode, int):
        return bool(mode & _FLAGS)
    return isinstance(mode, str) and bool(_WRITES & {*mode})


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression is in a frame, as far as nothing has to be called for that; else None."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, frame), "__dict__", {}).get(node.attr)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return next(filter(None, (_value(each, frame) for each in node.values)), None)
    return None
