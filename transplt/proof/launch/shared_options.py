"""Options that `transplt run`, `transplt prove` and `--prove` of a migration have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS
from transplt.rules.card_limits import cards, documented_cards

_F = TypeVar("_F", bound=Callable[..., Any])


def list_stubs(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """`--stubs list` says what is ready, and ends; a file of that name is a file."""
    if "list" in given and not Path("list").is_file():
        from transplt.proof.launch.runner import ready_stubs

        for name, line in ready_stubs().items():
            click.echo(f"{name}  {line}")
        context.exit()
    return given


STUBS = click.option(
    "--stubs",
    type=click.Path(),
    multiple=True,
    is_eager=True,
    callback=list_stubs,
    metavar="FILE",
    help="Replace data sets and downloads by FILE, or by a built-in stub (`--stubs list`).",
)
NPUS = click.option(
    "--npus", type=click.IntRange(1, 64), default=8, show_default=True, help="Number of cards of the emulated host."
)
DATA = click.option(
    "--data", multiple=True, metavar="PATH", help="Link this data folder of the project instead of copying it."
)
CARD_PACK = click.option(
    "--card-pack",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a folder that repeats this proof on the machine with the card.",
)
TORCH_VERSION = click.option(
    "--torch-version",
    type=click.Choice(TORCH_VERSIONS),
    default=None,
    help=f"Target version of torch (default: that of the migration, else {DEFAULT_TORCH_VERSION}).",
)
PYTHON = click.option(
    "--python",
    type=click.Path(),
    default=sys.executable,
    metavar="PATH",
    help="The Python interpreter with PyTorch (default: this one).",
)
#: What `--timeout` takes.
SECONDS = click.FloatRange(min=0, min_open=True)


class CardName(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """The name of a card, of either kind; the value is what `meaning` makes of it. BadParameter where that raises."""

    def __init__(self, meaning: Callable[[str], str]) -> None:
        super().__init__(tuple(dict.fromkeys((*cards(), *documented_cards()))))
        self._meaning = meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value for a name that was given."""
        name = str(super().convert(value, param, ctx))
        try:
            return self._meaning(name)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def card_option(kind: CardName, text: str, name: str = "card") -> Callable[[_F], _F]:
    """`--card`, for the parameter `name`."""
    return click.option("--card", name, type=kind, default=cards()[0], show_default=True, help=text)
