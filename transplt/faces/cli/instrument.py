"""`transplt instrument`: parses options, calls, prints what is left, returns the exit code."""

from __future__ import annotations

from pathlib import Path

import click

from transplt.base.errors import UsageError
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command, to_stderr


@click.command(
    "instrument", cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="OUT", help="A new folder.")
@click.option("-m", "--main", default="", metavar="FILE", help="The script to start, if SOURCE is a folder (main.py).")
@click.option(
    "--level",
    type=click.Choice(["L0", "L1", "mix"]),
    default="mix",
    show_default=True,
    help="Record modules, functions of torch, or both.",
)
@click.option(
    "--task",
    type=click.Choice(["statistics", "tensor", "overflow"]),
    default="statistics",
    show_default=True,
    help="What to record of each tensor.",
)
@click.option("--steps", default="0,1", show_default=True, metavar="0,2-4", help="The steps to record; '' for all.")
@click.option(
    "--seed",
    default="auto",
    show_default=True,
    metavar="auto|N",
    help="Random seed; auto: the program's own, else 1234.",
)
@click.option("--deterministic", is_flag=True, help="Use deterministic operators of torch.")
@click.option(
    "--api",
    type=click.Choice(["msprobe", "ptdbg"]),
    default="msprobe",
    show_default=True,
    help="The recorder of the training host.",
)
@EXIT_ZERO
def instrument_command(
    source: Path, output: Path, main: str, level: str, task: str, steps: str, seed: str, deterministic: bool, api: str,
    exit_zero: bool,
) -> int:
    """Write a copy of a training program that records what it computes, to compare two devices.

    Run it for the GPU original and for the migrated program: both get the same edits. Each training step is recorded
    by msprobe, samples are shuffled alike, random tensors are drawn on the host, and dropout is off. The copy is for
    diagnosis, not for training. Exits with 1 if something random is left, which is listed.
    """
    from transplt.precision.instrument.project import write_copy
    from transplt.precision.instrument.script import Probing
    from transplt.proof.launch.dumping import read_steps
    from transplt.proof.launch.options import UsageError as WrongSteps
    from transplt.render.cell import many, visible

    if seed != "auto" and not (seed.isdecimal() and int(seed) < 2**32):
        raise UsageError(f"--seed {visible(seed)}: write auto or a number below 2^32")
    try:
        wanted = read_steps(steps)
    except WrongSteps as error:
        raise UsageError(f"--steps {error}") from error
    number = None if seed == "auto" else int(seed)
    copy = write_copy(source, output, main, Probing(level, task, wanted, number, deterministic, api))
    for each in copy.probed.left:
        to_stderr(f"{visible(str(each))}")
    files = many(len(copy.probed.files), "file")
    to_stderr(f"{visible(str(copy.folder))}: {files} instrumented, seed {copy.probed.seed}")
    for name in copy.launchers:
        to_stderr(f"{visible(name)} sets the environment of the probe")
    to_stderr(f"start it with {visible(str(copy.folder / 'run_probe.sh'))} ARGS, or set for your own launch script:")
    for line in copy.environment:
        to_stderr(f"  export {line}")
    left = [each for each in copy.probed.left if not each.informs]
    return DONE if exit_zero or not left else LEFT
