"""`torch.npu.config.allow_internal_format = False` in the main file: tensors stay in the plain layout."""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.entry import write_below_imports

fixer = Fixer(__name__, code="NPU753", rank=220, theme="tune:internal-format")

_LINE = "npu.config.allow_internal_format = False"
_ALREADY = (b"allow_internal_format", b"ALLOW_INTERNAL_FORMAT")


@on_file(fixer, writer_for)
def plain_layout(work: Work, writer: Writer) -> None:
    """Write the switch unless the program has one."""
    message = "tensors keep the default layout: no casts to private formats and back"
    write_below_imports(writer, _LINE, _ALREADY, fixer.code, message)
