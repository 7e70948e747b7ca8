"""`transplt diagnose`: parses options, reads the logs, prints, returns the exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transplt.base.errors import TranspltError, UsageError, reason, shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command, to_stderr
from transplt.faces.cli.completing import FILE, FOLDER

if TYPE_CHECKING:
    from transplt.base.finding import Finding


@click.command(cls=Command)
@click.argument("logs", nargs=-1, type=FILE, metavar="LOG...")
@click.option(
    "--project",
    type=FOLDER,
    metavar="DIR",
    help="The sources that ran: also print their lines, the findings there, and the edits.",
)
@click.option(
    "--share",
    type=FILE,
    metavar="FILE",
    help="Also write the diagnosis and the logs to this file, without paths, users, hosts, addresses and secrets.",
)
@json_format
@EXIT_ZERO
def diagnose(logs: tuple[str, ...], *, project: str | None, share: str | None, as_json: bool, exit_zero: bool) -> int:
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
    if share is not None and (not logs or "-" in logs):
        raise UsageError("--share needs logs in files")
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
    if share is not None:
        _share(share, [source.name for source in sources])
    tree = Project(Path(project), _checked) if project is not None else None
    if as_json:
        click.echo(json.dumps(diagnosis_json(collected, sources, tree), indent=1))
    else:
        click.echo(diagnosis_text(collected, sources, tree), nl=False)
    return LEFT if collected.failures() and not exit_zero else DONE


def _checked(path: Path) -> list[Finding]:
    """What `check` says of a file of the project; nothing where it cannot be checked."""
    from transplt.faces.cli.library import check

    try:
        result = check(path)
    except TranspltError:
        return []
    return [each.finding for each in (*result.items, *result.info)]


def _share(target: str, names: list[str]) -> None:
    """Writes logs without names, and what is found in them as they are then, and says what was replaced."""
    import io
    import platform

    from transplt.base.disk.replace import write_asked_for
    from transplt.base.text.regular_file import open_regular
    from transplt.precision.diagnose.findings import Collected
    from transplt.precision.diagnose.report import Source, diagnosis_text
    from transplt.precision.diagnose.scan import LogScan
    from transplt.precision.diagnose.sharing import Anonymous, bundle, ends_of

    own = (os.environ.get("USER", ""), os.environ.get("LOGNAME", ""))
    anonymous, collected, sources, logs = Anonymous([platform.node()], own), Collected(), [], []
    for name in names:
        with open_regular(name) as file:
            text = anonymous.text(ends_of(file))
        logs.append((anonymous.text(os.path.basename(name)), text))
        scan = LogScan(logs[-1][0], collected)
        scan.scan(io.BytesIO(logs[-1][1].encode()))
        sources.append(Source(scan.name, scan.lines, ()))
    whole = bundle(anonymous.told(), diagnosis_text(collected, sources, None), logs)
    write_asked_for(target, whole.encode("utf-8", "backslashreplace"), names)
    to_stderr(f"{shown(target)} is written; replaced: {', '.join(anonymous.told()) or 'no names'}")
