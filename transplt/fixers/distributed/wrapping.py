"""The wrapper of a model: in the place of DataParallel, or behind all that sets the model up."""

from __future__ import annotations

import ast

from transplt.edits.trees.calls import only_argument
from transplt.edits.trees.expressions import wrapped_anew
from transplt.edits.trees.names import dotted
from transplt.fixers.distributed.bare_models import write_bare, write_renewed
from transplt.fixers.distributed.current_program import SPLIT, Bench
from transplt.flow.callees import DATA_PARALLEL
from transplt.program.models import is_optimizer
from transplt.program.wrapper_places import Wrap, buffers_apart
from transplt.syntax.nodes import attribute_of, block_of, call_of, called_name, of_kind
from transplt.syntax.scan import chain, parent, statement

_REPLACED = "DataParallel is replaced by DistributedDataParallel"
_LR = "the global batch is W times one card's batch, and the learning rate is not changed"
_LR_HELP = (
    "consider scaling it (linearly for SGD, by the square root for Adam) with a warm-up, or divide batch_size by W"
)


def claim_data_parallel(bench: Bench) -> None:
    """DataParallel around the models of this file, before other codemods move what it is given.

    Where gradients are averaged, it stays a wrapper that exchanges nothing: what asks for `.module` goes on doing so.
    """
    for call in bench.file.scan.calls if bench.verdict.averaging else ():
        if bench.file.names.qualified(call.func) in DATA_PARALLEL:
            message = "DataParallel computes the share of the rank on its card"
            bench.change(call.func, "NPU336", message, dotted(bench.call("OneCardDataParallel")))
    for wrap in bench.wraps.values():
        if wrap.file is bench.file and wrap.in_place:
            _turn(bench, wrap)
        elif wrap.file is bench.file:
            _unwrap(bench, wrap.parallel)


def _options(bench: Bench, wrap: Wrap) -> str:
    """What the wrapper of a model is given besides the card."""
    options = ", broadcast_buffers=False" if buffers_apart(bench.models, wrap.origin) else ""
    if not wrap.parallel and any(b"pack_padded_sequence" in file.source.utf8 for file in bench.program.files):
        options += ", device_ids=None"  # else it moves all that it is given to the card, as DataParallel: lengths, too
    return options + (", find_unused_parameters=True" if wrap.origin in bench.verdict.unused else "")


def _turn(bench: Bench, wrap: Wrap) -> None:
    """`nn.DataParallel(model)` becomes the wrapper in its place, around the model on its card."""
    call, options = wrap.parallel[0], _options(bench, wrap)
    above = parent(call)
    moved = call_of(above) if attribute_of(above) == "cuda" else None
    bench.work.take(call.func)
    outer = moved if moved is not None and not moved.args else call
    if outer is not call:  # the .cuda() behind it goes to the model
        bench.work.take(above)
    new = wrapped_anew(bench.call("wrap"), _to_card(bench, wrap), options.removeprefix(", "), behind=outer is not call)
    bench.change(outer, "NPU336", _REPLACED, new)


def _to_card(bench: Bench, wrap: Wrap) -> str:
    """How a model goes to the card of the rank that the program has not yet put on a device."""
    return "" if wrap.placed else f".to({bench.call('card')}())"


def _unwrap(bench: Bench, calls: tuple[ast.Call, ...]) -> None:
    """Unwrap `nn.DataParallel(model)`: the model is wrapped once, behind all that sets it up."""
    for call in calls:
        if not call.args or isinstance(call.args[0], ast.Starred):
            bench.left(call, "DataParallel without a model in front", "remove it: the model is wrapped below")
            continue
        stored = statement(call)
        assert isinstance(stored, ast.Assign)
        same = bench.work.text(call.args[0]) == bench.work.text(stored.targets[0])
        above = parent(stored)
        bench.work.take(call.func)
        if stored.value is call and same:
            gone: ast.stmt = stored
            if isinstance(above, ast.If) and not above.orelse:
                others = [each for each in above.body if each is not stored]
                called = [each.value if isinstance(each, ast.Expr) else None for each in others]
                if all(called_name(each) in ("print", "info") for each in called):
                    gone = above
            if bench.fits(gone):
                bench.remove(gone, "NPU336", _REPLACED, only=len(block_of(gone)) == 1)
                continue
        bench.change(call, "NPU336", _REPLACED, only_argument())


def write_models(bench: Bench) -> None:
    """The wrapper of each model, the bare model where that is meant, and what cannot be seen of them."""
    own, training, wraps = bench.file, bench.training, bench.wraps
    for wrap in wraps.values():
        if wrap.file is own:
            _write_wrap(bench, wrap)
    write_bare(bench)
    for wrap in wraps.values():
        write_renewed(bench, wrap)
    file, call = training.backwards[0]
    if not wraps and file is own:
        wanted = " or ".join(bench.work.settings.targets)
        none = f"no optimizer gets a model named {wanted}" if wanted else "the model that is trained here was not found"
        bench.left(call, none, "name the variable with -t, or wrap it: model = npu_port.wrap(model)", code="NPU338")
    remark_rates(bench)


def remark_rates(bench: Bench) -> None:
    """Say what the batch of all cards means for the learning rate of each optimizer."""
    own = bench.file
    around = [chain(made) for made in own.scan.attributes.get("parameters", ())]
    calls = [next((node for node in of_kind(ast.Call, every) if is_optimizer(own, node)), None)
             for every in around]  # fmt: skip
    for holder in dict.fromkeys(filter(None, calls)):  # one optimizer may train several models
        bench.remark(holder, "NPU348", _LR, _LR_HELP)


def _write_wrap(bench: Bench, wrap: Wrap) -> None:
    """`model = DistributedDataParallel(model, ...)` behind the statement."""
    if wrap.in_place:
        return
    if not bench.fits(wrap.after):
        why = f"{wrap.name} must be wrapped in DistributedDataParallel here, and this line cannot be split"
        bench.left(wrap.after, why, SPLIT)
        return
    options = _options(bench, wrap)
    text = f"{wrap.name} = {bench.call('wrap')}({wrap.name}{_to_card(bench, wrap)}{options})"
    why = ", of which a forward pass may skip a layer" if "unused" in options else ""
    bench.after(wrap.after, [text], "NPU336", f"{wrap.name} in DistributedDataParallel{why}")
