"""`non-blocking`: batches of a loader that pins memory go to the device without the host waiting for the copy.

Only copies to the device: one to the host that does not wait hands out memory that is not written yet. Only batches
that torch collated itself: what a function of the project's own makes may have a `.to` that takes nothing else.
"""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.copies import changed_on_host, copies_of
from transplt.fixers.tunings.data_loader import PLACES, argument_of, is_constant, pinned, should_pin
from transplt.fixers.tunings.keywords import add_keyword
from transplt.fixers.tunings.reading import has_loaders, reading
from transplt.program.training import Loader
from transplt.syntax.nodes import by_place, lacks

fixer = Fixer(__name__, code="NPU758", rank=340, theme="tune:non-blocking", needs=(b".to(", b".cuda(", b".npu("))

_MESSAGE = "the batch is in pinned memory: its copy to the device need not block"


@on_file(fixer, writer_for)
def copies_of_batches(work: Work, writer: Writer) -> None:
    """Look at the loops of a file over loaders that pin memory."""
    if not has_loaders(work):
        return
    found = reading(work)
    pins = work.settings.asks_for("tune:data-loader") and not work.settings.per_file_ignores
    copies: list[ast.Call] = []
    loops = {id(reader.node): reader for readers in found.readers.values() for reader in readers}
    for reader in loops.values():
        if reader.file.path != work.scan.path or reader.loop is None:
            continue
        loaders = found.read_by[id(reader.node)]
        if not all(
            _collated(loader) and (pinned(loader) or (pins and should_pin(found, loader))) for loader in loaders
        ):
            continue
        for call in copies_of(reader.file, reader.loop):
            # It gives where to and at most a dtype by keyword, and nothing about waiting.
            plain = len(call.args) <= 1 and all(keyword.arg in ("device", "dtype") for keyword in call.keywords)
            if plain and not changed_on_host(call, reader.loop):
                copies.append(call)
    for call in by_place(copies):
        add_keyword(writer, call, fixer.code, _MESSAGE, "non_blocking", "True", api="torch.Tensor.to")


def _collated(loader: Loader) -> bool:
    """True for a loader whose batches torch makes: tensors in lists, tuples and dicts."""
    call = loader.call
    collate = lacks(call, "collate_fn", PLACES["collate_fn"]) or is_constant(argument_of(call, "collate_fn"), None)
    return bool(collate) and not is_constant(argument_of(call, "batch_size"), None)
