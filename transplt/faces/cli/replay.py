"""`transplt replay`: parses options, computes recorded operators again or writes what does, prints what differs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.render.options import argument, option, shared, taking
from transplt.faces.cli.command import DONE, LEFT, Command
from transplt.faces.cli.completing import FILE, FOLDER
from transplt.proof.launch.shared_options import PYTHON


@dataclass(frozen=True)
class Replay:
    """Which operators are computed again, where, and what they are compared with."""

    dump: str = argument(type=FOLDER, metavar="DUMP")
    device: str = option(
        "Compute on this CPU, or on the emulated NPU.", "--on", type=click.Choice(["cpu", "npu"]), default="cpu",
        show_default=True
    )
    script: str | None = option("Write a script to run on a card; compute nothing here.", type=FILE, metavar="OUT.py")
    replayed: str | None = option(
        "Compare the results of that script; compute nothing here.", "--read", type=FOLDER, metavar="DIR"
    )
    bench: str | None = option(
        "Find the faulty operators among those that differ from this dump.", type=FOLDER, metavar="DUMP"
    )
    op: str | None = option("Only this operator.", metavar="NAME")
    step: int | None = option("The step to use (default: the first).", type=click.IntRange(0), metavar="N")
    rank: int | None = option("The rank to use (default: the first).", type=click.IntRange(0), metavar="N")
    tol: float | None = option(
        "Allowed relative difference (default: depends on the dtype).", type=click.FloatRange(min=0), metavar="T"
    )
    output: str | None = option(
        "Write replay.csv and replay.json to this folder.", "-o", "--output", type=FOLDER, metavar="OUT"
    )
    python: str = shared(PYTHON)


@click.command(cls=Command)
@taking(Replay)
def replay(given: Replay) -> int:
    """Recompute the operators of DUMP, each from its recorded inputs, and compare the results.

    DUMP holds tensors (run --dump-task tensor). An operator that merely received wrong inputs agrees; one that is
    wrong itself does not. Operators of an NPU are recomputed on the CPU, those of a GPU on the emulated NPU, or both
    on a card: --script. Exit codes: 0 all agree, 1 an operator gives another result or fails, 2 nothing can be
    recomputed.
    """
    from transplt.base.render.cell import many
    from transplt.precision.dumps import open_dump
    from transplt.precision.output import check_target
    from transplt.precision.replay.outcome import beside, outcome, read_replayed
    from transplt.precision.replay.outcome_text import none_text, replay_text
    from transplt.precision.replay.output import OURS, write
    from transplt.precision.replay.plan import plan
    from transplt.precision.replay.running import replayed_here
    from transplt.precision.replay.script import script_text
    from transplt.precision.show.operator import find, parts_at

    if given.script is not None and given.replayed is not None:
        raise UsageError("--script and --read cannot be combined")
    if given.output is not None:
        check_target(Path(given.output), OURS)
    opened = open_dump(given.dump)
    step, rank = given.step, given.rank
    if given.op is not None:
        named = find(opened, given.op, given.step, given.rank)
        step, rank = named.step, named.rank
    (at, who), part = next(iter(parts_at(opened, step, rank).items()))
    planned = plan(part.read(), given.op)
    if not planned.calls:
        raise UsageError(none_text(given.dump, planned))
    if given.script is not None:
        try:
            Path(given.script).write_text(script_text(planned, at, who), "utf-8")
        except OSError as error:
            raise CannotFinish(f"cannot write {shown(given.script)}: {reason(error)}") from error
        operators = many(len(planned.calls), "operator")
        click.echo(f"{shown(given.script)} written, {operators}: python {shown(given.script)} -o replayed")
        return DONE
    if given.replayed is not None:
        found = outcome(planned, part, read_replayed(given.replayed, at, who), given.tol)
    else:
        with replayed_here(script_text(planned, at, who), given.device, given.python) as folder:
            found = outcome(planned, part, read_replayed(folder, at, who), given.tol)
    if given.bench is not None:
        other = open_dump(given.bench)
        if (at, who) not in other.parts:
            raise UsageError(f"{shown(given.bench)} has no step {at}, rank {who}")
        beside(found, part, other.parts[at, who], given.tol)
    click.echo(replay_text(found), nl=False)
    if given.output is not None:
        write(Path(given.output), found)
        click.echo(f"written: {shown(given.output)}")
    return LEFT if found.differing or found.failed else DONE
