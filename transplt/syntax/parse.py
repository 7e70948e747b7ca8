"""A decoded file as a syntax tree, or why it is none."""

from __future__ import annotations

import ast
import re
import sys

from transplt.base.text.source import Source, UnreadableSource


def parse(source: Source) -> ast.Module:
    """Parse a decoded file; raises `UnreadableSource` for what no Python, or only a newer one, reads."""
    try:
        # A str, not bytes: the parser would follow a cookie inside bytes.
        return ast.parse(source.text)
    except SyntaxError as error:
        line = error.lineno or 1
        if line <= len(source.line_starts) and _PYTHON2.match(source.line_text(line)):
            raise UnreadableSource("NPU901", line, "Python 2 code; convert it to Python 3 first", TO_PYTHON_3) from None
        if version := _newer(source, line):
            reason, how = f"needs Python {version} or newer to read", NEWER_PYTHON.format(version)
            raise UnreadableSource("NPU901", line, reason, how, python=version) from None
        hint = _foreign_syntax(source, line)
        column = max(error.offset or 1, 1) if not hint else 1
        raise UnreadableSource("NPU901", line, hint or f"syntax error: {error.msg}", column=column) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = "nested too deeply for this Python to read" if not isinstance(error, ValueError) else str(error)
        raise UnreadableSource("NPU903", 1, reason) from None


#: What to do with Python 2. Source: docs.python.org, whatsnew 3.13 (lib2to3 is gone); package fissix.
TO_PYTHON_3 = (
    "`2to3 -w FILE` does most of it; with Python 3.13 and newer: `pip install fissix`, then `fissix -w FILE`. Then run "
    "transplt again"
)
_PYTHON2 = re.compile(r"^\s*(?:print\s+[^(=\s]|exec\s+[\"']|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)")
#: How transplt is run under another Python.
NEWER_PYTHON = "run transplt under it: `uv run --python {} transplt ...`"
#: Definitions and clauses of newer Pythons, newest first; and strings, which say so only in a line that is refused.
_DEFINITIONS = (
    (re.compile(r"^\s*except\s+[\w.]+\s*,\s*[\w.]+(?:\s*,\s*[\w.]+)*\s*:"), "3.14"),
    (re.compile(r"^\s*(?:(?:async\s+)?def|class|type)\s+\w+\[[^(=\]]*="), "3.13"),
    (re.compile(r"^\s*type\s+\w+(?:\[.*\])?\s*="), "3.12"),
    (re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+\w+\["), "3.12"),
    (re.compile(r"^\s*except\s*\*"), "3.11"),
)
_STRINGS = ((re.compile(r"\bt(?:\"|')"), "3.14"), (re.compile(r"\bf(?:\"|').*\{"), "3.12"))


def _newer(source: Source, line: int) -> str:
    """The Python that reads a file of which this one refuses a line, if that can be seen: the newest that it needs."""
    if line > len(source.line_starts):
        return ""
    text = source.line_text(line)
    refused = [version for pattern, version in (*_DEFINITIONS, *_STRINGS) if pattern.search(text)]
    if all(sys.version_info >= python_of(version) for version in refused):
        return ""
    lines = [source.line_text(number) for number in range(1, len(source.line_starts) + 1)]
    more = [version for pattern, version in _DEFINITIONS if any(map(pattern.search, lines))]
    return max((*refused, *more), key=python_of)


def python_of(version: str) -> tuple[int, ...]:
    """`"3.12"` -> `(3, 12)`."""
    return tuple(map(int, version.split(".")))


def _foreign_syntax(source: Source, line: int) -> str:
    """Say what a line that no Python 3 reads was written for, if that can be seen."""
    if line > len(source.line_starts):
        return ""
    text = source.line_text(line)
    if re.search(r"\{\{.*\}\}|\{%", text):
        return "a template, not Python: it holds {{ }} or {% %}"
    if re.search(r"\(\s*async\s*=|,\s*async\s*=", text):
        return "uses `async` as an argument name (Python 3.6 or older); write non_blocking instead"
    return ""
