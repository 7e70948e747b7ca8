"""compare.html."""

from __future__ import annotations

from typing import Any


def render(found: Any, detail: Any, *, advice: bool) -> bytes:
    return b""
