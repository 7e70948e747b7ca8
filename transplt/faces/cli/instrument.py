"""`transplt instrument`: parses options, calls, prints what is left, returns the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.errors import UsageError
from transplt.base.render.options import argument, flag, option, shared, taking
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command, to_stderr


@dataclass(frozen=True)
class Instrument:
    """Which program is copied, and what the copy records."""

    source: Path = argument(type=click.Path(exists=True, path_type=Path))
    output: Path = option(
        "A new folder.", "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="OUT"
    )
    main: str = option(
        "The script to start, if SOURCE is a folder (main.py).", "-m", "--main", default="", metavar="FILE"
    )
    level: str = option(
        "Record modules, functions of torch, or both.", type=click.Choice(["L0", "L1", "mix"]), default="mix",
        show_default=True
    )
    task: str = option(
        "What to record of each tensor.", type=click.Choice(["statistics", "tensor", "overflow"]), default="statistics",
        show_default=True
    )
    steps: str = option("The steps to record; '' for all.", default="0,1", show_default=True, metavar="0,2-4")
    seed: str = option(
        "Random seed; auto: the program's own, else 1234.", default="auto", show_default=True, metavar="auto|N"
    )
    deterministic: bool = flag("Use deterministic operators of torch.")
    api: str = option(
        "The recorder of the training host.", type=click.Choice(["msprobe", "ptdbg"]), default="msprobe",
        show_default=True
    )
    exit_zero: bool = shared(EXIT_ZERO)


@click.command("instrument", cls=Command)
@taking(Instrument)
def instrument_command(given: Instrument) -> int:
    """Write a copy of a training program that records what it computes, to compare two devices.

    Run it for the GPU original and for the migrated program: both get the same edits. Each training step is recorded
    by msprobe, samples are shuffled alike, random tensors are drawn on the host, and dropout is off. The copy is for
    diagnosis, not for training. Exits with 1 if something random is left, which is listed.
    """
    from transplt.base.render.cell import many, visible
    from transplt.precision.instrument.project import write_copy
    from transplt.precision.instrument.script import Probing
    from transplt.proof.launch.dumping import read_steps
    from transplt.proof.launch.options import UsageError as WrongSteps

    if given.seed != "auto" and not (given.seed.isdecimal() and int(given.seed) < 2**32):
        raise UsageError(f"--seed {visible(given.seed)}: write auto or a number below 2^32")
    try:
        wanted = read_steps(given.steps)
    except WrongSteps as error:
        raise UsageError(f"--steps {error}") from error
    number = None if given.seed == "auto" else int(given.seed)
    probing = Probing(given.level, given.task, wanted, number, given.deterministic, given.api)
    copy = write_copy(given.source, given.output, given.main, probing)
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
    return DONE if given.exit_zero or not left else LEFT
