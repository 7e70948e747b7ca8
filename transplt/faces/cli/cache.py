"""`transplt cache`: where the results of earlier checks lie, how much they hold, and how they go."""

from __future__ import annotations

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
    """Print the size of the cache."""
    click.echo(_amount(*_cache().size()))
    return DONE


@cache.command()
def clear() -> int:
    """Delete the cache; the next check is slower."""
    click.echo(f"removed {_amount(*_cache().clear())}")
    return DONE


def _cache() -> Cache:
    try:
        return Cache(cache_folder())
    except NoCache as why:
        raise UsageError(f"nothing is cached: {why}") from why


def _amount(files: int, size: int) -> str:
    return f"{size / 1e6:.1f} MB in {files} {'file' if files == 1 else 'files'}"
