"""What is reached from some things, by steps of one kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

_Thing = TypeVar("_Thing", bound=Hashable)


def closure(begin: Iterable[_Thing], further: Callable[[_Thing], Iterable[_Thing]]) -> Iterator[_Thing]:
    """These and what they lead to, what that leads to, and so on: each once, those first that are fewer steps away."""
    found = dict.fromkeys(begin)
    queue = [*found]
    for each in queue:  # grows
        yield each
        new = [other for other in dict.fromkeys(further(each)) if other not in found]
        found.update(dict.fromkeys(new))
        queue += new
