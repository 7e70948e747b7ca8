"""How files of a dump are read: JSON as JSON, of bounded size, by paths that stay inside the dump."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from transplt.base.errors import reason, shown
from transplt.base.text.regular_file import Limit, read_regular
from transplt.precision.record import UnusableDump

#: A step of a large model has some 100,000 rows, about 100 MB.
RECORDS = Limit("records of dumps are read", 512 * 1024 * 1024)
#: The most folders and files of one dump that are looked at.
MOST_ENTRIES = 200_000


def read_json(path: str) -> Any:
    """The JSON of a file. UnusableDump, which names it, where it cannot be read, is damaged, or ends too early."""
    try:
        data = read_regular(path, RECORDS)
    except OSError as error:
        raise UnusableDump(f"cannot read {shown(path)}: {reason(error)}") from error
    return parsed(data, path)


def parsed(data: bytes, path: str, line: int | None = None) -> Any:
    """`data` as JSON; `line` is its line where it is one of many. UnusableDump as `read_json`."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        ends = error.pos >= len(error.doc.rstrip())
        what = "ends in the middle of a record: it is truncated" if ends else f"is not JSON ({error.msg})"
        raise UnusableDump(f"{shown(path)}:{at}: {what}") from error
    except UnicodeDecodeError as error:
        raise UnusableDump(f"{shown(path)}:{line or 1}: is not UTF-8 text") from error
    except (RecursionError, ValueError) as error:
        what = "is nested too deep, or has a number too long, for a record"
        raise UnusableDump(f"{shown(path)}:{line or 1}: {what}") from error


def json_lines(path: str) -> Iterator[tuple[int, Any]]:
    """(line number, value) of a file of one JSON value a line. UnusableDump as `read_json`."""
    try:
        data = read_regular(path, RECORDS)
    except OSError as error:
        raise UnusableDump(f"cannot read {shown(path)}: {reason(error)}") from error
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, parsed(line, path, number)


def inside(folder: str, name: str) -> str:
    """The path of the file `name` of a dump. UnusableDump where it would lie outside `folder`."""
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name))
    if os.path.commonpath((root, path)) != root or path == root:
        raise UnusableDump(f"{shown(folder)} names the file {shown(name)}, which lies outside it")
    return path


def folders(path: str) -> list[str]:
    """The names of the folders in a folder, sorted; links are left out."""
    return sorted(entry.name for entry in _entries(path) if entry.is_dir(follow_symlinks=False))


def files(path: str) -> list[str]:
    """The names of the regular files in a folder, sorted; links are left out."""
    return sorted(entry.name for entry in _entries(path) if entry.is_file(follow_symlinks=False))


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            found = []
            for entry in entries:
                found.append(entry)
                if len(found) > MOST_ENTRIES:
                    raise UnusableDump(f"{shown(path)} holds more than {MOST_ENTRIES} files")
            return found
    except OSError as error:
        raise UnusableDump(f"cannot read {shown(path)}: {reason(error)}") from error
