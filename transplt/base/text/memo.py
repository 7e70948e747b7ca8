"""What is worked out of an object once, and lives as long as the object does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

_Of = TypeVar("_Of", bound="Memoized")
_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")


#: So many answers about names are kept; a file asks of a thousand names, and for most of them again.
_MOST = 10_000


class Memo(dict[object, Any]):
    """Results by what was asked. It stays in its process: a pickle of it is empty."""

    def make_room(self) -> None:
        """Begin anew where there are too many: for answers that are as good when they are worked out again."""
        if len(self) >= _MOST:
            self.clear()

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()


@dataclass(slots=True, eq=False)
class Memoized:
    """An object that others ask things about. A copy with other fields (`dataclasses.replace`) starts with none."""

    _memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    def once(
        self: _Of,
        function: Callable[Concatenate[_Of, _Asked], _Found],
        *asked: _Asked.args,
        **named: _Asked.kwargs,
    ) -> _Found:
        """What a function (or class) makes of this object and some hashable arguments; called the first time only."""
        key = (function, asked, *named.items())
        if key not in self._memo:
            self._memo[key] = function(self, *asked, **named)
        found: _Found = self._memo[key]
        return found
