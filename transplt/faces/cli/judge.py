"""`transplt judge`: parses options, calls, renders, returns the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.options import argument, option, shared, taking
from transplt.base.render.spelling import QUIET
from transplt.faces.cli import migrate
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, TORCH_VERSION, Command, to_stderr, write_out
from transplt.faces.cli.completing import FILE

_FORMATS = ("text", "json", "sarif", "html", "badge")


@dataclass(frozen=True)
class Judge:
    """What is judged, what is run for it, and where it is told."""

    original: str = argument(type=FILE)
    port: str = argument(type=FILE)
    command: str = option(
        "Also run COMMAND ('train.py --epochs 1') in both and compare. Runs code of both with your permissions.",
        "--prove", default="", metavar="COMMAND",
    )  # fmt: skip
    nproc: str = option("With --prove: numbers of processes.", default="1", show_default=True, metavar="N,...")
    stubs: tuple[str, ...] = shared(migrate.STUBS)
    data: tuple[str, ...] = shared(migrate.DATA)
    python: str = shared(migrate.PYTHON)
    torch_version: str | None = shared(TORCH_VERSION)
    allow: tuple[str, ...] = option("Accept changes of this theme ('batch size').", multiple=True, metavar="THEME")
    action: str = option("Only check whether this action (CODE:FILE:FUNCTION) is done.", default="", metavar="ACTION")
    work_orders: str = option("Also write what is left to do to DIR, one file per action.", default="", metavar="DIR")
    output_format: str = option("Output format (text).", "--format", type=click.Choice(_FORMATS), default="text")
    output_file: str | None = option("Write to this file instead of stdout.", type=FILE, metavar="FILE")
    exit_zero: bool = shared(EXIT_ZERO)
    quiet: bool = shared(QUIET)


@click.command("judge", cls=Command)
@taking(Judge)
def judge_command(given: Judge) -> int:
    """Judge PORT, a port of ORIGINAL that somebody made: by hand, with an agent or with another tool.

    ORIGINAL and PORT are folders, or commits of a repository. Settings, comments and baselines of PORT are ignored.
    Without --prove nothing is run. Exits with 1 if something speaks against the port.
    """
    if (given.stubs or given.data or given.python or given.nproc != "1") and not given.command:
        raise UsageError("--stubs, --data, --python and --nproc need --prove")
    if given.action and (given.command or given.work_orders):
        raise UsageError("--action cannot be combined with --prove and --work-orders")
    from transplt.base.render.cell import many
    from transplt.project.judging.judge import judge
    from transplt.project.judging.judgement_text import rendered, write_orders
    from transplt.proof.launch.options import UsageError as CannotRun
    from transplt.proof.prove.command import worlds_of

    if given.output_file is not None and not Path(given.output_file).resolve().parent.is_dir():
        raise UsageError(f"the folder of {shown(given.output_file)} does not exist")
    try:
        worlds = worlds_of(given.nproc)
    except CannotRun as error:
        raise UsageError(str(error)) from error
    say = (lambda text: None) if given.quiet else (lambda text: to_stderr(f"judge: {text} ..."))
    done = judge(
        given.original, given.port, given.command, say, stubs=given.stubs, data=given.data,
        python=given.python, torch_version=given.torch_version, worlds=worlds, allowed=given.allow,
        action=given.action,
    )  # fmt: skip
    if given.work_orders:
        write_orders(done, Path(given.work_orders))
        if not given.quiet:
            to_stderr(f"judge: {many(len(done.orders), 'work order')} in {shown(given.work_orders)}")
    output = rendered(done, given.output_format)
    write_out(given.output_file, output)
    if given.output_file is not None and not given.quiet:
        to_stderr(f"judge: {done.sentence}")
    return DONE if given.exit_zero or done.accepted else LEFT
