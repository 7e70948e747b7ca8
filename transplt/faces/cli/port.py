"""`transplt port`: parses options, calls, prints what was committed, returns the exit code."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transplt.base.errors import UsageError
from transplt.base.language import gettext, ngettext, spoken_on, translated
from transplt.base.render.spelling import QUIET
from transplt.faces.cli.command import DONE, EXIT_ZERO, LANGUAGE, LEFT, Command, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.faces.cli.migrate import CARD_PACK, DATA, PLAN, PYTHON, STUBS, edit_options

if TYPE_CHECKING:
    from transplt.project.port.port import Port


@click.command("port", cls=Command)
@click.argument("project", type=FILE, default=".")
@click.option(
    "--branch", default="npu-port", show_default=True, metavar="NAME", help="The branch to create or continue."
)
@click.option(
    "--prove", "command", default="", metavar="COMMAND",
    help="Run COMMAND ('train.py --epochs 1') before and after each decision and compare.",
)  # fmt: skip
@STUBS
@DATA
@PYTHON
@CARD_PACK
@click.option(
    "--devcontainer", "with_container", is_flag=True, help="Also commit a devcontainer.json for a container with an "
    "emulated NPU."
)
@PLAN
@edit_options
@EXIT_ZERO
@LANGUAGE
@QUIET
def port_command(
    project: str,
    *,
    branch: str,
    command: str,
    stubs: tuple[str, ...],
    data: tuple[str, ...],
    python: str,
    card_pack: str | None,
    with_container: bool,
    exit_zero: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Migrate the committed files of PROJECT (a folder in a git repository) as a branch of small commits.

    Each decision is one commit, with the reason in its message; NPU_PORT.md lists what is left to do. The
    working tree, the index and other branches do not change, and nothing is pushed: `git switch npu-port` shows the
    result, `git branch -D npu-port` undoes it. Another call continues from the tip of the branch, your commits
    included. With --style portable the branch holds no such list: the text of a pull request is printed.
    """
    if (stubs or data or python) and not command:
        raise UsageError("--stubs, --data and --python need --prove")
    if card_pack is not None and not command:
        raise UsageError("--card-pack needs --prove")
    from transplt.project.options import Options
    from transplt.project.port.port import port

    done = port(
        Options(source=project, **given), branch, command,
        lambda text: None if quiet else to_stderr(f"port: {text} ..."),
        card_pack, stubs, data, python, with_container=with_container,
    )  # fmt: skip
    failed = done.proof is not None and done.proof.word.value != "equal"
    with spoken_on(sys.stderr):
        verdict = [f"{branch}: {done.proof}", *(f"  {note}" for note in done.notes)]
        for line in verdict * failed if quiet else _lines(done, project, branch, command):
            click.echo(line, err=quiet or bool(done.body))
    if done.body:
        click.echo(done.body, nl=False)
    return DONE if exit_zero else LEFT if failed or done.result.exit_code else DONE


def _lines(done: Port, project: str, branch: str, command: str) -> Iterator[str]:
    """What was committed, what was left out, and where to look."""
    from transplt.engine.actions.actions import separate
    from transplt.project.report.action_lines import hours_of

    if not done.commits:
        yield gettext("{branch}: nothing is left to commit", branch=branch)
        yield from [translated(done.result.said_without_card)] * done.result.without_card
    if done.as_it_is is not None:
        yield gettext("the whole branch, against the program before the port: {verdict}", verdict=done.as_it_is)
        yield gettext(
            "its commits keep their messages; git branch -D {branch} and the same command prove each", branch=branch
        )
    for commit in done.commits:
        proof = f"  [{commit.proof}]" if commit.proof is not None else ""
        yield f"  {commit.name[:10]} {commit.subject}{proof}"
    for name, why in done.left_out.items():
        yield "  " + gettext("left out: {name}: {why}", name=name, why=why)
    yield from (f"  {note}" for note in done.notes)
    if done.commits:
        yield ngettext(
            "{branch} has {count} new commit: git log {base}..{branch}",
            "{branch} has {count} new commits: git log {base}..{branch}",
            len(done.commits), branch=branch, base=done.base[:10],
        )  # fmt: skip
    if done.left:
        yield ngettext(
            "left to do by hand: {count} action, {hours}", "left to do by hand: {count} actions, {hours}",
            len(separate(done.left)), hours=hours_of(done.left),
        ) + (
            gettext(
                "; transplt -i {project} -o OUT --style portable lists all of them, the text below those in code that "
                "stop programs on NPUs",
                project=shlex.quote(project),
            )
            if done.body else gettext("; NPU_PORT.md on the branch lists them")
        )  # fmt: skip
    if done.commits:
        yield gettext("to see the branch: git switch {branch}", branch=branch)
        if not command:
            yield gettext(
                "to run both and compare them: transplt port {project} --branch {branch} --prove {command}",
                branch=branch, project=shlex.quote(project), command=shlex.quote(_to_prove(Path(project))),
            )


def _to_prove(project: Path) -> str:
    """The script that trains at the top of a project, with its own options for a short run; else words for it."""
    from transplt.project.environment.wanted import script_to_train
    from transplt.proof.launch.advice import Asked, smaller_words
    from transplt.proof.launch.options import RunOptions

    if not (script := script_to_train(project)):
        return "TRAINING_SCRIPT ARGUMENTS"
    return shlex.join([script, *smaller_words(Asked("prove", RunOptions(script, (), ""), project, project))])
