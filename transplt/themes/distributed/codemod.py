"""`transplt distributed` on one file: first what it claims, last what it writes around what the others wrote."""

from __future__ import annotations

import ast

from transplt.edits.work import Work
from transplt.program.models import Models, find_models, is_optimizer
from transplt.program.program import File, Program, Slot, build, enclosing_function
from transplt.program.training import Training, find_training
from transplt.syntax.scan import chain
from transplt.themes.distributed import devices
from transplt.themes.distributed.bare import write_bare, write_renewed
from transplt.themes.distributed.bench import IMPORTS, Bench
from transplt.themes.distributed.data import write_samplers
from transplt.themes.distributed.effects import Effects
from transplt.themes.distributed.epochs import write_epochs
from transplt.themes.distributed.loss import write_accumulation, write_counts, write_means
from transplt.themes.distributed.recognise import Setup, setups
from transplt.themes.distributed.start import Start, find_start, write_start
from transplt.themes.distributed.wrapping import Wrap, buffers_apart, early_uses, find_wrap, write_wrap

_LR = "the global batch is W times the one of a card, and the learning rate stays as it is"
_LR_HELP = (
    "consider scaling it (linearly for SGD, by the square root for Adam) with a warm-up, or divide batch_size by W"
)
_SEEDS = frozenset(
    {"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.random.manual_seed"}
)


def begin(work: Work) -> None:
    """Take the file on the bench before the other codemods see it, if the main file reaches it."""
    entry = work.settings.entry
    if not entry:
        return
    own = File(work.scan.path, work.source, work.scan, work.names)
    files = work.project.sources or {own.path: work.source.encode(work.source.utf8)}
    program = build(dict(files), entry, work.project, own)
    if not program.files or own not in program.files:
        return
    bench = Bench(work, *IMPORTS, program=program, file=own)
    found = setups(program)
    if found:
        _explain(bench, found)
        return
    start = find_start(program)
    training = find_training(program)
    if start is None or not training.backwards:
        if own is program.files[0]:
            _nothing(bench, start, training)
        return
    devices.claim(bench)
    models = find_models(program, training, work.settings.targets)
    wraps = {origin: wrap for origin in models.origins if (wrap := find_wrap(models, origin)) is not None}
    for wrap in wraps.values():
        if wrap.file is own:
            if wrap.in_place:
                devices.turn_data_parallel(bench, wrap.parallel[0], buffers_apart(models, wrap.origin))
            else:
                devices.replace_data_parallel(bench, wrap.parallel)
    work.bench = (bench, start, training, models, wraps)


def _explain(bench: Bench, found: list[Setup]) -> None:
    for setup in found:
        if setup.file is bench.file:
            bench.remark(
                setup.node,
                "NPU331" if setup.spawns else "NPU330",
                f"this program runs in several processes already ({setup.what}): nothing is added to it",
                "the launch script starts it once, and it starts its processes"
                if setup.spawns
                else "torchrun gives RANK, LOCAL_RANK and WORLD_SIZE in the environment, and no --local_rank argument",
            )


def _nothing(bench: Bench, start: Start | None, training: Training) -> None:
    body = bench.file.scan.tree.body
    if not body:
        return
    why = (
        "no backward pass is in sight of the main file"
        if not training.backwards
        else "the main file calls nothing that trains"
    )
    bench.left(
        body[-1],
        f"this script was not made distributed: {why}",
        "give -m the file that trains, or make the process group and wrap the model by hand",
    )


def plan(work: Work) -> None:
    """Write around what the other codemods wrote."""
    if work.bench is None:
        return
    bench, start, training, models, wraps = work.bench
    if bench.file is start.file:
        write_start(bench, start)
    devices.write(bench)
    devices.write_asked(bench)
    if wraps or not models.origins:
        _models(bench, training, models, wraps)
    shuffled = write_samplers(bench, training)
    write_epochs(bench, training, shuffled)
    effects = Effects(bench, models, start)
    write_means(bench, training, effects)
    write_counts(bench, training)
    effects.write()
    write_accumulation(bench, training, models)
    _seeds(bench, training)


def _models(bench: Bench, training: Training, models: Models, wraps: dict[Slot, Wrap]) -> None:
    own = bench.file
    for wrap in wraps.values():
        if wrap.file is own:
            write_wrap(bench, models, wrap)
            for call in early_uses(models, wrap):
                bench.left(
                    call,
                    f"this uses {wrap.name} before it is wrapped, and what it calls expects the wrapper",
                    f"move it below `{wrap.name} = DistributedDataParallel(...)`, or drop `.module` in what it calls",
                    code="NPU338",
                )
    write_bare(bench, models, wraps)
    for wrap in wraps.values():
        write_renewed(bench, models, wrap)
    file, call = training.backwards[0]
    if not wraps and file is own:
        wanted = " or ".join(bench.work.settings.targets)
        bench.left(
            call,
            f"no model named {wanted} goes to an optimizer" if wanted else "which model trains here cannot be seen",
            "name the variable with -t, or wrap it: model = DistributedDataParallel(model, device_ids=[...])",
            code="NPU338",
        )
    for origin in models.origins:
        if origin not in wraps and origin[0] in (own.path, "self") and file is own:
            bench.left(
                call,
                f"the place where {origin[2]} has to be wrapped cannot be seen",
                f"{origin[2]} = DistributedDataParallel({origin[2]}, device_ids=[torch.npu.current_device()])",
                code="NPU338",
            )
    for made in own.scan.attributes.get("parameters", ()):
        holder = next(
            (above for above in chain(made) if isinstance(above, ast.Call) and is_optimizer(own, above)), None
        )
        if holder is not None:
            bench.remark(holder, "NPU348", _LR, _LR_HELP)


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


def _seeds(bench: Bench, training: Training) -> None:
    """Dropout and augmentation differ between ranks; models, splits and synthetic data were drawn alike before."""
    program: Program = bench.program
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
    if file is bench.file and bench.layout.fits(node):
        torch = bench.torch
        text = f"{torch}.manual_seed({torch}.initial_seed() + {bench.dist}.get_rank())"
        bench.before(node, [text], "NPU347", "each rank draws its own dropout and augmentation")
