"""What is drawn at random: alike on all ranks outside of training, and by each rank for itself while it trains.

All ranks begin with the generators of rank 0 (`start`). Each draws its own numbers from the loop on that goes over
epochs or data; where models, splits or optimizers are made again behind that, all take those of rank 0 again.
"""

from __future__ import annotations

import ast

from transplt.fixers.distributed.bench import Bench
from transplt.program.drawing import drawing_loops, trains_last
from transplt.syntax.asks import own_nodes

_CODE = "NPU347"
_AGAIN = "what is made next is drawn alike again"


def write_own_draws(bench: Bench) -> None:
    """Dropout and augmentation differ between ranks; models, splits and synthetic data are drawn alike."""
    program, outer = bench.program, drawing_loops(bench.training)
    for file, loop in outer:
        if file is not bench.file or not bench.fits(loop):
            continue
        bench.before(loop, [f"{bench.call('own_draws')}()"], _CODE, "each rank draws its own dropout and augmentation")
        if not trains_last(program, file, loop, outer):
            lines = [f"{bench.call('same_draws')}()"]
            for node in own_nodes(loop):
                if isinstance(node, ast.Return) and bench.fits(node):
                    bench.before(node, lines, _CODE, _AGAIN)
            bench.after(loop, lines, _CODE, _AGAIN)
