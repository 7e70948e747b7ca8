"""`transplt distributed`: migrates a project and makes the program of one main file run on many cards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from transplt.base.errors import UsageError, shown
from transplt.faces.cli.command import Command, given_options, spelled, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.faces.cli.migrate import migrate, migrate_options

#: What marks the top folder of a project.
_TOP = (".git", "pyproject.toml", "setup.py")


@click.command(cls=Command)
@migrate_options
@click.option(
    "-m", "--main", "entry", type=FILE, metavar="FILE", required=True, help="The training script, inside the input."
)
@click.option(
    "-t", "--target-model", "--target_model", "targets", metavar="NAME", multiple=True,
    help="Name of the model in the script: model, self.model.",
)  # fmt: skip
@click.option(
    "--check-ranks", type=click.IntRange(min=0), default=0, metavar="N",
    help="Compare the ranks after every N optimizer steps; stop if they differ.",
)  # fmt: skip
@click.pass_context
def distributed(ctx: click.Context, /, entry: str, **options: Any) -> int:
    """Migrate a project, make the script FILE train on several cards, and write run_distributed_npu.sh.

    Without -i, the input is the nearest folder above FILE with .git, pyproject.toml or setup.py, else FILE's folder.
    """
    names = spelled(ctx.command)
    above: dict[str, Any] = ctx.obj or {}
    twice = sorted(names[name] for name in given_options(ctx) if name in above)
    if twice:
        ctx.fail(f"given twice: {', '.join(twice)}")
    options.update(above)
    if options["source"] is None:
        options["source"] = str(project_of(Path(entry)))
        if not options["quiet"]:
            to_stderr(f"input: {shown(str(options['source']))}")
    return migrate(entry=entry_in(Path(options["source"]), entry), **options)


def project_of(entry: Path) -> Path:
    """The folder of the project that a file belongs to. UsageError when there is no such file."""
    if not entry.is_file():
        raise UsageError(f"no such file: {shown(entry)} (-m)")
    folder = Path(os.path.realpath(entry)).parent
    return next((above for above in (folder, *folder.parents) if any((above / name).exists() for name in _TOP)), folder)


def entry_in(source: Path, entry: str) -> str:
    """The path of the main file relative to the input, with forward slashes. UsageError when it is not inside."""
    root = Path(os.path.realpath(source))
    folder = root.parent if root.is_file() else root
    for candidate in (Path(entry), folder / entry):
        if not candidate.is_file():
            continue
        found = Path(os.path.realpath(candidate))
        if found == root or (not root.is_file() and found.is_relative_to(root)):
            if found.suffix != ".py":
                raise UsageError(f"-m {shown(entry)}: not a .py file")
            return found.relative_to(folder).as_posix()
    if Path(entry).is_file():
        raise UsageError(f"-m {shown(entry)}: this file is not in the input, {shown(source)}")
    raise UsageError(f"-m {shown(entry)}: there is no such file, neither here nor in {shown(source)}")
