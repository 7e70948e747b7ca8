"""`transplt facts`: reads the releases of the packages for Ascend anew, for `explain` and `doctor`."""

from __future__ import annotations

from datetime import date

import click

from transplt.base.errors import UsageError, shown
from transplt.faces.cli.command import DONE, CommandGroup


@click.group(cls=CommandGroup)
def facts() -> None:
    """Manage what `transplt explain` and `transplt doctor` know of releases."""


@facts.command()
def update() -> int:
    """Ask the package index of pip's settings which releases of torch_npu, vllm-ascend and other packages for Ascend
    there are. They are kept in the cache of the user and told by `transplt explain` and `transplt doctor`; a
    migration goes on by those that came with transplt.
    """
    from transplt.base.disk.cache_folder import NoCache
    from transplt.base.render.cell import many
    from transplt.proof.launch import pip
    from transplt.proof.launch.package_index import as_rows, builds_of
    from transplt.rules.package_releases import asked_for, freshest, is_of_interest, keep

    before = freshest()
    try:
        found = as_rows(builds_of([*asked_for()], is_of_interest))
        if not any(found.values()):
            raise UsageError("the index of pip's settings has none of these packages: pip config list")
        keep(f"{date.today():%Y-%m-%d}", found)
    except pip.Failed as why:
        raise UsageError(f"the index of pip's settings cannot be read: {why}") from why
    except NoCache as why:
        raise UsageError(f"nothing can be stored: {why}") from why
    new = [
        f"{name} {version} {row.get('day', '')}".rstrip()
        for name, rows in found.items()
        for version, row in rows.items()
        if version not in before.builds.get(name, {})
    ]
    for line in new:
        click.echo(shown(line))
    click.echo(f"{many(len(new), 'release')} newer than the list of {before.read}")
    return DONE
