"""`torch.npu.set_compile_mode(jit_compile=False)` in the main file: operators come from binaries."""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.entry import write_below_imports

fixer = Fixer(__name__, code="NPU752", rank=210, theme="tune:compile-mode")

_LINE = "npu.set_compile_mode(jit_compile=False)"
_ALREADY = (b"set_compile_mode", b"jitCompile")


@on_file(fixer, writer_for)
def operators_from_binaries(work: Work, writer: Writer) -> None:
    """Write the switch unless the program has one."""
    message = "operators are precompiled instead of compiled for each shape"
    write_below_imports(writer, _LINE, _ALREADY, fixer.code, message)
