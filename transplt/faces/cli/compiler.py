"""`transplt compiler`: the compiler for Ascend cards that `--compile` asks about Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from transplt.base.disk.cache_folder import NoCache
from transplt.base.disk.leftovers import remove_tree
from transplt.base.errors import UsageError, shown
from transplt.faces.cli.command import DONE, LEFT, CommandGroup, to_stderr
from transplt.proof.launch import options as launch

if TYPE_CHECKING:
    from transplt.proof.compiler.place import Place


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def compiler(context: click.Context) -> int:
    """Show the compiler for Ascend cards that `--compile` asks about Triton kernels: where, versions, chips."""
    if context.invoked_subcommand is not None:
        return DONE
    from transplt.proof.compiler import place

    try:
        found = place.find()
    except launch.UsageError as error:
        raise UsageError(str(error)) from error
    if found is None:
        from transplt.project.environment.ascend_compiler import WHAT

        click.echo(f"not installed: {place.INSTALL} fetches {WHAT}")
        return LEFT
    _show(found)
    return DONE


def _show(found: Place) -> None:
    from transplt.proof.compiler.compiling import chips

    click.echo(f"{found.title}: {shown(found.python)} ({found.whose})")
    for_cards = ", ".join(f"{card} ({chip})" for card, chip in chips().items())
    click.echo(f"cards: {for_cards}, of {len(found.chips)} chips that it supports")


@compiler.command()
def install() -> int:
    """Fetch the compiler into an environment of its own in the user's cache. Nothing needs an NPU or CANN."""
    from transplt.project.environment import ascend_compiler

    try:
        found, there = ascend_compiler.install(to_stderr)
    except launch.UsageError as error:
        raise UsageError(str(error)) from error
    click.echo("already there" if there else "installed")
    _show(found)
    return DONE


@compiler.command()
def remove() -> int:
    """Delete the compiler that was fetched."""
    from transplt.proof.compiler.place import folder

    try:
        place = folder()
    except NoCache as why:
        raise UsageError(f"the compiler is kept in the user's cache folder, which cannot be used: {why}.") from why
    there = place.is_dir()
    remove_tree(place)
    click.echo(f"removed {shown(place)}" if there else f"nothing is in {shown(place)}")
    return DONE
