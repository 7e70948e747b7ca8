"""JSON with the line of every value, so that an error in a user's file can point at it, and its errors in words."""

from __future__ import annotations

import json
import re
from typing import Any

#: The way to a value: keys and list indices from the top.
JsonPath = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class JsonError(ValueError):
    """A text that is not JSON, or names a key twice; `line` and `column` count from 1 (column 0: the whole line)."""

    def __init__(self, message: str, line: int, path: JsonPath = (), column: int = 0) -> None:
        super().__init__(message)
        self.message, self.line, self.path, self.column = message, line, path, column


class Lines:
    """The line of every value of a JSON text by its path (for object members, of the key); found when first asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[JsonPath, int] | None = None

    @property
    def by_path(self) -> dict[JsonPath, int]:
        if self._found is None:
            self._found = _lines(self._text)
        return self._found

    def get(self, path: JsonPath, default: int) -> int:
        return self.by_path.get(path, default)


def parse(text: str) -> tuple[Any, Lines]:
    """The value of a JSON text, and the lines of its values.

    Raises JsonError for syntax errors, nesting too deep to read, NaN or Infinity, and duplicate keys.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_members)
    except json.JSONDecodeError as found:
        error = _as_before_3_13(found)
        raise JsonError(_in_words(text, error), error.lineno, column=error.colno) from None
    except RecursionError:
        raise JsonError("not valid JSON: nested too deeply", 1) from None
    except _TwiceError:
        _lines(text)  # says which, and where
        raise
    except ValueError as error:
        raise JsonError(f"not valid JSON: {error}", 1) from None
    return value, Lines(text)


class _TwiceError(Exception):
    """Some object has a key twice."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _as_before_3_13(error: json.JSONDecodeError) -> json.JSONDecodeError:
    """The error at the bracket behind a comma too many; Python 3.13 and later point at the comma."""
    if not error.msg.startswith("Illegal trailing comma"):
        return error
    behind = error.doc[error.pos + 1 :]
    return json.JSONDecodeError("Expecting value", error.doc, error.pos + 1 + len(behind) - len(behind.lstrip()))


def _in_words(text: str, error: json.JSONDecodeError) -> str:
    """What is wrong with a JSON text, for somebody who has not read its grammar."""
    at, rest = error.pos, text[error.pos :]
    before = text[:at].rstrip()
    begins = rest.lstrip()[:1]
    shown = repr(begins)
    if not text.strip():
        return "not valid JSON: the file is empty"
    if not begins:
        return "not valid JSON: it ends too early"
    if error.msg == "Extra data":
        return f"not valid JSON: {shown} behind the end of the value"
    if begins == "'" or (begins and rest.lstrip().startswith(("\u201c", "\u201d", "\u2018"))):
        return "not valid JSON: text must be in straight double quotes"
    if rest.lstrip().startswith(("//", "/*", "#")):
        return "not valid JSON: it has no comments; a key 'description' or 'source' takes text"
    if before.endswith(",") and begins in ("]", "}"):
        return f"not valid JSON: a comma before {shown}; take it out"
    if error.msg.startswith("Expecting ',' delimiter"):
        return f"not valid JSON: a comma is missing before {shown}"
    if error.msg.startswith("Expecting ':' delimiter"):
        return f"not valid JSON: a colon is missing before {shown}"
    if error.msg.startswith("Expecting property name"):
        return f"not valid JSON: a key in double quotes was expected, not {shown}"
    if error.msg.startswith("Unterminated string"):
        return "not valid JSON: the closing double quote of this text is missing"
    if error.msg.startswith("Invalid control character"):
        return "not valid JSON: a line ends inside a text; write \\n for a new line"
    if error.msg.startswith("Invalid \\escape"):
        return "not valid JSON: a backslash inside a text is written twice"
    word = re.match(r"[\w.+-]+", rest.lstrip())
    known = {"True": "true", "False": "false", "None": "null"}.get(word[0] if word else "")
    if known:
        return f"not valid JSON: {word[0] if word else ''} is written {known}"
    return f"not valid JSON: a value was expected, not {word[0] if word else begins!r}"


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
                raise JsonError(f"the key {token} appears twice", line, path)
            lines[path] = line
        else:
            lines.setdefault(path, line)
            if token in "{[":
                stack.append((path, token == "{"))
                key_next = token == "{"
                path = path if key_next else (*path, 0)
    return lines
