"""`transplt port`: parses options, calls, prints what was committed, returns the exit code."""

from __future__ import annotations

from typing import Any

import click

from transplt.base.errors import UsageError
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.faces.cli.migrate import CARD_PACK, DATA, PLAN, STUBS, edit_options
from transplt.render.spelling import QUIET


@click.command("port", cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("project", type=FILE, default=".")
@click.option(
    "--branch", default="npu-port", show_default=True, metavar="NAME", help="The branch to make or go on with."
)
@click.option(
    "--prove",
    "command",
    default="",
    metavar="COMMAND",
    help="Run COMMAND ('train.py --epochs 1') before and after each decision, and compare.",
)
@STUBS
@DATA
@CARD_PACK
@PLAN
@edit_options
@EXIT_ZERO
@QUIET
def port_command(
    project: str,
    *,
    branch: str,
    command: str,
    stubs: tuple[str, ...],
    data: tuple[str, ...],
    card_pack: str | None,
    exit_zero: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Migrate what PROJECT (a folder in a git repository) has committed, as a branch of small commits.

    One commit for each decision, with the reason in its message; on top a checklist of what is left, NPU_PORT.md. The
    working tree, the index and other branches stay as they are, and nothing is pushed: `git switch npu-port` shows the
    result, `git branch -D npu-port` undoes it. Called again, it goes on from the tip of the branch, your commits
    included.
    """
    if (stubs or data) and not command:
        raise UsageError("--stubs and --data are for what --prove runs; give it too")
    if card_pack is not None and not command:
        raise UsageError("--card-pack records what --prove runs; give both")
    from transplt.project.options import Options
    from transplt.project.port.port import port

    done = port(
        Options(source=project, **given),
        branch,
        command,
        lambda text: None if quiet else to_stderr(f"port: {text} ..."),
        card_pack,
        stubs,
        data,
    )
    if not quiet:
        if not done.commits:
            more = "; something is left for a person, and `transplt check` says what" if done.result.exit_code else ""
            to_stderr(f"{branch}: nothing is left to commit{more}")
        for commit in done.commits:
            proof = f"  [{commit.proof}]" if commit.proof is not None else ""
            to_stderr(f"  {commit.name[:10]} {commit.subject}{proof}")
        for name, why in done.left_out.items():
            to_stderr(f"  left out: {name}: {why}")
        for note in done.notes:
            to_stderr(f"  {note}")
        if done.commits:
            to_stderr(f"{branch} has {len(done.commits)} new commits; git log {done.base[:10]}..{branch}")
    failed = done.proof is not None and done.proof.word.value != "equal"
    return DONE if exit_zero else LEFT if failed or done.result.exit_code else DONE
