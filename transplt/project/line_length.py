"""How long a line of a project may be, as its formatters and linters are told."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

from transplt.base.text.regular_file import SETTINGS, read_regular
from transplt.base.text.toml import parse_toml

DEFAULT = 88  # of black and ruff
#: Keys of pyproject.toml and ruff.toml, and of files with sections, the one that writes lines before those that check.
_TABLES = (
    ("pyproject.toml", ("tool", "black", "line-length")), ("pyproject.toml", ("tool", "ruff", "line-length")),
    ("ruff.toml", ("line-length",)), (".ruff.toml", ("line-length",)),
    ("pyproject.toml", ("tool", "yapf", "column_limit")), ("pyproject.toml", ("tool", "isort", "line_length")),
)  # fmt: skip
_SECTIONS = (
    ("setup.cfg", "flake8", "max-line-length"), (".flake8", "flake8", "max-line-length"),
    ("tox.ini", "flake8", "max-line-length"), ("setup.cfg", "pycodestyle", "max-line-length"),
    ("setup.cfg", "yapf", "column_limit"), (".style.yapf", "style", "column_limit"),
    ("setup.cfg", "isort", "line_length"), (".isort.cfg", "settings", "line_length"),
    (".editorconfig", "*.py", "max_line_length"), (".editorconfig", "*", "max_line_length"),
)  # fmt: skip


def line_length(folder: Path) -> int:
    """The limit that the nearest folder with one says, from `folder` up to the top of its repository; else 88."""
    for above in (folder, *folder.parents):
        read = {name: sections_of(above / name) for name in {name for name, _, _ in _SECTIONS}}
        values = [(read[name].get(section, {}).get(key) or "").strip() for name, section, key in _SECTIONS]
        for found in (*_in_tables(above), *[int(value) for value in values if value.isdecimal()]):
            if isinstance(found, int) and 40 <= found <= 1000:
                return found
        if (above / ".git").exists():
            break
    return DEFAULT


def _in_tables(folder: Path) -> list[Any]:
    read = {name: table_of(folder / name) for name in {name for name, _ in _TABLES}}
    found = []
    for name, keys in _TABLES:
        value: Any = read[name]
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        found.append(value)
    return found


def table_of(path: Path) -> dict[str, Any]:
    """What a file of TOML says; nothing where it cannot be read."""
    try:
        return parse_toml(text_of(path))
    except ValueError:
        return {}


def sections_of(path: Path) -> dict[str, dict[str, str]]:
    """What a file with sections says; nothing where it cannot be read."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        text = text_of(path)
        parser.read_string(f"[top]\n{text}" if path.name == ".editorconfig" else text)
    except configparser.Error:
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def text_of(path: Path) -> str:
    """The text of a file; empty where there is none that can be read: nothing but a width depends on it."""
    try:
        return read_regular(path, SETTINGS).decode("utf-8", "replace")
    except OSError:
        return ""
