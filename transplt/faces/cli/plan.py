"""`transplt plan`: parses options, writes the plan, and says what to do with it."""

from __future__ import annotations

import os
from typing import Any

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.spelling import QUIET
from transplt.faces.cli.command import DONE, Command, to_stderr, write_out
from transplt.faces.cli.completing import FILE
from transplt.faces.cli.migrate import edit_options


@click.command("plan", cls=Command)
@click.argument("project", type=FILE, default=".")
@click.option("-o", "--output", "out", type=FILE, metavar="FILE", help="Write the plan to this file (default: stdout).")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@edit_options
@QUIET
def plan_command(project: str, *, out: str | None, force: bool, quiet: bool, **given: Any) -> int:
    """Write the decisions of a migration of PROJECT (a folder or one .py file) to a Markdown file that you edit.

    Then `transplt -i PROJECT --plan FILE -o OUT`, or `transplt port PROJECT --plan FILE`, follows it. An unedited plan
    changes nothing.
    """
    if out is not None and not force and os.path.lexists(out):
        raise UsageError(f"{shown(out)} exists and may have been edited; --force replaces it")
    from transplt.project.garbage_collection import collect_rarely

    collect_rarely()
    from transplt.project.options import Options
    from transplt.project.plan_file.make import to_decide
    from transplt.project.plan_file.write import plan_text
    from transplt.project.report.console import progress_bar

    with progress_bar(not quiet) as progress:
        found = to_decide(Options(source=project, **given), progress)
    write_out(out, plan_text(found), [project])
    if out is not None and not quiet:
        to_stderr(f"{shown(out)}: {len(found.offers)} places to decide")
        to_stderr(f"edit it, then: transplt -i {shown(project)} --plan {shown(out)} -o OUT")
    return DONE
