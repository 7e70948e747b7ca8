"""Parameters that complete in a shell: places, tunings, known names. What they take is text as it was given."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import click
from click.types import StringParamType

from transplt.base.errors import possible_path

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from transplt.fixers.by_name import Named


#: More names than that are no help.
_MOST_NAMES = 200


class PathText(StringParamType):
    """A path: the shell completes it itself. One that no file can have is refused."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as it was given. UsageError when it, or a name in it, is too long."""
        text: str = super().convert(value, param, ctx)
        return possible_path(text)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The shell's own names of files or folders."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self._kind)]


class _Names(StringParamType, abc.ABC):
    """Names with commas between; `-name` leaves one out."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """What may stand for the last name of the list."""
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",")
        known = self.known()
        if last.startswith("-"):
            names = [f"-{name}" for name in known]
        else:
            names = ["all", *(f"{each.name}={each.example}" if each.value else each.name for each in known.values())]
        return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(last)]

    @abc.abstractmethod
    def known(self) -> dict[str, Named]:
        """All of them."""


class TuningNames(_Names):
    """What --tune takes."""

    def known(self) -> dict[str, Named]:
        from transplt.fixers.tunings.table import tunings

        return tunings()


class AdaptorNames(_Names):
    """What --adapt takes."""

    def known(self) -> dict[str, Named]:
        from transplt.fixers.adaptors.table import adaptors

        return adaptors()


class KnownName(StringParamType):
    """The code of a diagnostic, the name of a reason, or a name that something is known of."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The codes that begin so; where there are none, the names."""
        from click.shell_completion import CompletionItem

        from transplt.rules.errors import errors_by_code
        from transplt.rules.pages import all_codes
        from transplt.rules.reasons import reasons

        codes = [code for code in (*all_codes(), *errors_by_code()) if code.startswith(incomplete.upper())]
        if codes:
            return [CompletionItem(code) for code in codes]
        from transplt.engine.analysis.known import known_names

        names = [name for name in (*reasons(), *known_names()) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names[:_MOST_NAMES]]


FILE, FOLDER = PathText("file"), PathText("dir")
