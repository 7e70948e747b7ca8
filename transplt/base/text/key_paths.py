"""The keys of a configuration file with their way from the top, read line by line: YAML, JSON, TOML and INI.

It is no parser: what stands on lines of its own is seen, in the order of the file, with the place of each value. A flow
mapping on one line (`{a: {b: 1}}`) is the value of its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(
    r"([ \t]*)((?:-[ \t]+)*)"
    r"(?:([\"']?)([^\s\"'#:{}\[\],=&*!|>%@`][^\"':=]{0,100}?)\3[ \t]*(:(?=\s|$)|=)[ \t]*)?(.*)"
)
_SECTION = re.compile(r"[ \t]*\[{1,2}([^\[\]]+)\]{1,2}[ \t]*(?:[#;].*)?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_DEEPEST, _LONGEST_LINE = 8, 20_000
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}")


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One key: its way from the top (`a.b`, `a.list[]`; the end of a long one), its value without quotes, its place.

    `line` counts from 0; `start` and `end` are columns in characters; `above` is the index of the key that holds it,
    -1 at the top.
    """

    path: str
    value: str
    line: int
    start: int
    end: int
    above: int


def key_lines(text: str) -> list[KeyLine]:
    """The keys of a configuration file, and the items of its lists."""
    found: list[KeyLine] = []
    open_: list[tuple[int, str, int]] = []  # indentation, path, index
    section, block = "", -1
    for number, line in _lines(text):
        if match := _SECTION.fullmatch(line):
            section, open_ = match[1].strip().replace('"', ""), []
            continue
        indent, dashes, _, key, _, rest = _matched(line)
        column = len(indent) + len(dashes)
        if block >= 0 and (len(indent) > block or not line.strip()):
            continue
        block = -1
        value = _value(rest)
        if not key and not dashes:
            if value.startswith(("}", "]")) or not value:
                continue
            key = ""
        while open_ and open_[-1][0] >= (column if key else len(indent) + max(0, len(dashes) - 2)):
            if not key and dashes and open_[-1][0] == len(indent):
                break  # a list may stand at the indentation of its key
            open_.pop()
        head = open_[-1][1] if open_ else section
        above = open_[-1][2] if open_ else -1
        if not key:
            if value and value not in ("{", "["):
                found.append(KeyLine(f"{head}[]", value, number, column, len(line.rstrip()), above))
            continue
        path = ".".join([*head.split("."), key][-_DEEPEST:]) if head else key
        found.append(KeyLine(path, value, number, column, len(line.rstrip()), above))
        open_.append((column, path, len(found) - 1))
        if _BLOCK.fullmatch(value):
            block = len(indent) + len(dashes)
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n")):
        bare = line.rstrip("\r")
        if len(bare) <= _LONGEST_LINE and bare.strip() and not bare.lstrip().startswith(("#", "//", ";", "---")):
            yield number, bare


def _matched(line: str) -> tuple[str, str, str, str, str, str]:
    match = _LINE.fullmatch(line)
    if match is None:  # a line separator inside of the line
        return "", "", "", "", "", ""
    indent, dashes, quote, key, sign, rest = (part or "" for part in match.groups())
    return indent, dashes, quote, key.strip(), sign, rest


def _value(rest: str) -> str:
    value = rest.strip()
    if not value.startswith(('"', "'")):
        value = _COMMENT.sub("", value).rstrip()
    value = value.rstrip(",").rstrip()
    if len(value) > 1 and value[0] in "\"'" and value[0] in value[1:]:
        value = value[1 : value.index(value[0], 1)]
    return value
