"""TOML, read by the standard library where that can."""

from __future__ import annotations

import re
import sys
from typing import Any

#: Strings, comments and blanks: dots in these are no steps of a key.
_NO_KEY = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*|[ \t]")
#: The parser takes the square of a key's length, and more: half a minute for a key of 40 kB.
_MOST_STEPS = 60


def parse_toml(text: str) -> dict[str, Any]:
    """ValueError for what is not TOML, or nested deeper than Python can follow."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if any(piece.count(".") > _MOST_STEPS for piece in re.split(r"[^\w.-]", _NO_KEY.sub("", text))):
        raise ValueError(f"a key has more than {_MOST_STEPS} steps")
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return table
