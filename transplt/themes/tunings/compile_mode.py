"""`torch.npu.set_compile_mode(jit_compile=False)` in the main file: operators come from binaries."""

from __future__ import annotations

from transplt.edits.writing import Writer
from transplt.themes.tunings.entry import write_below_imports

CODE = "NPU752"


def plan(writer: Writer, value: str) -> None:
    """Write the switch unless the program has one."""
    write_below_imports(
        writer,
        "npu.set_compile_mode(jit_compile=False)",
        (b"set_compile_mode", b"jitCompile"),
        CODE,
        "operators come from binaries instead of being compiled for each shape",
    )
