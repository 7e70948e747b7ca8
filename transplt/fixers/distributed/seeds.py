"""What is drawn at random: alike on all ranks outside of training, and by each rank for itself while it trains.

All ranks begin with the generators of rank 0 (`start`). Each draws its own numbers from the loop on that goes over
epochs or data; where models, splits or optimizers are made again behind that, all take those of rank 0 again.
"""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.datasets import draws_order
from transplt.fixers.distributed.program.random_draws import drawing_loops, seeded_again, trains_last
from transplt.program.loaders import looks_at_one, name_read, readings
from transplt.program.loops import Loop, loops_around
from transplt.program.program import File
from transplt.program.training import loaders_of
from transplt.syntax.nodes import block_of, ends, of_kind, own_nodes, place_in_block
from transplt.syntax.scan import FUNCTIONS

_CODE = "NPU347"
_MAKE_NOTHING = ("torch.optim.", "time.", "tqdm.", "logging.", "os.", "npu_port.")
_AGAIN = "all ranks draw the same numbers again from here"
_SEEDED = (
    "this gives all ranks the same seed during training: from here on they draw the same dropout and augmentation",
    "add torch.distributed.get_rank() to the seed if each rank should draw its own",
)


def write_own_draws(bench: Bench) -> None:
    """Dropout and augmentation differ between ranks; models, splits and synthetic data are drawn alike."""
    program, outer = bench.program, drawing_loops(bench.training)
    _write_own_again(bench, outer)
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


def write_orders(bench: Bench) -> None:
    """What all ranks go through while each draws its own, such as data to evaluate by: all in one order."""
    done = set[int]()
    for each in readings(bench.training):
        whole = each.file is bench.file and each.trains is False and not looks_at_one(each)
        node = name_read(bench.program, each) if whole and draws_order(each.loader.call) else None
        if node is None or id(node) in done:
            continue
        done.add(id(node))
        if bench.alike(each.node):
            why = "each rank draws its own in training, but all go through these data in one order"
            bench.put_around(node, _CODE, why, bench.call("in_one_order"))


def _write_own_again(bench: Bench, outer: list[tuple[File, Loop]]) -> None:
    """Behind the one seed of a round of a training each draws its own again; two may be there to draw alike twice."""
    reading = {loop for _, loop, loaders in bench.training.loops if loaders}
    blocks: dict[int, list[ast.stmt]] = {}
    for place in {place: None for file, place in seeded_again(bench.training, outer) if file is bench.file}:
        blocks.setdefault(id(block_of(place)), []).append(place)
    for block in blocks.values():
        last = max(block, key=ends)
        together = place_in_block(last)[1] - place_in_block(min(block, key=ends))[1] < len(block)
        plain = isinstance(last, (ast.Expr, ast.Assign)) and bench.fits(last) and bench.alike(last)
        if together and plain and reading.isdisjoint(loops_around(last)):
            lines = [f"{bench.call(name)}()" for name in ("same_draws", "own_draws")]
            bench.after(last, lines, _CODE, "each rank draws its own again")
        else:
            bench.left(last, *_SEEDED)


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
        made = any("." in name and not name.startswith(_MAKE_NOTHING) for name in names)
        if made or any(bench.program.callee(bench.file, call) is not None for call in calls):
            break
        begun = (call.args[0] for call in calls if getattr(call.func, "id", "") == "iter" and call.args)
        if any(loaders_of(bench.program, bench.file, each) for each in begun):
            return _first_read(bench, node)
    return loop
