"""`transplt profile-read`: parses options, reads the profile, prints, writes the page, returns the exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from transplt.base.errors import UsageError, reason, shown
from transplt.base.render.spelling import formerly, json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command, to_stderr
from transplt.faces.cli.completing import FILE, FOLDER


@click.command(cls=Command)
@click.argument("path", type=FILE, metavar="DIR|FILE")
@click.option("--project", type=FOLDER, metavar="DIR", help="The sources that ran, to name their lines.")
@click.option(
    "--against",
    type=FILE,
    metavar="GPU_TRACE",
    help="Compare with a profile of the same training on a GPU: a torch.profiler chrome trace, or the output of `nsys "
         "export --type=sqlite`.",
)
@click.option("--report", "html", type=FILE, metavar="FILE.html", help="Also write an HTML page.")
@formerly("--html", "--report", "html", type=FILE)
@json_format
@EXIT_ZERO
def profile_read(
    path: str, *, project: str | None, against: str | None, html: str | None, as_json: bool, exit_zero: bool
) -> int:
    """Show where the time of a training on NPUs goes, from a profile, and what to do about it.

    DIR is what torch_npu's profiler wrote (*_ascend_pt, or a folder of those of all ranks), what msprof wrote
    (PROF_*), or a folder of host logs with level INFO. FILE is one of their tables, a chrome trace, a log with a
    table of the autograd profiler, or a host log. Exits with 1 if there is something to do.
    """
    from transplt.precision.diagnose.profiles.against import against_json, against_text, read_against
    from transplt.precision.diagnose.profiles.reading import read_profiles
    from transplt.precision.diagnose.profiles.report import left, profiles_json, profiles_text
    from transplt.precision.diagnose.profiles.tables import UnreadableProfile
    from transplt.precision.diagnose.stacks import Project

    for each in (path, against):
        if each is not None and not os.path.lexists(each):
            raise UsageError(f"{shown(each)} does not exist")
    if project is not None and not os.path.isdir(project):
        raise UsageError(f"{shown(project)} is not a folder")
    tree = Project(Path(project)) if project is not None else None
    at = path
    try:
        reading, beside = read_profiles(path, tree), None
        if against is not None:
            if not reading.profiles:
                raise UnreadableProfile("host logs have no times to compare with a profile of a GPU")
            at = against
            beside = read_against(against, reading.profiles)
    except UnreadableProfile as error:
        raise UsageError(f"{shown(at)}: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(at)}: {reason(error)}") from error
    if html is not None:
        from transplt.base.disk.replace import write_asked_for
        from transplt.precision.diagnose.profiles.page import render

        write_asked_for(html, render(reading, tree, beside), (path, *([against] if against else [])))
        to_stderr(f"wrote {shown(html)}")
    if as_json:
        document = profiles_json(reading, tree)
        if beside is not None:
            document["against"] = against_json(beside)
        click.echo(json.dumps(document, indent=1))
    else:
        click.echo(profiles_text(reading, tree), nl=False)
        if beside is not None:
            click.echo("\n" + "\n".join(against_text(beside)))
    return LEFT if left(reading) and not exit_zero else DONE
