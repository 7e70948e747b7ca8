"""`transplt distributed` on one file, after the codemods: what it writes around what the others wrote."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.distributed.averaging import write_averages, write_buffers
from transplt.fixers.distributed.current_program import SPLIT, Bench, bench_of
from transplt.fixers.distributed.devices import write_devices, write_loads
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.figures import write_figures
from transplt.fixers.distributed.loss import write_accumulation, write_counts, write_means
from transplt.fixers.distributed.mathematics import remark_mathematics, write_rows
from transplt.fixers.distributed.seeds import write_orders, write_own_draws
from transplt.fixers.distributed.shards import write_shares
from transplt.fixers.distributed.waits import write_clocks
from transplt.fixers.distributed.wrapping import write_models
from transplt.program.program import text_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU333", theme="distributed")
_CHECKED = "NPU357"


@fixer.on(ast.Module)
def second_look(work: Work, _: ast.Module) -> Finds:
    """Write around what the codemods wrote."""
    bench = bench_of(work)
    if bench is None:
        return
    write_start(bench)
    write_devices(bench)
    effects = Effects(bench)
    write_loads(bench, effects.runs_after_start)
    if bench.verdict.averaging:
        write_averages(bench)
    elif bench.wraps or not bench.models.origins:
        write_models(bench)
    write_buffers(bench, effects)
    write_shares(bench)
    write_means(bench, effects)
    means = write_figures(bench, effects)
    write_counts(bench, means)
    write_clocks(bench)
    write_rows(bench)
    effects.write()
    if not bench.verdict.averaging:  # that exchanges once a step by itself
        write_accumulation(bench)
    write_own_draws(bench)
    write_orders(bench)
    write_checks(bench)
    remark_mathematics(bench)
    # A DataParallel that stays on one card is right in each of several processes: nothing to replace.
    work.withdraw_notes(lambda note: note.code == "NPU507" and note.blocks == "slow")
    yield from bench.found


def write_checks(bench: Bench) -> None:
    """`--check-ranks N`: behind each step of an optimizer all ranks are compared, every N steps."""
    every = bench.work.settings.check_ranks
    done: set[tuple[int, str]] = set()
    for step in bench.verdict.steps if every else ():
        place, text = step.stmt, text_of(bench.file, step.optimizer)
        if step.file is not bench.file or (id(place), text) in done:
            continue
        done.add((id(place), text))
        if bench.fits(place) and bench.alike(step.call):
            line = f"{bench.call('check_ranks')}({text}, every={every})"
            bench.after(place, [line], _CHECKED, f"every {every} steps the ranks are compared")
        else:
            why, do = "the ranks are not compared after this step", "add npu_port.check_ranks by hand"
            bench.remark(step.call, _CHECKED, why, do)


def write_start(bench: Bench) -> None:
    """One line of the main file, in front of the first one that works with cards, models or data, makes the group; a
    place whose line cannot be parted is left to the user.
    """
    start = bench.start
    if bench.file is not start.file:
        return
    if not bench.fits(start.first):
        bench.left(start.first, "the process group must be created here, and this line cannot be split", SPLIT)
        return
    lines = [f"{bench.call('start')}()"]
    if start.guard:
        lines = ['if __name__ == "__main__":', f"    {lines[0]}"]
    if start.function is None and isinstance(parent(start.first), ast.Module):
        above = bench.file.source.line_text(start.first.lineno - 1) if start.first.lineno > 1 else ""
        lines = [*([""] if above.strip() else []), *lines, ""]
    what = "the device of the rank, the process group, and the same random state on all ranks"
    bench.before(start.first, lines, "NPU333", what)
