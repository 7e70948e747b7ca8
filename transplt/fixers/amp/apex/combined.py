"""`--combine-ddp`: apex combines the gradients of the ranks, and the program has no DistributedDataParallel then.

Source: the Ascend PyTorch porting guide (combine_ddp=True with DistributedDataParallel switched off), and the README of
Ascend apex: amp sends the weights of rank 0 to the others, and averages the combined gradients.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from transplt.base.settings import Settings
from transplt.edits.trees.calls import only_argument
from transplt.edits.unused_imports import drop_unused
from transplt.edits.writer import Writer
from transplt.fixers.amp.apex.place import Initialization, Problem
from transplt.fixers.amp.apex.program import Apex
from transplt.program.program import File
from transplt.rules.torch_callables import full_names, names_of
from transplt.syntax.nodes import block_of, by_place, inner_nodes
from transplt.syntax.scan import chain, parent, statement

_PARALLEL = full_names("distributes")
#: Arguments of DistributedDataParallel that change nothing about which gradients are exchanged, and how.
_PLAIN = frozenset({"module", "device_ids", "output_device", "dim", "bucket_cap_mb", "gradient_as_bucket_view"})
_BUFFERS = "broadcast_buffers"
#: What only the wrapper has; texts have a `join`, too.
_OF_WRAPPER = names_of("torch.nn.parallel.DistributedDataParallel") - {"join"}
_LEFT_OUT = "apex combines the gradients of the ranks: no DistributedDataParallel"


def combine_refused(apex: Apex, settings: Settings) -> Problem | None:
    """Why apex cannot combine the gradients of this program; None when it can."""
    place = apex.place
    wrappers = [
        (file, call)
        for file in apex.program.files
        for call in by_place(file.scan.calls)
        if (file.names.qualified(call.func) or "").endswith((".DistributedDataParallel", ".DataParallel"))
    ]
    if (problem := _not_left_out(apex, wrappers)) is not None:
        return problem
    if wrappers and (problem := _not_alike(apex, wrappers, settings)) is not None:
        return problem
    if apex.loose:
        return Problem(
            place.file, place.after, f"combine_ddp needs gradients in one tensor, and {apex.loose}",
            "do not move gradients and parameters, or remove --combine-ddp",
        )  # fmt: skip
    if not any(b"init_process_group" in file.source.utf8 for file in apex.program.files):
        return Problem(
            place.file, place.after, "combine_ddp needs a process group, and this program creates none",
            "make the program distributed first, or remove --combine-ddp",
        )  # fmt: skip
    return None


def _not_left_out(apex: Apex, wrappers: list[tuple[File, ast.Call]]) -> Problem | None:
    """A wrapper that stays: in another place than amp.initialize is written for, or DataParallel alone."""
    place = apex.place
    many = any(file.names.qualified(call.func) in _PARALLEL for file, call in wrappers)
    for file, call in wrappers:
        full = file.names.qualified(call.func) or ""
        if full in _PARALLEL:
            # `model = DistributedDataParallel(model, ...)`, also with `.to(device)` behind it
            one = len(call.args) == 1 and not isinstance(call.args[0], ast.Starred)
            alone = one and isinstance(statement(call), ast.Assign)
            fits = file is place.file and statement(call) in place.wraps and alone
        else:
            fits = many and full.startswith("torch.") and not any(call in ast.walk(item) for item in place.moved)
        if not fits:
            return Problem(
                file, call, f"combine_ddp replaces {full.rpartition('.')[2]}, which this program has",
                "remove the wrapper and `.module`, or remove --combine-ddp",
            )  # fmt: skip
    return None


def _not_alike(apex: Apex, wrappers: list[tuple[File, ast.Call]], settings: Settings) -> Problem | None:
    """What the program has of the wrapper, and would miss."""
    for file, call in wrappers:
        given = {keyword.arg for keyword in call.keywords}
        if file.names.qualified(call.func) in _PARALLEL and (others := given - _PLAIN - {_BUFFERS}):
            named = ", ".join(sorted(str(each or "**") for each in others))
            why = f"combine_ddp replaces DistributedDataParallel, but has no {named}"
            return Problem(file, call, why, "remove that argument, or remove --combine-ddp")
    if settings.amp_flag:
        file, call = wrappers[0]
        why = "without --amp nothing would combine the gradients"
        return Problem(file, call, why, "remove --amp-flag or --combine-ddp")
    for file in apex.program.files:
        for name in sorted(_OF_WRAPPER):
            for node in by_place(file.scan.attributes.get(name, ())):
                why = f"combine_ddp replaces DistributedDataParallel, and this uses its {name}"
                return Problem(file, node, why, "write it for a model without a wrapper, or remove --combine-ddp")
        for call in file.scan.calls:
            asked = getattr(call.func, "id", "") == "getattr" and len(call.args) > 1
            if asked and getattr(call.args[1], "value", None) in _OF_WRAPPER and len(call.args) == 2:
                why = "combine_ddp replaces DistributedDataParallel, and this uses a part of it"
                return Problem(file, call, why, "write it for a model without a wrapper, or remove --combine-ddp")
    return None


def combined_when(writer: Writer, place: Initialization) -> str:
    """`True`, or the question whether there is a process group where only some branches of the program wrap."""
    calls = [call for item in place.wraps for call in _parallel(place.file, item)]
    branches = any(isinstance(above, (ast.If, ast.Try)) for call in calls for above in chain(call))
    return f"{writer.torch}.distributed.is_initialized()" if branches else "True"


def _parallel(file: File, item: ast.stmt) -> list[ast.Call]:
    found = list(inner_nodes(item, ast.Call))
    return [call for call in found if file.names.qualified(call.func) in _PARALLEL]


def leave_wrappers_out(writer: Writer, place: Initialization, code: str) -> Initialization:
    """Take DistributedDataParallel out; what is moved and deferred then are other wrappers."""
    work = writer.work
    found = [(item, call) for item in place.wraps for call in _parallel(place.file, item)]
    if not found:
        return place
    gone: list[ast.stmt] = []
    for item, call in found:
        assert isinstance(item, ast.Assign)
        same = len(item.targets) == 1 and work.text(item.targets[0]) == work.text(call.args[0])
        if item.value is call and same:
            gone.append(item)
        else:
            work.take(call.func)
            writer.rewrite(call, code, _LEFT_OUT, only_argument())
    for node in _with_their_branches(gone):
        for inner in ast.walk(node):
            work.take(inner)
        block = block_of(node)
        writer.remove(node, code, _LEFT_OUT, only=node is block[0] and all(each in gone for each in block))
    without = {item for item, _ in found}
    drop_unused(writer, [call.func for _, call in found], code)
    what = "the state of the model has no `module.` in its names, and each rank keeps its own running statistics"
    help_ = "a checkpoint that a wrapped model wrote is read without that prefix; rank 0 saves its own statistics"
    writer.remark(place.after, code, what, help_)
    moved = tuple(item for item in place.moved if not any(each in without for each in ast.walk(item)))
    return replace(place, moved=moved, deferred=tuple(pair for pair in place.deferred if pair[1] not in without))


def _with_their_branches(gone: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, and in place of those that are all that an `if` does the `if`."""
    while True:
        branches = (above for node in gone if isinstance(above := parent(node), ast.If))
        emptied = (each for each in branches if not each.orelse and all(node in gone for node in each.body))
        # an `elif` stays, as it keeps the program from what follows it
        whole = next((each for each in emptied if each not in getattr(parent(each), "orelse", ())), None)
        if whole is None:
            return gone
        gone[:] = [node for node in gone if node not in whole.body] + [whole]
