"""`transplt emulator`: what runs on the emulated NPU need besides PyTorch, fetched and built once."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from transplt.base.disk.leftovers import remove_tree
from transplt.base.errors import UsageError, shown
from transplt.base.render.options import option, shared, taking
from transplt.base.settings import TORCH_VERSIONS
from transplt.faces.cli.command import DONE, CommandGroup
from transplt.proof.launch import options as launch
from transplt.proof.launch.shared_options import PYTHON


@dataclass(frozen=True)
class Install:
    """For which interpreter."""

    python: str = shared(PYTHON)
    torch_version: str | None = option(
        "Download the torch_npu for this version of torch (default: for the installed torch).",
        type=click.Choice(TORCH_VERSIONS),
    )


@click.group(cls=CommandGroup)
def emulator() -> None:
    """Manage the torch_npu on which `transplt run` runs scripts."""


@emulator.command()
@taking(Install)
def install(given: Install) -> int:
    """Fetch the torch_npu that fits the installed PyTorch, and build the driver of the emulated card.

    Both go into the cache of the user. Nothing is installed beside PyTorch, and nothing needs an NPU or CANN.
    """
    from transplt.proof.launch import device_backend, driver, environments, interpreter, torch_npu_wheel

    try:
        if given.torch_version is None:
            chosen = environments.choose(given.python, Path.cwd())
            python, found = chosen.python, chosen.versions
        else:
            release = torch_npu_wheel.newest_release(given.torch_version)
            python = given.python or sys.executable
            found = replace(interpreter.whole_of(python), torch=release, cuda="")
        wheel = device_backend.wheel_or_way(found, Path.cwd())
        cache = torch_npu_wheel.folder_of_wheels()
        here = torch_npu_wheel.is_there(wheel, cache)
        if not here:
            torch_npu_wheel.fetch(wheel, python, cache)
        place = cache / wheel.name
        built = driver.place_of(place, cache).is_dir()
        folder = driver.build(place, cache)
    except launch.UsageError as error:
        raise UsageError(str(error)) from error
    already = {True: "already in", False: "now in"}
    click.echo(f"torch_npu {wheel.version} for Python {wheel.python}: {already[here]} {shown(place)}")
    click.echo(f"the driver of the emulated card: {already[built]} {shown(folder)}")
    return DONE


@emulator.command()
def remove() -> int:
    """Delete every torch_npu that was fetched, with its driver."""
    from transplt.proof.launch import torch_npu_wheel

    try:
        folder = torch_npu_wheel.folder_of_wheels()
    except launch.UsageError as error:
        raise UsageError(str(error)) from error
    there = folder.is_dir()
    remove_tree(folder)
    click.echo(f"removed {shown(folder)}" if there else f"nothing is in {shown(folder)}")
    return DONE
