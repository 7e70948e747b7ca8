"""`triton`: kernels in Triton loop over their blocks on the cores, and over parts of blocks that are too large."""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.triton.reader.kernels import kernels_in
from transplt.fixers.triton.tunings.cores import CODE, write_core_loops
from transplt.fixers.triton.tunings.parts import write_parts
from transplt.fixers.tuning_writer import writer_for
from transplt.program.programs import programs_of

fixer = Fixer(__name__, code=CODE, rank=490, theme="tune:triton", needs=(b"triton",))


@on_file(fixer, writer_for)
def kernels_on_cores(work: Work, writer: Writer) -> None:
    """Write both into the kernels of a file; the loop over parts stands inside of the other."""
    kernels = kernels_in(programs_of(work.project).own(work.file))
    write_core_loops(writer, kernels)
    write_parts(writer, kernels)
