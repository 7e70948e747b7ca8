"""`step-time`: prints the time of a step and the throughput after each pass over the data, without the first steps."""

from __future__ import annotations

from collections.abc import Sequence

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import torch_name, writer_for
from transplt.fixers.tunings.instruments import MeasuredLoop, above, lines, measured_loops

fixer = Fixer(__name__, code="NPU780", rank=620, theme="tune:step-time", on_request=True)

#: Steps that are not timed: kernels are loaded and memory is allocated in them.
SKIPPED = 5
_MESSAGE = "the time per step, printed after each epoch"


@on_file(fixer, writer_for)
def clocks(work: Work, writer: Writer) -> None:
    """Write the clock around every loop over batches."""
    written = b"timed_steps" in work.source.utf8
    if not written and (found := measured_loops(writer, fixer.code, "step time")):
        _write(writer, found)


def _write(writer: Writer, found: Sequence[MeasuredLoop]) -> None:
    torch, time = torch_name(writer), writer.module("time", "time", "clock")
    count, start = writer.new_name("timed_steps"), writer.new_name("timed_from")
    each = writer.new_name("step_time")
    begin = lines(
        writer,
        f"if {count} == {SKIPPED}:",
        f"    {torch}.npu.synchronize()",
        f"    {start} = {time}.perf_counter()",
        f"{count} += 1",
    )
    for place in found:
        loader = place.batches.loader
        rate = f"{{{loader}.batch_size / {each}:.1f}} samples/s" if loader else f"{{1 / {each}:.2f}} steps/s"
        end = lines(
            writer,
            f"if {count} > {SKIPPED}:",
            f"    {torch}.npu.synchronize()",
            f"    {each} = ({time}.perf_counter() - {start}) / ({count} - {SKIPPED})",
            f'    print(f"step time {{{each} * 1000:.1f}} ms, {rate}")',
        )
        above(writer, place.loop, [f"{count} = 0"], fixer.code, _MESSAGE)
        above(writer, place.loop.body[0], begin, fixer.code, _MESSAGE)
        writer.after(place.loop, end, fixer.code, _MESSAGE)
