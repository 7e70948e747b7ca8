"""Training data is shared out: a loader that only training reads gives each rank its share of every epoch."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.sharing import DRAWN
from transplt.program.loops import loop_head, loops_around
from transplt.program.models import READS_OPTIMIZER
from transplt.program.program import LOADERS
from transplt.program.training import Loader, Training, loaders_of
from transplt.syntax.nodes import by_place, call_of, keyword_of, of_kind
from transplt.syntax.scan import chain, statement

_OWN = "each rank draws its own, so the global batch is W times as large; what all ranks hold alike is not divided"
#: The code of data that is not shared out.
WHOLE = "NPU340"
_CODE = "NPU339"
_MAYBE = (
    "this loader may be for training, but no training loop with it was found",
    "if so, divide it among the ranks: loader = npu_port.shard(loader)",
)
_LENGTH = (
    "NPU346",
    "this counts the batches of all data, and each rank trains with its share of them",
    "if it is the number of training steps, divide it by npu_port.world_size()",
)
_STATISTICS = (
    "NPU346",
    "this takes the statistics of batch norm from one rank's share, and rank 0's are saved",
    "give it a loader of its own over all of the data",
)
_MESSAGE = "each rank gets its share of the data; batch_size is per card, so the global batch is W times as large"


def unclear_loaders(training: Training) -> list[Loader]:
    """When nothing trains in sight: loaders that shuffle, or that are named after training."""
    found = []
    for file in training.program.files:
        for call in file.scan.calls:
            if file.names.qualified(call.func) in LOADERS:
                stored = statement(call)
                named = isinstance(stored, ast.Assign) and "train" in ast.dump(stored.targets[0]).lower()
                shuffle = keyword_of(call, "shuffle")
                if named or (isinstance(shuffle, ast.Constant) and shuffle.value is True):
                    found.append(Loader(file, call))
    return found


def write_shares(bench: Bench) -> None:
    """Share out what training reads, in the file on the bench."""
    found = bench.verdict.shares
    done: set[int] = set()
    for share in (share for places in found.places.values() for share in places):
        if share.file is bench.file and id(share.loader) not in done:
            done.add(id(share.loader))
            function = bench.call("shard")
            if share.holder is not None and share.stored is not None:
                name = ast.unparse(share.holder)
                places = [f"{name}[{key!r}]" for key in share.keys] or [name]
                lines = [f"{place} = {function}({place})" for place in places]
                bench.after(share.stored, lines, _CODE, _MESSAGE)
            elif isinstance(share.stored, ast.Assign) and bench.fits(share.stored):
                name = bench.work.text(share.stored.targets[0])
                bench.after(share.stored, [f"{name} = {function}({name})"], _CODE, _MESSAGE)
            else:
                bench.put_around(share.loader, _CODE, _MESSAGE, function)
    _remark_lengths(bench)
    _tell_of_statistics(bench)
    for key, why in found.whole.items():
        if found.loaders[key].file is bench.file:
            _leave_whole(bench, found.loaders[key].call, *why)
    unclear = [] if found.loaders else unclear_loaders(bench.training)
    if not found.loaders and not unclear:
        _no_loader(bench)
    for loader in unclear:
        if loader.file is bench.file:
            _leave_whole(bench, loader.call, *_MAYBE)


def _remark_lengths(bench: Bench) -> None:
    """Say that a length is that of all data where the share is taken in the head of a loop, and not of its loader."""
    found = bench.verdict.shares
    heads = {key: [place for place in places if place.stored is None] for key, places in found.places.items()}
    apart = {key for key, every in heads.items() if any(each.loader is not found.loaders[key].call for each in every)}
    for call in by_place(node for name in bench.file.scan.names.get("len", ()) if (node := call_of(name)) is not None):
        read = loaders_of(bench.program, bench.file, call.args[0]) if apart and len(call.args) == 1 else []
        if any(id(loader.call) in apart for loader in read):
            (bench.decide if _is_planned_by(bench, call) else bench.remark)(call, *_LENGTH)


def _tell_of_statistics(bench: Bench) -> None:
    """`update_bn(loader, model)` goes over the loader by itself."""
    places, scan = bench.verdict.shares.places, bench.file.scan
    for node in by_place([*scan.names.get("update_bn", ()), *scan.attributes.get("update_bn", ())]):
        call = call_of(node)
        read = loaders_of(bench.program, bench.file, call.args[0]) if call is not None and call.args else []
        if any(place.stored is not None for loader in read for place in places.get(id(loader.call), ())):
            bench.decide(node, *_STATISTICS)


def _is_planned_by(bench: Bench, length: ast.Call) -> bool:
    """True for a length that a schedule of the learning rate is given, or its name."""
    readers: list[ast.AST] = [length]
    match statement(length):
        case ast.Assign(targets=[ast.Name(id=name)]):
            readers += bench.file.scan.names[name]
    above = (each for reader in readers for each in of_kind(ast.Call, chain(reader)))
    return any((bench.file.names.qualified(each.func) or "").startswith(READS_OPTIMIZER) for each in above)


def _leave_whole(bench: Bench, node: ast.expr, why: str, help_: str, *, drawn: bool = False) -> None:
    """Say that no rank has a share of the data: right, and no faster than one card if no rank draws its own."""
    what = "all that it has chosen" if why == DRAWN[0] else "all of the data"
    told = _OWN if drawn else f"every rank trains with {what}, and more cards are no faster"
    bench.decide(node, WHOLE, f"{why}: {told}", help_, *([(WHOLE, "drawn")] if drawn else []))


def _no_loader(bench: Bench) -> None:
    """One word about data that no loader reads: at the loop of the first backward pass, or at one that calls it."""
    training, varying = bench.training, bench.verdict.ways.varying
    # A loss that differs for no draw of the model itself differs for its data.
    drawn = not varying.models and any(varying.varies(file, call.func) for file, call in training.backwards)
    loops = [(file, loop) for file, call in training.backwards for loop in loops_around(call)[:1]]
    # Where a function takes one step, what calls it goes over the data.
    for file, loop in (loops or training.regions)[:1]:
        if file is bench.file:
            why = "the data of this loop does not come from a known DataLoader"
            do = "use a share on each rank, of the same length on all ranks"
            share = f"{do}: data[npu_port.rank()::npu_port.world_size()]"
            do = "draw 1/W of it on each rank to keep the global batch" if drawn else share
            _leave_whole(bench, loop_head(loop), why, do, drawn=drawn)
