"""The second part of `triton`: a block of elements that is too large for the unified buffer is gone through in parts.

Source: triton-ascend, docs/en/migration_guide/migrate_from_gpu.md (BLOCK_SIZE_SUB), and performance_guidelines.md (more
and smaller tiles let reading, computing and writing overlap).
"""

from __future__ import annotations

import ast

from transplt.edits.ignores import Ignores
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.triton.reader.elements import launches_of
from transplt.fixers.triton.reader.elementwise import Block, block_of_elements
from transplt.fixers.triton.reader.fitting import USUAL, Room, overflow_of
from transplt.fixers.triton.reader.kernels import Kernel
from transplt.fixers.triton.reader.launches import Launch
from transplt.fixers.triton.reader.live_tiles import Lives, lives_of
from transplt.fixers.triton.reader.program_order import order_matters, reach_of
from transplt.fixers.triton.reader.tiles import model_of
from transplt.fixers.tuning_writer import touched
from transplt.rules.triton import memories_of
from transplt.syntax.scan import parent

CODE = "NPU775"
#: Parts are at least that large: smaller ones would be read in many small pieces.
_LEAST, _MOST = 256, 1 << 15


def write_parts(writer: Writer, kernels: list[Kernel]) -> None:
    """Split the blocks of the kernels of a file that overflow the buffer of the card."""
    work = writer.work
    memories = memories_of(work.settings.hardware)
    if memories is None:
        return
    room = Room(*memories)
    for kernel in kernels:
        lives = lives_of(model_of(kernel, work.project))
        over = overflow_of(lives, work.project, room)
        own = launches_of(kernel, work.project)
        if over is None or not own:
            continue
        block = _block(work, writer, kernel, own)
        # Parts change no result, and a small block is one part: they may be needless.
        if isinstance(block, Block) and (over.sure or (over.names == (block.size,) and over.least <= USUAL)):
            _write(writer, kernel, block, _size_of_parts(lives, block.size, room.tiles))
        elif isinstance(block, str) and over.sure:
            message = f"{kernel.name} keeps its tiles, which are too large for a core: {block}"
            call = next((each for each in ast.walk(over.node) if isinstance(each, ast.Call)), over.node)
            writer.remark(call, CODE, message, "use a smaller block, or process it in parts by hand")


def _block(work: Work, writer: Writer, kernel: Kernel, own: list[Launch]) -> Block | str:
    """The block of a kernel that is to be split, or why it is not."""
    reach = reach_of(kernel, work.project)
    block = block_of_elements(kernel, reach)
    if isinstance(block, str):
        return block
    if why := order_matters(kernel, reach, own):
        return why
    if Ignores(work).reason(CODE, kernel.node.lineno, kernel.node.end_lineno or kernel.node.lineno):
        return "a comment switches edits off there"
    if any(touched(writer, call) for call in block.ranges) or not writer.fits(*block.statements):
        return "it is already edited"
    return block


def _size_of_parts(lives: Lives, name: str, room: int) -> int:
    """The largest power of 2 that takes half of the buffer: the next part is read while one is computed with."""
    size = _MOST
    others = dict.fromkeys(lives.names, 1)
    while size > _LEAST and lives.peak({**others, name: size}).bytes > room // 2:
        size //= 2
    return size


def _write(writer: Writer, kernel: Kernel, block: Block, size: int) -> None:
    message = f"{kernel.name} processes its block in parts of {size} elements, which fit into the unified buffer"
    work = writer.work
    part = writer.free_name(f"{block.size}_SUB", f"{block.size}_PART")
    start = writer.free_name("sub", "sub_start", "part_start")
    language = work.text(block.ranges[0].func).rpartition(".")[0]
    # as the file names it where it imports the operations by their names
    given = (each.node.annotation for each in kernel.parameters if each.constexpr)
    named = next((work.text(each) for each in given if each is not None), "constexpr")
    constexpr = f"{language}.constexpr" if language else named
    first = block.statements[0]
    line = f"{part}: {constexpr} = {block.size} if {block.size} < {size} else {size}"
    writer.before(first, [line], CODE, message)
    writer.wrap(block.statements, f"for {start} in range(0, {block.size}, {part}):", CODE, message)
    for call in block.ranges:
        text = f"{start} + {work.text(call.func)}(0, {part})"
        above = parent(call)
        plain = isinstance(above, (ast.Assign, ast.AnnAssign)) or (
            isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add)
        )
        writer.rewrite(call, CODE, message, text if plain else f"({text})", apart=True)
