"""`step-time`: prints the time of a step and the throughput after each pass over the data, without the first steps."""

from __future__ import annotations

from transplt.edits.writing import Writer
from transplt.themes.tunings.instruments import above, lines, places
from transplt.themes.tunings.spelling import torch_name

CODE = "NPU780"
#: Steps that are not timed: kernels are loaded and memory is allocated in them.
SKIPPED = 5
_MESSAGE = "the time of a step, printed after each pass over the data"


def plan(writer: Writer, value: str) -> None:
    """Write the clock around every loop over batches."""
    if b"timed_steps" in writer.work.source.utf8:
        return
    found = places(writer, CODE, "step time")
    if not found:
        return
    torch, time = torch_name(writer), writer.module("time", "time", "clock")
    count, start = writer.new_name("timed_steps"), writer.new_name("timed_from")
    each = writer.new_name("step_time")
    for place in found:
        loader = place.batches.loader
        rate = f"{{{loader}.batch_size / {each}:.1f}} samples/s" if loader else f"{{1 / {each}:.2f}} steps/s"
        above(writer, place.loop, [f"{count} = 0"], CODE, _MESSAGE)
        above(
            writer,
            place.loop.body[0],
            lines(
                writer,
                f"if {count} == {SKIPPED}:",
                f"    {torch}.npu.synchronize()",
                f"    {start} = {time}.perf_counter()",
                f"{count} += 1",
            ),
            CODE,
            _MESSAGE,
        )
        writer.after(
            place.loop,
            lines(
                writer,
                f"if {count} > {SKIPPED}:",
                f"    {torch}.npu.synchronize()",
                f"    {each} = ({time}.perf_counter() - {start}) / ({count} - {SKIPPED})",
                f'    print(f"step time {{{each} * 1000:.1f}} ms, {rate}")',
            ),
            CODE,
            _MESSAGE,
        )
