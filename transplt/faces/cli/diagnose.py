"""`transplt diagnose`: parses options, reads the logs, prints, returns the exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from transplt.base.errors import UsageError, reason, shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command
from transplt.faces.cli.completing import FILE, FOLDER


@click.command(cls=Command)
@click.argument("logs", nargs=-1, type=FILE, metavar="LOG...")
@click.option("--project", type=FOLDER, metavar="DIR", help="The sources that ran, to name their lines.")
@json_format
@EXIT_ZERO
def diagnose(logs: tuple[str, ...], *, project: str | None, as_json: bool, exit_zero: bool) -> int:
    """Find out what went wrong in a training on NPUs, from its logs: output, tracebacks, plog, HCCL.

    LOG is a file, a folder of logs (such as ~/ascend/log), or - for standard input (the default).
    Logs of several ranks are merged by time. Known errors are shown with meaning, cause and what to do; start with the
    first one. Exits with 1 if there is an error.
    """
    from transplt.base.text.regular_file import open_regular
    from transplt.precision.diagnose.findings import Collected
    from transplt.precision.diagnose.log_pieces import UnreadableLog
    from transplt.precision.diagnose.logs import log_files
    from transplt.precision.diagnose.report import Source, diagnosis_json, diagnosis_text
    from transplt.precision.diagnose.scan import LogScan
    from transplt.precision.diagnose.stacks import Project

    if project is not None and not os.path.isdir(project):
        raise UsageError(f"{shown(project)} is not a folder")
    if not logs and sys.stdin.isatty():
        raise UsageError("give a log, a folder of logs, or - for standard input")
    collected, sources = Collected(), []
    for name in list(log_files(logs or ("-",))):
        scan = LogScan("standard input" if name == "-" else name, collected)
        try:
            if name == "-":
                scan.scan(sys.stdin.buffer)
            else:
                with open_regular(name) as file:
                    scan.scan(file)
        except UnreadableLog as error:
            raise UsageError(f"{shown(name)}: {error}") from error
        except OSError as error:
            raise UsageError(f"cannot read {shown(name)}: {reason(error)}") from error
        sources.append(Source(scan.name, scan.lines, tuple(sorted(scan.cut_short))))
    tree = Project(Path(project)) if project is not None else None
    if as_json:
        click.echo(json.dumps(diagnosis_json(collected, sources, tree), indent=1))
    else:
        click.echo(diagnosis_text(collected, sources, tree), nl=False)
    return LEFT if collected.failures() and not exit_zero else DONE
