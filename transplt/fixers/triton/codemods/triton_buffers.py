"""The memories of a core: kernels whose tiles do not fit them, and tiles with a last axis under 32 bytes.

What is counted: fixers/triton/reader/live_tiles.py, an estimate of what the compiler takes.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.fitting import Overflow, Room, overflow_of, passed_over
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.live_tiles import Lives, lives_of
from transplt.fixers.triton.reader.refused import lines
from transplt.fixers.triton.reader.tiles import Model, model_of
from transplt.fixers.triton.reader.values import ONE, WIDTHS
from transplt.program.programs import programs_of
from transplt.rules.triton import memories_of

fixer = Fixer(__name__, code="NPU574", rank=269, edits=False, needs=(b"triton",), words=("triton",))
_ALIGNED = "NPU575"
#: Bytes of which the last axis of a tile is made a multiple (docs/en/programming_guide.md of triton-ascend).
_ALIGNMENT = 32


@fixer.on(ast.Module)
def buffers(work: Work, tree: ast.Module) -> Finds:
    """Report the kernels of the file that need more than the card's cores have."""
    own = programs_of(work.project).own(work.file)
    memories = memories_of(work.settings.hardware)
    room = Room(*memories) if memories else None
    for kernel in kernels_in(own):
        model = model_of(kernel, work.project)
        if room is not None:
            yield from _overflows(work, kernel, lives_of(model), room)
        yield from _narrow(work, kernel, model)


def _overflows(work: Work, kernel: Kernel, lives: Lives, room: Room) -> Finds:
    found = overflow_of(lives, work.project, room)
    if found is not None:
        if found.sums:
            say, where = f"a product of kernel {kernel.name} adds up", f"L0C of a cube core has {room.sums}"
            do = "use smaller blocks: rows times columns of a float32 sum"
        else:
            say = f"the tiles of kernel {kernel.name} that live here take"
            where = f"a core has {room.tiles}"
            do = "loop over smaller parts of the block (BLOCK_SUB), or use a smaller block"
        yield work.note(
            found.node,
            fixer.code,
            f"{say} about {_when(found)}: {where} bytes",
            api="triton",
            level=Level.MANUAL if found.sure else Level.INFO,
            effort=Effort.MEDIUM if found.sure else None,
            help=do,
        )
        return
    for setting, over in passed_over(lives, work.project, room):
        if setting.node is not None:
            yield work.note(
                setting.node,
                fixer.code,
                f"kernel {kernel.name} takes about {_when(over)}: a core has {room.sums if over.sums else room.tiles} "
                "bytes, so the autotuner skips this configuration",
                api="triton.Config",
                level=Level.INFO,
                help="remove it, and add smaller blocks",
            )


def _when(found: Overflow) -> str:
    sizes = " and ".join(f"{name} = {size}" for name, size in sorted(found.sizes.items()))
    if not found.names:
        return f"{found.bytes} bytes with {sizes}"
    names = " * ".join(found.names)
    given = f" (with {sizes})" if sizes else ""
    return f"{int(found.each)} bytes for each of {names} elements{given}, too many from {names} = {found.least} on"


def _narrow(work: Work, kernel: Kernel, model: Model) -> Finds:
    """Reads whose rows are shorter than what the card moves at a time."""
    found = []
    for each in model.operations:
        value = each.result
        if each.name != "load" or not value.is_tile or value.shape is None or len(value.shape) < 2:
            continue
        last, count = value.shape[-1], value.count
        width = WIDTHS.get(value.dtype, 0)
        length = last.known if last is not None else None
        if length and width and (length * width) % _ALIGNMENT and count is not None and count != last and last != ONE:
            found.append((each, length * width))
    if found:
        yield work.note(
            found[0][0].node,
            _ALIGNED,
            f"the last axis of a tile has {found[0][1]} bytes, and an NPU fills each row up to a multiple of "
            f"{_ALIGNMENT}: kernel {kernel.name}, {lines([each.node for each, _ in found])}",
            api="triton.language.load",
            level=Level.INFO,
            help="load it as one axis and reshape, or transpose it so that the long axis is the last",
        )
