"""Where the user's own settings lie, which hold for every project."""

from __future__ import annotations

import os
from collections.abc import Mapping


def settings_folder(environment: Mapping[str, str]) -> str:
    """`transplt` below `XDG_CONFIG_HOME` (an absolute path, as its standard asks) or `~/.config`; empty for a user
    without a home."""
    given = environment.get("XDG_CONFIG_HOME", "")
    top = given if os.path.isabs(given) else os.path.join(environment.get("HOME", ""), ".config")
    return os.path.join(top, "transplt") if os.path.isabs(top) else ""
