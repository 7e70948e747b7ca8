"""What is other mathematics on several cards, whatever is written: each card sees its share of a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.batches import carried, memories, over_the_batch
from transplt.fixers.distributed.program.gradient_reads import set_anew
from transplt.fixers.distributed.program.kept_states import base_of
from transplt.program.program import enclosing_function, text_of
from transplt.program.reached_functions import functions_run_from
from transplt.program.wrapper_places import buffers_apart
from transplt.syntax.nodes import begins, by_place, last_name, of_kind
from transplt.syntax.scan import chain

_LOSS = (
    "NPU353",
    "this compares each sample with the others of its batch, which is now one card's batch",
    "gather the compared values over the ranks, with gradients; change nothing if one card's batch is enough",
)
_MEMORY = (
    "NPU353",
    "this stores values of earlier batches: the wrapper sends rank 0's to all ranks, and those of the others are lost",
    "this stores values of earlier batches: each rank keeps those of its own batches",
    "gather the new entries over the ranks before they are stored, so that all ranks store the same",
)
_TABLE = (
    "NPU353",
    "a table that is kept over batches: each rank writes the rows of its own batches",
    "write them at a place that all ranks reach, and share them afterwards: npu_port.share_rows(table, index)",
)
_STATE = (
    "NPU353",
    "{name} is kept over batches and decides how the next ones train: each rank makes its own of its own batches",
    "make it of all of them: take npu_port.mean_over_ranks(...) or npu_port.sum_over_ranks(...) of what it is given "
    "here, on all ranks",
)
_BY_KEY = (
    "the ranks hold other keys here: gather keys and values with torch.distributed.all_gather_object, and store those "
    "of all ranks on every rank"
)
_SURGERY = (
    "NPU353",
    "gradients are combined here from those of one card's batch, and the ranks take the mean of what comes out",
    "average the gradients of each loss over the ranks before they are combined; change nothing if one card's batch is "
    "enough",
)
_TWO_STEPS = (
    "NPU354",
    "an optimizer with two steps: gradients are averaged before both, as in one process with the global batch",
    "to use each card's own gradient in the first step, average only before the second one",
)
_NORM = (
    "NPU355",
    "a batch norm uses the statistics of one card's share of the batch",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) uses those of all cards, and is slower",
)
_CARRIED = (
    "NPU356",
    "{name} is carried from batch to batch, but each card has its own batches",
    "keep samples that follow one another on one card, or start each batch without it",
)


def write_rows(bench: Bench) -> None:
    """What is kept by the numbers of samples is the same on all ranks: each gets other samples in each epoch."""
    for (file, stmt, table, numbers), together in bench.verdict.ways.rows:
        if file is bench.file and together and bench.fits(stmt):
            lines = [f"{bench.call('share_rows')}({text_of(file, table)}, {text_of(file, numbers)})"]
            bench.after(stmt, lines, "NPU358", "all ranks get the rows that each of them has written")
        elif file is bench.file:
            bench.decide(table, *_TABLE)


def _is_apart(bench: Bench, memory: ast.expr) -> bool:
    """True for a buffer that no wrapper sends: of an object that the program makes, and no part of what is wrapped."""
    if bench.verdict.averaging or all(buffers_apart(bench.models, origin) for origin in bench.wraps):
        return True
    cls = next(of_kind(ast.ClassDef, chain(memory)), None)
    made = [(each.file, each.node) for origin in bench.wraps for each in bench.program.values.get(origin, ())]
    inside = functions_run_from(bench.program, made)
    sites = bench.program.call_sites.get(cls, []) if cls is not None else []
    return bool(sites) and enclosing_function(memory) not in inside


def _combined(bench: Bench) -> Iterator[ast.Attribute]:
    """Gradients that are put together where the passes go back, in front of their mean over the ranks."""
    if bench.verdict.averaging:
        backwards = (call for at, call in bench.training.backwards if at is bench.file)
        for function in dict.fromkeys(enclosing_function(call) or bench.file.scan.tree for call in backwards):
            yield from set_anew(function)


def _remark_states(bench: Bench, memory: ast.expr | None, tables: set[str]) -> None:
    """One remark for the states that a function moves, but for a memory and tables, of which we speak apart."""
    code, message, help_ = _STATE
    about = next(of_kind(ast.ClassDef, chain(memory)), None) if memory is not None else None
    tables.add(last_name(base_of(memory)) if memory is not None else "")
    states = [(slot[2], move) for slot, (move, *_) in reversed(bench.verdict.states) if move.file is bench.file]
    places = {enclosing_function(move.stmt): (name, move.stmt) for name, move in states
              if name not in tables and about not in chain(move.stmt)}  # fmt: skip
    for name, stmt in sorted(places.values(), key=lambda each: begins(each[1])):
        # A mean over the ranks is none of one key.
        keys = (each.slice for each in getattr(stmt, "targets", ()) if isinstance(each, ast.Subscript))
        keyed = any(map(bench.varies, keys))
        bench.decide(stmt, code, message.format(name=name), _BY_KEY if keyed else help_)


def remark_mathematics(bench: Bench) -> None:
    """One remark for each of these in the file on the bench."""
    file = bench.file
    kept = bench.verdict.ways.kept
    queue = next(kept.queues(file), None) if kept is not None else None
    tables = {last_name(rows.table) for rows, _ in bench.verdict.ways.rows}
    if (memory := next(memories(file, tables), queue)) is not None:
        each = memory is queue or _is_apart(bench, memory)
        code, lost, own, help_ = _MEMORY
        bench.decide(memory, code, own if each else lost, help_)
    _remark_states(bench, memory, tables)
    for every, why in ((over_the_batch(file), _LOSS), (_combined(bench), _SURGERY)):
        if (compared := next(every, None)) is not None:
            bench.decide(compared, *why)
    called = [(call, last_name(call.func)) for call in by_place(file.scan.calls)]
    steps = (call for call, name in called if name == "first_step" and bench.training.in_region(file, call))
    if (step := next(steps, None)) is not None:
        bench.remark(step, *_TWO_STEPS)
    norms = (call for call, name in called if name.startswith("BatchNorm"))
    if (norm := next(norms, None)) is not None:
        bench.remark(norm, *_NORM)
    for at, loop, loaders in bench.training.loops:
        if at is file and any(map(bench.verdict.shares.has, loaders)):
            for node in carried(bench.models, file, loop):
                code, message, help_ = _CARRIED
                bench.remark(node, code, message.format(name=node.id), help_)
