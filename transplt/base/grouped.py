"""Things by what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Key = TypeVar("_Key")
_Thing = TypeVar("_Thing")


def grouped(pairs: Iterable[tuple[_Key, _Thing]]) -> dict[_Key, list[_Thing]]:
    """The things of each key in the order of the pairs, as the keys are in that of their first ones."""
    found: dict[_Key, list[_Thing]] = {}
    for key, thing in pairs:
        found.setdefault(key, []).append(thing)
    return found
