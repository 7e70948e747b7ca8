"""The user's own settings, which hold for every project: `transplt/settings.toml` in the folder for settings."""

from __future__ import annotations

import os
from collections.abc import Mapping

from transplt.base.errors import UsageError, reason, shown
from transplt.base.settings_folder import settings_folder
from transplt.base.text.regular_file import SETTINGS, read_regular
from transplt.base.text.toml import parse_toml


def own_fixers(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names under `fixers`, none where there is no such file. UsageError for one that is wrong."""
    folder = settings_folder(environment)
    if not folder:
        return ()
    path = os.path.join(folder, "settings.toml")
    try:
        table = parse_toml(read_regular(path, SETTINGS).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except ValueError as error:
        raise UsageError(f"{shown(path)} is not TOML: {error}") from error
    names = table.get("fixers", [])
    if {*table} - {"fixers"} or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f'{shown(path)}: it holds `fixers = ["name"]`, and nothing else')
    return tuple(names)
