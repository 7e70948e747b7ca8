"""`transplt run`: as transplt/proof has it, and `--setup`, which makes the environment that the script is run in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from transplt.base.render.options import argument, flag, option, taking
from transplt.faces.cli.command import DONE, INTERRUPTED, to_stderr
from transplt.proof.launch.command import Run, as_run, run_given
from transplt.proof.launch.options import UsageError


@dataclass(frozen=True)
class RunOrSetUp(Run):
    """A run, or the environment for the runs of a project, or both."""

    setup: bool = flag(
        "Install the project's requirements and a PyTorch for CPUs into an environment in the cache, where run, prove "
        "and port find it; then run SCRIPT. With a folder, or no SCRIPT: only install."
    )
    stand_ins: tuple[str, ...] = option(
        "With --setup: replace this package by an empty module, which can only be imported.",
        "--stub", multiple=True, metavar="NAME",
    )
    script: Any = argument(type=click.Path(), required=False, metavar="SCRIPT")


@as_run
@taking(RunOrSetUp)
def run_command(given: RunOrSetUp) -> int:
    try:
        if given.stand_ins and not given.setup:
            raise UsageError("--stub is for --setup; --stubs replaces data sets and packages in a run.")
        if given.setup:
            python = _set_up(given)
            if not given.script or os.path.isdir(given.script):
                return DONE
            given = replace(given, python=python)
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    if not given.script:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'SCRIPT'", param_type="argument")
    return run_given(given)


def _set_up(given: RunOrSetUp) -> str:
    """Make the environment, tell of it, and return its interpreter. UsageError where there can be none."""
    from transplt.proof.launch.environments import project_of
    from transplt.proof.launch.interpreter import refuse_windows

    refuse_windows()
    from transplt.project.environment.setup import report, set_up
    from transplt.project.environment.wanted import scripts_of

    script = Path(given.script) if given.script and not given.module else Path.cwd()
    if not script.exists():
        raise UsageError(f"no such script or folder: {script}.")
    project = project_of(script if script.is_dir() else script.parent)
    scripts: Sequence[Path] = [script] if script.suffix == ".py" else scripts_of(project)
    try:
        made = set_up(project, scripts, given.python, given.stand_ins, lambda text: to_stderr(f"setup: {text}"))
    except KeyboardInterrupt as error:
        to_stderr("setup: interrupted; the same command continues")
        raise click.exceptions.Exit(INTERRUPTED) from error
    for line in report(made):
        to_stderr(f"setup: {line}")
    return made.python
