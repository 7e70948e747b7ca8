"""`transplt replay`: parses options, computes recorded operators again or writes what does, prints what differs."""

from __future__ import annotations

from pathlib import Path

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.faces.cli.command import DONE, LEFT, Command
from transplt.faces.cli.completing import FILE, FOLDER
from transplt.proof.launch.shared_options import PYTHON


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("dump", type=FOLDER, metavar="DUMP")
@click.option(
    "--on",
    "device",
    type=click.Choice(["cpu", "npu"]),
    default="cpu",
    show_default=True,
    help="Compute on this CPU, or on the emulated NPU.",
)
@click.option("--script", type=FILE, metavar="OUT.py", help="Write a script to run on a card; compute nothing here.")
@click.option(
    "--read", "replayed", type=FOLDER, metavar="DIR", help="Compare what that script wrote; compute nothing here."
)
@click.option(
    "--bench", type=FOLDER, metavar="DUMP", help="Find the faulty operators among those that differ from this dump."
)
@click.option("--op", metavar="NAME", help="This operator only.")
@click.option("--step", type=click.IntRange(0), metavar="N", help="The step to use (default: the first).")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="The rank to use (default: the first).")
@click.option(
    "--tol",
    type=click.FloatRange(min=0),
    metavar="T",
    help="Allowed relative difference (default: depends on the dtype).",
)
@click.option("-o", "--output", type=FOLDER, metavar="OUT", help="Write replay.csv and replay.json to this folder.")
@PYTHON
def replay(
    dump: str, *, device: str, script: str | None, replayed: str | None, bench: str | None, op: str | None,
    step: int | None, rank: int | None, tol: float | None, output: str | None, python: str,
) -> int:  # fmt: skip
    """Recompute the operators of DUMP, each from its recorded inputs, and compare the results.

    DUMP holds tensors (run --dump-task tensor). An operator that merely received wrong inputs agrees; one that is
    wrong itself does not. Operators of an NPU are recomputed on the CPU, those of a GPU on the emulated NPU, or both
    on a card: --script. Exit codes: 0 all agree, 1 an operator gives another result or fails, 2 nothing can be
    recomputed.
    """
    from transplt.precision.dumps import open_dump
    from transplt.precision.output import check_target
    from transplt.precision.replay.outcome import beside, outcome, read_replayed
    from transplt.precision.replay.outcome_text import none_text, replay_text
    from transplt.precision.replay.output import OURS, write
    from transplt.precision.replay.plan import plan
    from transplt.precision.replay.running import replayed_here
    from transplt.precision.replay.script import script_text
    from transplt.precision.show.operator import find, parts_at
    from transplt.render.cell import many

    if script is not None and replayed is not None:
        raise UsageError("--script and --read cannot be combined")
    if output is not None:
        check_target(Path(output), OURS)
    opened = open_dump(dump)
    if op is not None:
        named = find(opened, op, step, rank)
        step, rank = named.step, named.rank
    (at, who), part = next(iter(parts_at(opened, step, rank).items()))
    planned = plan(part.read(), op)
    if not planned.calls:
        raise UsageError(none_text(dump, planned))
    if script is not None:
        _write_script(script, script_text(planned, at, who))
        operators = many(len(planned.calls), "operator")
        click.echo(f"{shown(script)} written, {operators}: python {shown(script)} -o replayed")
        return DONE
    if replayed is not None:
        found = outcome(planned, part, read_replayed(replayed, at, who), tol)
    else:
        with replayed_here(script_text(planned, at, who), device, python) as folder:
            found = outcome(planned, part, read_replayed(folder, at, who), tol)
    if bench is not None:
        other = open_dump(bench)
        if (at, who) not in other.parts:
            raise UsageError(f"{shown(bench)} has no step {at}, rank {who}")
        beside(found, part, other.parts[at, who], tol)
    click.echo(replay_text(found), nl=False)
    if output is not None:
        write(Path(output), found)
        click.echo(f"written: {shown(output)}")
    return LEFT if found.differing or found.failed else DONE


def _write_script(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise CannotFinish(f"cannot write {shown(path)}: {reason(error)}") from error
