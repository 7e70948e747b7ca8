"""Options that `transplt run`, `transplt prove` and `--prove` of a migration have in common."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS


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
    help="Run FILE, or a ready one (`--stubs list` names them), to replace data sets and downloads.",
)
NPUS = click.option(
    "--npus", type=click.IntRange(1, 64), default=8, show_default=True, help="How many cards the emulated host has."
)
DATA = click.option(
    "--data", multiple=True, metavar="PATH", help="A folder of data in the project that is linked, not copied."
)
CARD_PACK = click.option(
    "--card-pack",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a new folder to take to the machine with the card: what was computed here is tried there.",
)
TORCH_VERSION = click.option(
    "--torch-version",
    type=click.Choice(TORCH_VERSIONS),
    default=None,
    help=f"The PyTorch version whose torch_npu is the target (default: the migration's, else {DEFAULT_TORCH_VERSION}).",
)
PYTHON = click.option(
    "--python",
    type=click.Path(),
    default=sys.executable,
    metavar="PATH",
    help="The interpreter that has PyTorch (default: this one).",
)
#: What `--timeout` takes.
SECONDS = click.FloatRange(min=0, min_open=True)
