"""What is drawn at random: alike on all ranks outside of training, and by each rank for itself while it trains.

All ranks begin with the generators of rank 0 (`start`). Each draws its own numbers from the loop on that goes over
epochs or data; where models, splits or optimizers are made again behind that, all take those of rank 0 again.
"""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.random_draws import drawing_loops, trains_last
from transplt.program.training import loaders_of
from transplt.syntax.nodes import of_kind, own_nodes, place_in_block
from transplt.syntax.scan import FUNCTIONS

_CODE = "NPU347"
_MAKE_NOTHING = ("torch.optim.", "time.", "tqdm.", "logging.", "os.", "npu_port.")
_AGAIN = "what is made next is drawn alike again"


def write_own_draws(bench: Bench) -> None:
    """Dropout and augmentation differ between ranks; models, splits and synthetic data are drawn alike."""
    program, outer = bench.program, drawing_loops(bench.training)
    for file, loop in outer:
        if file is not bench.file or not bench.fits(loop):
            continue
        place = _first_read(bench, loop)
        bench.before(place, [f"{bench.call('own_draws')}()"], _CODE, "each rank draws its own dropout and augmentation")
        if not trains_last(program, file, loop, outer):
            lines = [f"{bench.call('same_draws')}()"]
            for node in own_nodes(loop):
                if isinstance(node, ast.Return) and bench.fits(node):
                    bench.before(node, lines, _CODE, _AGAIN)
            bench.after(loop, lines, _CODE, _AGAIN)


def _first_read(bench: Bench, loop: ast.stmt) -> ast.stmt:
    """The statement in front of a loop that begins to read its data, else the loop.

    `iter(loader)` draws the seeds of the workers, and with workers the order of the first batches, too.
    """
    block, index = place_in_block(loop)
    for at in range(index - 1, -1, -1):
        node = block[at]
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) or not bench.fits(node):
            break
        calls = list(of_kind(ast.Call, own_nodes(node)))
        # what the program makes, or a package other than these, may draw weights, which are drawn alike
        names = [bench.file.names.qualified(call.func) or "" for call in calls]
        if any("." in name and not name.startswith(_MAKE_NOTHING) for name in names):
            break
        if any(bench.program.callee(bench.file, call) is not None for call in calls):
            break
        if any(
            getattr(call.func, "id", "") == "iter" and call.args and loaders_of(bench.program, bench.file, call.args[0])
            for call in calls
        ):
            return _first_read(bench, node)
    return loop
