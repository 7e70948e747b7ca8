"""Options of a command, declared once: as the fields of the frozen record that the command is given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, TypeVar

import click

_Record = TypeVar("_Record")


def option(text: str, *spelled: str, **attributes: Any) -> Any:
    """A field that is an option with this help, spelled as the field unless told otherwise; the rest is of click."""
    def declared(name: str) -> Callable[[Any], Any]:
        return click.option(*(spelled or [f"--{name.replace('_', '-')}"]), name, help=text, **attributes)

    return field(metadata={"declared": declared})


def flag(text: str, *spelled: str, **attributes: Any) -> Any:
    """Likewise an option without a value."""
    return option(text, *spelled, is_flag=True, **attributes)


def argument(**attributes: Any) -> Any:
    """A field that is an argument, with what `click.argument` takes."""
    return field(metadata={"declared": lambda name: click.argument(name, **attributes)})


def shared(decorator: Callable[[Any], Any]) -> Any:
    """A field that is an option of several commands; it has the name of the parameter there."""
    return field(metadata={"declared": lambda _: decorator})


def taking(record: type[_Record]) -> Callable[[Callable[[_Record], int]], Callable[..., int]]:
    """Let a command have the options of a record, in their order, and be called with one."""

    def decorate(function: Callable[[_Record], int]) -> Callable[..., int]:
        @functools.wraps(function)
        def call(**given: Any) -> int:
            return function(record(**given))

        for each in reversed(fields(record)):  # type: ignore[arg-type]  # a dataclass
            if "declared" in each.metadata:
                call = each.metadata["declared"](each.name)(call)
        return call

    return decorate
