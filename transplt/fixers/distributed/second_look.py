"""`transplt distributed` on one file, after the codemods: what it writes around what the others wrote."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.distributed.averaging import write_averages, write_buffers
from transplt.fixers.distributed.current_program import bench_of
from transplt.fixers.distributed.devices import write_devices, write_loads
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.loss import write_accumulation, write_counts, write_means
from transplt.fixers.distributed.mathematics import remark_mathematics, write_rows
from transplt.fixers.distributed.process_group import write_start
from transplt.fixers.distributed.rank_checks import write_checks
from transplt.fixers.distributed.seeds import write_own_draws
from transplt.fixers.distributed.shards import write_shares
from transplt.fixers.distributed.waits import write_clocks
from transplt.fixers.distributed.wrapping import write_models

fixer = Fixer(__name__, code="NPU333", theme="distributed")


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
    write_counts(bench)
    write_clocks(bench)
    write_rows(bench)
    effects.write()
    if not bench.verdict.averaging:  # that exchanges once a step by itself
        write_accumulation(bench)
    write_own_draws(bench)
    write_checks(bench)
    remark_mathematics(bench)
    yield from bench.found
