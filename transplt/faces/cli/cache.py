"""`transplt cache`: where the results of earlier checks lie, how much they hold, and how they go."""

from __future__ import annotations

import os
import shutil

import click

from transplt.base.disk.cache_folder import Cache, NoCache, cache_folder
from transplt.base.errors import UsageError, shown
from transplt.faces.cli.command import DONE, CommandGroup


@click.group(cls=CommandGroup)
def cache() -> None:
    """Manage the cache of check results, which `transplt check` reuses for unchanged files."""


@cache.command("dir")
def folder() -> int:
    """Print the folder of the cache, which may not exist yet."""
    click.echo(shown(_cache().folder))
    return DONE


@cache.command()
def size() -> int:
    """Print the size of the cache: results, then what runs need (torch_npu, environments of projects, the compiler)."""
    cache = _cache()
    click.echo(_amount(*cache.size()))
    for each in cache.folders():
        sizes = [os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(each) for name in names]
        click.echo(f"{_amount(len(sizes), sum(sizes))} in {shown(str(each))}")
    return DONE


@cache.command()
@click.option(
    "--all", "everything", is_flag=True, help="Also delete torch_npu, the environments of projects and the compiler."
)
def clear(everything: bool) -> int:
    """Delete the results; the next check is slower."""
    cache = _cache()
    for each in cache.folders() if everything else ():
        shutil.rmtree(each, ignore_errors=True)
        click.echo(f"removed {shown(str(each))}" if not each.exists() else f"cannot remove all of {shown(str(each))}")
    click.echo(f"removed {_amount(*cache.clear())}")
    return DONE


def _cache() -> Cache:
    try:
        return Cache(cache_folder())
    except NoCache as why:
        raise UsageError(f"nothing is cached: {why}") from why


def _amount(files: int, size: int) -> str:
    return f"{size / 1e6:.1f} MB in {files} {'file' if files == 1 else 'files'}"
