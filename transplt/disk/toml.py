"""TOML, read by the standard library where that can."""

from __future__ import annotations

import sys
from typing import Any


def parse_toml(text: str) -> dict[str, Any]:
    """ValueError for what is not TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return table
