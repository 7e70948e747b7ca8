"""`transplt distributed` on one file, after the codemods: what it writes around what the others wrote."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.program.program import enclosing_function
from transplt.syntax.scan import chain
from transplt.themes.distributed.bench import Bench, bench_of
from transplt.themes.distributed.data import write_samplers
from transplt.themes.distributed.devices import write_devices
from transplt.themes.distributed.effects import Effects
from transplt.themes.distributed.epochs import write_epochs
from transplt.themes.distributed.loss import write_accumulation, write_counts, write_means
from transplt.themes.distributed.process_group import write_start
from transplt.themes.distributed.wrapping import write_asked, write_models

fixer = Fixer(__name__, code="NPU333", theme="distributed")

_SEEDS = frozenset(
    {"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.random.manual_seed"}
)


@fixer.on(ast.Module)
def second_look(work: Work, _: ast.Module) -> Finds:
    """Write around what the codemods wrote."""
    bench = bench_of(work)
    if bench is None:
        return
    write_start(bench)
    write_devices(bench)
    write_asked(bench)
    if bench.wraps or not bench.models.origins:
        write_models(bench)
    shuffled = write_samplers(bench)
    write_epochs(bench, shuffled)
    effects = Effects(bench)
    write_means(bench, effects)
    write_counts(bench)
    effects.write()
    write_accumulation(bench)
    _seeds(bench)
    yield from bench.found


def _splits(bench: Bench) -> None:
    """Without a seed each rank splits the data in its own way, and trains with what others validate on."""
    for call in bench.file.scan.calls:
        name = bench.file.names.qualified(call.func) or ""
        given = {keyword.arg for keyword in call.keywords}
        if name.endswith((".random_split", ".train_test_split")) and not given & {"generator", "random_state"}:
            bench.left(
                call,
                "the ranks split the data in different ways: the script sets no seed",
                "set one at the start of the script: torch.manual_seed(0), or give the split a generator of its own",
            )


def _seeds(bench: Bench) -> None:
    """Dropout and augmentation differ between ranks; models, splits and synthetic data were drawn alike before."""
    program, training = bench.program, bench.training
    seeded = any(file.names.qualified(call.func) in _SEEDS for file in program.files for call in file.scan.calls)
    if not seeded:
        _splits(bench)
        return
    loops = [(file, loop) for file, loop, loaders in training.loops if loaders] or training.regions
    if not loops:
        return
    file, loop = loops[0]
    node: ast.stmt = loop
    # Out to the outermost loop, and on to the callers, as long as there is one of them.
    while True:
        for above in chain(node):
            if enclosing_function(above) is not enclosing_function(node):
                break
            if isinstance(above, (ast.For, ast.AsyncFor, ast.While)):
                node = above
        function = enclosing_function(node)
        sites = program.call_sites.get(function, []) if function is not None else []
        looping = [
            (at, call) for at, call in sites if any(isinstance(above, (ast.For, ast.While)) for above in chain(call))
        ]
        if len(sites) != 1 or not looping:
            break
        file = sites[0][0]
        node = next(above for above in chain(sites[0][1]) if isinstance(above, (ast.For, ast.While)))
    if file is bench.file and bench.fits(node):
        torch = bench.torch
        text = f"{torch}.manual_seed({torch}.initial_seed() + {bench.dist}.get_rank())"
        bench.before(node, [text], "NPU347", "each rank draws its own dropout and augmentation")
