"""Options that `transplt run`, `transplt prove` and `--prove` of a migration have in common."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
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


class ScriptCommand(click.Command):
    """A command that starts a script: says of an option that it does not know where those of the script stand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click has it. NoSuchOption with one more sentence."""
        usage = " ".join(["transplt", self.name or "", *self.collect_usage_pieces(ctx)[1:-1]])
        end = "ARGS" if not ctx.allow_interspersed_args else "-- ARGS"
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            said = f"{error.message} Options of the script go last: {usage} {end}."
            raise click.NoSuchOption(error.option_name, said, error.possibilities, error.ctx) from None


def spelled_options(command: click.Command) -> frozenset[str]:
    return frozenset(name for each in command.params if isinstance(each, click.Option) for name in each.opts)


def typed_again(context: click.Context, *more: str, left_out: Collection[str] = ()) -> str:
    """The command that was typed, quoted for a shell, without defaults, with more arguments for its script."""
    given = context.params
    words = ["transplt", context.command.name or ""]
    for option in context.command.params:
        if not isinstance(option, click.Option) or option.name in left_out or option.name not in given:
            continue
        value = given[option.name]
        if value == option.get_default(context) or value is None:
            continue
        for each in value if option.multiple else (value,):
            words += [option.opts[-1]] if option.is_flag else [option.opts[-1], str(each)]
    named = [each.name or "" for each in context.command.params if isinstance(each, click.Argument)]
    programs = [str(given[name]) for name in named if name != "args"]
    arguments = [*given["args"], *more]
    if any(program.startswith("-") for program in programs):
        return shlex.join([*words, "--", *programs, *arguments])
    ends = ["--"] if arguments and context.allow_interspersed_args else []
    return shlex.join([*words, *programs, *ends, *arguments])


STUBS = click.option(
    "--stubs", type=click.Path(), multiple=True, is_eager=True, callback=list_stubs, metavar="FILE",
    help="Replace data sets and downloads by FILE, or by a built-in stub: torchvision draws random pictures, "
    "torchvision=256 so many in each data set (`--stubs list` names all).",
)  # fmt: skip
COMPILE = click.option(
    "--compile", "compiled", is_flag=True,
    help="Also compile each Triton kernel as it is launched, with the compiler for the card (`transplt compiler`).",
)  # fmt: skip
NPUS = click.option(
    "--npus", type=click.IntRange(1, 64), default=8, show_default=True, help="Number of cards of the emulated host."
)
DATA = click.option(
    "--data", multiple=True, metavar="PATH", help="Link this data folder of the project instead of copying it."
)
CARD_PACK = click.option(
    "--card-pack", type=click.Path(path_type=Path), metavar="DIR",
    help="Write a folder that repeats this proof on the machine with the card.",
)  # fmt: skip
TORCH_VERSION = click.option(
    "--torch-version", type=click.Choice(TORCH_VERSIONS), default=None,
    help=f"Target version of torch (default: that of the migration, else {DEFAULT_TORCH_VERSION}).",
)  # fmt: skip
PYTHON = click.option(
    "--python", type=click.Path(), default="", metavar="PATH",
    help="The Python interpreter, or the environment, with PyTorch (default: the project's own, else this one).",
)  # fmt: skip
#: What `--timeout` takes.
SECONDS = click.FloatRange(min=0, min_open=True)


class CardName(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """The name of a card, of either kind; the value is what `meaning` makes of it. BadParameter where that raises."""

    def __init__(self, meaning: Callable[[str], str]) -> None:
        super().__init__(tuple(dict.fromkeys((*cards(), *documented_cards()))))
        self._meaning = meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(super().convert(value, param, ctx))
        try:
            return self._meaning(name)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def card_option(kind: CardName, text: str, name: str = "card") -> Callable[[_F], _F]:
    """`--card`, for the parameter `name`."""
    return click.option("--card", name, type=kind, default=cards()[0], show_default=True, help=text)
