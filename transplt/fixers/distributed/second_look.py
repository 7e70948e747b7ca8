"""`transplt distributed` on one file, after the codemods: what it writes around what the others wrote."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.distributed.averaging import define_average, write_averages
from transplt.fixers.distributed.bench import bench_of
from transplt.fixers.distributed.data import write_samplers
from transplt.fixers.distributed.devices import write_devices
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.epochs import write_epochs
from transplt.fixers.distributed.loss import write_accumulation, write_counts, write_means
from transplt.fixers.distributed.process_group import write_start
from transplt.fixers.distributed.seeds import write_own_draws
from transplt.fixers.distributed.wrapping import write_asked, write_models

fixer = Fixer(__name__, code="NPU333", theme="distributed")


@fixer.on(ast.Module)
def second_look(work: Work, _: ast.Module) -> Finds:
    """Write around what the codemods wrote."""
    bench = bench_of(work)
    if bench is None:
        return
    if bench.verdict.averaging:
        define_average(bench)
    write_start(bench)
    write_devices(bench)
    write_asked(bench)
    effects = Effects(bench)
    if bench.verdict.averaging:
        write_averages(bench, effects)
    elif bench.wraps or not bench.models.origins:
        write_models(bench)
    shuffled = write_samplers(bench, effects.downloads)
    write_epochs(bench, shuffled)
    write_means(bench, effects)
    write_counts(bench)
    effects.write()
    if not bench.verdict.averaging:  # that exchanges once a step by itself
        write_accumulation(bench)
    write_own_draws(bench)
    yield from bench.found
