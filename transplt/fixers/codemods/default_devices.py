"""Calls of libraries that mean CUDA where they are told no device, and fall to the CPU or switch something off.

No word of CUDA stands in such a call. What they are, and what names the NPU: rules/support/default_devices.json.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import with_keyword
from transplt.edits.work import Work
from transplt.rules.default_devices import default_devices, words
from transplt.syntax.nodes import keyword_of, lacks

fixer = Fixer(__name__, code="NPU149", rank=250, needs=tuple(each.encode() for each in words()), words=words())
#: Where nothing stops: another number comes out, or the CPU computes it.
_SILENT = "NPU148"


@fixer.on(ast.Call, name=tuple(default_devices()))
def no_device(work: Work, call: ast.Call) -> Finds:
    """Name the NPU in a call that means CUDA without a device, where the library takes it; else say so."""
    yield from _uses_a_default(work, call, work.names.qualified(call.func) or "")


@fixer.on(ast.Call, last={name.rpartition(".")[2] for name in default_devices()})
def brought_by_a_star(work: Work, call: ast.Call) -> Finds:
    """The same for a name that nothing in the file gives but `from timm.utils import *`; a later star may hide it."""
    func, stars = call.func, work.scan.root.stars
    if isinstance(func, ast.Name) and stars and work.names.lookup(func.id, work.scan.scope_of(func)) is None:
        for star in dict.fromkeys(stars):
            yield from _uses_a_default(work, call, f"{star}.{func.id}", certain=star == stars[-1])


def _uses_a_default(work: Work, call: ast.Call, full: str, *, certain: bool = True) -> Finds:
    row = default_devices().get(full)
    if row is None or work.defines_package(full):
        return
    given = ((keyword_of(call, name), value) for name, value in row.unless.items())
    if any(isinstance(node, ast.Constant) and node.value is value for node, value in given):
        return  # another argument says that it uses no device
    missing = lacks(call, row.argument, row.position)
    if missing is False:
        return
    code = _SILENT if row.silent else fixer.code
    takes = row.writes and row.taken_by(work.settings.pins)
    if takes and row.writes.startswith("torch."):  # it has to mean torch in the scope of the call
        takes = work.names.resolve("torch", work.scan.scope_of(call)) == "torch"
    if certain and missing and takes and work.share(call):
        message = f"{row.message}: {row.argument}={row.writes} added"
        new = with_keyword(row.argument, row.writes)
        yield Edit(call, code, message, new, api=full, writes_npu=True)
    else:
        yield work.note(call, code, row.message, api=full, help=row.help)
