"""`transplt judge`: parses options, calls, renders, returns the exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.spelling import QUIET
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, TORCH_VERSION, Command, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.faces.cli.migrate import DATA, PYTHON, STUBS

_FORMATS = ("text", "json", "sarif", "html")


@click.command("judge", cls=Command)
@click.argument("original", type=FILE)
@click.argument("port", type=FILE)
@click.option(
    "--prove",
    "command",
    default="",
    metavar="COMMAND",
    help="Also run COMMAND ('train.py --epochs 1') in both and compare. Runs code of both with your rights.",
)
@click.option("--nproc", default="1", show_default=True, metavar="N,...", help="With --prove: numbers of processes.")
@STUBS
@DATA
@PYTHON
@TORCH_VERSION
@click.option("--format", "output_format", type=click.Choice(_FORMATS), default="text", help="Output format (text).")
@click.option("--output-file", type=FILE, metavar="FILE", help="Write to this file instead of stdout.")
@EXIT_ZERO
@QUIET
def judge_command(
    original: str, port: str, *, command: str, nproc: str, stubs: tuple[str, ...], data: tuple[str, ...], python: str,
    torch_version: str | None, output_format: str, output_file: str | None, exit_zero: bool, quiet: bool,
) -> int:  # fmt: skip
    """Judge PORT, a port of ORIGINAL that somebody made: by hand, with an agent or with another tool.

    ORIGINAL and PORT are folders, or commits of a repository. Settings, comments and baselines of PORT are ignored.
    Without --prove nothing is run. Exits with 1 if something speaks against the port.
    """
    if (stubs or data or python or nproc != "1") and not command:
        raise UsageError("--stubs, --data, --python and --nproc are for what --prove runs; give it too")
    from transplt.base.disk.replace import write_asked_for
    from transplt.project.judging.judge import judge
    from transplt.project.judging.judgement_text import rendered
    from transplt.proof.launch.options import UsageError as CannotRun
    from transplt.proof.prove.command import worlds_of

    if output_file is not None and not Path(output_file).resolve().parent.is_dir():
        raise UsageError(f"no such folder for {shown(output_file)}")
    try:
        worlds = worlds_of(nproc)
    except CannotRun as error:
        raise UsageError(str(error)) from error
    done = judge(
        original, port, command, lambda text: None if quiet else to_stderr(f"judge: {text} ..."),
        stubs=stubs, data=data, python=python, torch_version=torch_version, worlds=worlds,
    )  # fmt: skip
    output = rendered(done, output_format)
    if output_file is None:
        sys.stdout.write(output.decode("utf-8"))
    else:
        write_asked_for(Path(output_file), output)
        if not quiet:
            to_stderr(f"judge: {done.sentence}")
    return DONE if exit_zero or done.accepted else LEFT
