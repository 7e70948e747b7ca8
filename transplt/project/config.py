"""`[tool.transplt]` in the pyproject.toml of the input, and of the files that it extends: what holds unless the command
line sets it.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transplt.base.budget import Budget, parse_budget
from transplt.base.disk.walk import Excluded
from transplt.base.errors import UsageError, reason, shown
from transplt.base.settings import IMPORTS, STYLES
from transplt.base.text.regular_file import SETTINGS, read_regular
from transplt.base.text.toml import parse_toml
from transplt.base.text.toml_places import toml_values
from transplt.project.torch_version import check_version

EXTEND = "extend"
#: So many files a chain may have.
_MOST = 20


@dataclass(frozen=True, slots=True)
class Config:
    """The project's own settings, by the names of `Options`; None where they set nothing.

    `rules` are files inside the project; `folder` holds the pyproject.toml, None where there are no settings.
    `inherited` are keys that another file has set, which `extend` names, with that file; `extended` all such files.
    """

    torch_version: str | None = None
    style: str | None = None
    helper: str | None = None
    torch_npu_import: str | None = None
    specify_device: bool | None = None
    similar: bool | None = None
    unsafe_fixes: bool | None = None
    annotate: bool | None = None
    annotate_edits: bool | None = None
    texts: bool | None = None
    docs: bool | None = None
    copy_all: bool | None = None
    file_budget: Budget | None = None
    prove: str | None = None  # a command that runs only where --prove asks for it
    rules: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    folder: Path | None = None
    inherited: tuple[tuple[str, Path], ...] = ()
    extended: tuple[Path, ...] = ()

    def base(self, inner: Path) -> str:
        """The way from the folder of the settings down to `inner`, with a trailing slash; empty where they are one."""
        if self.folder is None or inner == self.folder:
            return ""
        return inner.relative_to(self.folder).as_posix() + "/"


_BOOLEANS = ("specify-device", "similar", "unsafe-fixes", "annotate", "annotate-edits", "texts", "docs", "copy-all")
_KEYS = (
    "torch-version", "style", "helper", "torch-npu-import", *_BOOLEANS, "file-budget", "prove", "rules", "exclude",
    "per-file-ignores", EXTEND,
)  # fmt: skip
#: Options of the command line alone.
_ASKED_FOR = ("amp", "amp-dtype", "opt-level", "loss-scale", "combine-ddp", "amp-flag", "tune", "adapt")


def find_config(folder: Path, *, isolated: bool = False) -> Config:
    """The settings of the nearest pyproject.toml with [tool.transplt], from `folder` up to the top of its repository.

    Outside of a repository the search goes on to the root of the file system. UsageError names the key at fault.
    Where the run is `isolated`, nothing is read and nothing reported.
    """
    if isolated:
        return Config()
    for above in (folder, *folder.parents):
        config = read_config(above)
        if config.folder is not None or (above / ".git").exists():
            return config
    return Config()


def read_config(folder: Path) -> Config:
    """The settings in `folder`/pyproject.toml; empty ones where there is none. UsageError names the key at fault."""
    own = read_table(folder / "pyproject.toml")
    if own is None:
        return Config()
    found, known = _config(own.table, folder, own.where), {*own.table}
    inherited: dict[str, Path] = {}
    extended = extended_by(own)
    for base in extended:
        theirs = _config(base.table, base.path.parent, base.where)
        keys = [key for key in base.table if key not in known and key != EXTEND]
        found = replace(found, **{name: getattr(theirs, name) for name in (key.replace("-", "_") for key in keys)})
        inherited |= dict.fromkeys(keys, base.path)
        known.update(keys)
    return replace(found, inherited=tuple(inherited.items()), extended=tuple(base.path for base in extended))


def _config(table: Any, folder: Path, where: str) -> Config:
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table")
    for key in table:
        if key not in _KEYS:
            close = difflib.get_close_matches(key.replace("_", "-"), _KEYS, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(_KEYS)}"
            if key.replace("_", "-") in _ASKED_FOR:
                hint = ("this may change a program's numbers, so it must be given at each run: "
                        f"--{key.replace('_', '-')}")
            raise UsageError(f"{where}: unknown key {key!r}; {hint}")
    for key in _BOOLEANS:
        if key in table and not isinstance(table[key], bool):
            raise UsageError(f"{where}: {key} must be true or false")
    style = table.get("style")
    if style is not None and style not in STYLES:
        raise UsageError(f"{where}: style must be one of {', '.join(STYLES)}")
    where_imported = table.get("torch-npu-import")
    if where_imported is not None and where_imported not in IMPORTS:
        raise UsageError(f"{where}: torch-npu-import must be one of {', '.join(IMPORTS)}")
    version = table.get("torch-version")
    if version is not None:
        if not isinstance(version, str):
            raise UsageError(f'{where}: torch-version must be a string such as "2.8"')
        try:
            version = check_version(version)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
    try:
        budget = parse_budget(table["file-budget"], Budget()) if "file-budget" in table else None
    except ValueError as error:
        raise UsageError(f"{where}: file-budget must be {error}") from error
    booleans: dict[str, Any] = {key.replace("-", "_"): table.get(key) for key in _BOOLEANS}
    return Config(
        torch_version=version,
        file_budget=budget,
        style=style,
        helper=_text(table, "helper", where),
        prove=_text(table, "prove", where),
        torch_npu_import=where_imported,
        **booleans,
        rules=tuple(_inside(folder, name, where) for name in _strings(table, "rules", where)),
        exclude=_patterns(table, where),
        per_file_ignores=_ignores(table.get("per-file-ignores", {}), where),
        folder=folder,
    )


def _text(table: dict[str, Any], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{where}: {key} must be a string")
    return value


def _strings(table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{where}: {key} must be a list of strings")
    return tuple(value)


def _patterns(table: dict[str, Any], where: str) -> tuple[str, ...]:
    patterns = _strings(table, "exclude", where)
    try:
        Excluded(("", patterns))
    except ValueError as error:
        raise UsageError(f"{where}: a pattern of exclude cannot be read: {error}") from error
    return patterns


def _ignores(value: Any, where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    where = f"{where}: per-file-ignores"
    if not isinstance(value, dict):
        raise UsageError(f'{where} must be a table such as {{"tests/*" = ["NPU3"]}}')
    for pattern in value:
        if "\\" in pattern:
            raise UsageError(f"{where}: {pattern!r} must use / between folders")
    found = tuple((pattern, _strings(value, pattern, where)) for pattern in value)
    for prefix in (prefix for _, codes in found for prefix in codes):
        from transplt.rules.pages import is_prefix, nearest_code

        if not is_prefix(prefix):
            hint = f"; did you mean {near}?" if (near := nearest_code(prefix)) else ""
            raise UsageError(f"{where}: no code starts with {prefix!r}{hint}")
    return found


def _inside(folder: Path, name: str, where: str) -> Path:
    """A rule file named by the project: it must lie in the project."""
    path = folder / name
    try:
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError as error:
        raise UsageError(f"{where}: {name!r} is not a possible file name") from error
    if not inside:
        raise UsageError(f"{where}: the rule file {name!r} is outside the project; pass it with -r")
    return path


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
