"""The table [tool.transplt] of a file, and those of the files that it extends."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transplt.base.errors import UsageError, reason, shown
from transplt.base.text.regular_file import SETTINGS, read_regular
from transplt.base.text.toml import parse_toml
from transplt.base.text.toml_places import toml_values

EXTEND = "extend"
#: So many files a chain may have.
_MOST = 20


@dataclass(frozen=True, slots=True)
class Table:
    """[tool.transplt] of the file at `path`, whose text is `text`. `where` begins an error."""

    path: Path
    table: dict[str, Any]
    text: str

    @property
    def where(self) -> str:
        return f"{shown(self.path)}: [tool.transplt]"

    def at(self, key: str) -> str:
        """Path and line of a key, as an error begins."""
        found = next((each for each in toml_values(self.text) if each.path == ("tool", "transplt", key)), None)
        line = f":{self.text.count(chr(10), 0, found.key) + 1}" if found is not None else ""
        return f"{shown(self.path)}{line}: {key}"


def read_table(path: Path) -> Table | None:
    """The table of a file; None where there is no file, or no such table. UsageError for what cannot be read."""
    try:
        text = read_regular(path, SETTINGS).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(path)} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}; --isolated ignores the settings") from error
    if "transplt" not in text:
        return None
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise UsageError(f"{shown(path)} is not TOML: {error}") from error
    tool = table.get("tool", {})
    if not isinstance(tool, dict) or "transplt" not in tool:
        return None
    if not isinstance(tool["transplt"], dict):
        raise UsageError(f"{shown(path)}: [tool.transplt] must be a table")
    return Table(path, tool["transplt"], text)


def extended_by(table: Table) -> list[Table]:
    """The tables that a table extends, the nearest first.

    They lie in the repository around it, without one in its folder: an input has no say over what lies elsewhere.
    UsageError, with path and line, for anything else, for a file that is not there and for a circle.
    """
    folder = table.path.parent
    above = (each for each in (folder, *folder.parents) if (each / ".git").exists())
    top = Path(os.path.realpath(next(above, folder)))
    seen = [Path(os.path.realpath(table.path))]
    found: list[Table] = []
    while EXTEND in table.table:
        name, at = table.table[EXTEND], table.at(EXTEND)
        if not isinstance(name, str):
            raise UsageError(f'{at} must be the path of one file, such as "../base.toml"')
        try:
            real = Path(os.path.realpath(table.path.parent / name))
        except ValueError as error:
            raise UsageError(f"{at}: {name!r} is not a possible file name") from error
        if not real.is_relative_to(top):
            raise UsageError(f"{at}: {name!r} is outside {shown(top)}: settings only come from the project")
        if real in seen:
            raise UsageError(f"{at}: {name!r} extends this file itself, in a circle")
        if len(found) == _MOST:
            raise UsageError(f"{at}: {name!r} would be one file more than {_MOST} that extend each other")
        if not real.exists():
            raise UsageError(f"{at}: no such file: {name!r}")
        base = read_table(Path(os.path.normpath(table.path.parent / name)))
        if base is None:
            raise UsageError(f"{at}: {name!r} has no table [tool.transplt]")
        seen.append(real)
        found.append(base)
        table = base
    return found
