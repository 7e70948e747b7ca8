"""JSON with the line of every value, so that an error in a user's file can point at it."""

from __future__ import annotations

import json
import re
from typing import Any

#: The way to a value: keys and list indices from the top.
JsonPath = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class JsonError(ValueError):
    """A text that is not JSON, or names a key twice; `line` counts from 1."""

    def __init__(self, message: str, line: int, path: JsonPath = ()) -> None:
        super().__init__(message)
        self.message, self.line, self.path = message, line, path


def parse(text: str) -> tuple[Any, dict[JsonPath, int]]:
    """The value of a JSON text, and the line of every value in it by its path (for object members, of the key).

    Raises JsonError for syntax errors, nesting too deep to read, NaN or Infinity, and duplicate keys.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise JsonError("not valid JSON: nested too deeply", 1) from None
    except ValueError as error:
        raise JsonError(f"not valid JSON: {error}", 1) from None
    return value, _lines(text)


def show_path(path: JsonPath) -> str:
    """A path as people write it: `$.rules.ArgsModifyRule[0].arg_idx`."""
    shown = "$"
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{step}" if step.isidentifier() else f"[{step!r}]"
    return shown


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def _lines(text: str) -> dict[JsonPath, int]:
    """Lines by path of a text that is valid JSON; an explicit stack, so depth does not matter."""
    lines: dict[JsonPath, int] = {}
    stack: list[tuple[JsonPath, bool]] = []  # open containers: path, is it an object
    path: JsonPath = ()
    line, position, key_next = 1, 0, False
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        token = match[0]
        if token in "}]":
            path, _ = stack.pop()
            key_next = False
        elif token == ",":
            parent, is_object = stack[-1]
            last = path[-1]
            path = parent if is_object else (*parent, int(last) + 1)
            key_next = is_object
        elif token == ":":
            key_next = False
        elif key_next:
            path = (*stack[-1][0], json.loads(token))
            if path in lines:
                raise JsonError(f"the key {token} stands here twice", line, path)
            lines[path] = line
        else:
            lines.setdefault(path, line)
            if token in "{[":
                stack.append((path, token == "{"))
                key_next = token == "{"
                path = path if key_next else (*path, 0)
    return lines
