"""Options that several commands spell alike, and how they were spelled before: the old spelling works and says so."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])
#: The same for all commands: findings, tables and verdicts are results, progress and summaries are not.
QUIET = click.option("-q", "--quiet", is_flag=True, help="Only print the result: no progress, no summary.")


def json_format(function: _F) -> _F:
    """`--format text|json` for a command; its parameter `as_json` is true for JSON. It was `--json` once."""
    option = click.option(
        "--format", "as_json", type=click.Choice(("text", "json")), default="text",
        callback=lambda _, __, form: form == "json", help="Output format: text, or JSON (text).",
    )  # fmt: skip
    return option(formerly("--json", "--format json", "as_json", True)(function))


def formerly(
    old: str, new: str, name: str, value: Any = None, *, type: click.ParamType[Any] | None = None
) -> Callable[[_F], _F]:
    """Let an option be given as `old` too, which is `new` now: the parameter `name` gets what it was given.

    With a `value` the old option is a flag that stands for it. It is not in the help; one line on stderr names `new`.
    """
    held = "formerly_" + old.strip("-").replace("-", "_")
    if value is None:
        option = click.option(old, held, hidden=True, type=type)
    else:
        option = click.option(old, held, hidden=True, is_flag=True)

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            was = given.pop(held)
            if was is not None and was is not False:
                click.echo(f"{old} is {new} now", err=True)
                before = given.get(name)
                given[name] = value if value is not None else (*before, was) if isinstance(before, tuple) else was
            return function(*args, **given)

        return option(call)  # type: ignore[return-value]

    return decorate


def version_after_v(arguments: Sequence[str]) -> str:
    """The version of torch that stands behind `-v`, as the vendor's own tool takes it; empty where none does."""
    for flag, value in itertools.pairwise(arguments):
        if flag == "--":
            break
        if flag == "-v" and re.fullmatch(r"v?\d+(?:\.\d+){1,2}", value):
            return value.removeprefix("v")
    return ""


def short_version(version: str) -> str:
    """`2.6` of `2.6.0`."""
    return ".".join(version.split(".")[:2])
