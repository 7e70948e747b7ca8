"""`torch.npu.config.allow_internal_format = False` in the main file: tensors stay in the plain layout."""

from __future__ import annotations

from transplt.edits.writing import Writer
from transplt.themes.tunings.entry import write_below_imports

CODE = "NPU753"


def plan(writer: Writer, value: str) -> None:
    """Write the switch unless the program has one."""
    write_below_imports(
        writer,
        "npu.config.allow_internal_format = False",
        (b"allow_internal_format", b"ALLOW_INTERNAL_FORMAT"),
        CODE,
        "tensors keep the plain layout: no casts to private formats and back",
    )
