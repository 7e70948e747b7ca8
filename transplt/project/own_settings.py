"""The user's own settings, which hold for every project: `transplt/settings.toml` in the folder for settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from transplt.base.budget import Budget, parse_budget
from transplt.base.errors import UsageError, reason, shown
from transplt.base.language import LANGUAGES
from transplt.base.settings_folder import settings_folder
from transplt.base.text.regular_file import SETTINGS, read_regular
from transplt.base.text.toml import parse_toml

_KEYS = {"codemods", "fixers", "file-budget", "language"}


def own_fixers(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names under `fixers`, none where there is no such file. UsageError for one that is wrong."""
    return _names("fixers", "name", environment)


def own_codemods(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Likewise those under `codemods`."""
    return _names("codemods", "package.module.Class", environment)


def _names(key: str, example: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    path, table = _own(environment)
    names = table.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f'{shown(path)}: {key} must be a list of names, `{key} = ["{example}"]`')
    return tuple(names)


def budget_for(asked: Budget | None, environment: Mapping[str, str]) -> Budget:
    """What each file may cost: what the user's own settings say, else the default; an input (`asked`) may lower it."""
    path, table = _own(environment)
    own = Budget()
    if "file-budget" in table:
        try:
            own = parse_budget(table["file-budget"], own)
        except ValueError as error:
            raise UsageError(f"{shown(path)}: file-budget must be {error}") from error
    return own if asked is None else own.with_at_most(asked)


def own_language(environment: Mapping[str, str]) -> str:
    """The language under `language`, empty where there is none. UsageError for one that is not known."""
    path, table = _own(environment)
    name = table.get("language", "")
    if name not in ("", *LANGUAGES):
        raise UsageError(f"{shown(path)}: language must be one of {', '.join(LANGUAGES)}")
    return str(name)


def _own(environment: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The file with the settings, and what stands in it."""
    folder = settings_folder(environment)
    if not folder:
        return "", {}
    path = os.path.join(folder, "settings.toml")
    try:
        table = parse_toml(read_regular(path, SETTINGS).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return path, {}
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except ValueError as error:
        raise UsageError(f"{shown(path)} is not TOML: {error}") from error
    if {*table} - _KEYS:
        raise UsageError(f"{shown(path)}: only {', '.join(sorted(_KEYS))} can be set here")
    return path, table
