"""`profiler=N-M`: torch_npu.profiler around the steps N to M of the training."""

from __future__ import annotations

from transplt.edits.writing import Writer
from transplt.themes.tunings.instruments import above, global_lines, lines, only_one

CODE = "NPU781"
FOLDER = "npu_profile"


def plan(writer: Writer, value: str) -> None:
    """Start the profiler before the first pass over the data, tell it each step, stop it after the last pass."""
    first, last = map(int, value.split("-"))
    if b"torch_npu.profiler" in writer.work.source.utf8:
        return
    place = only_one(writer, CODE, "profiler")
    if place is None:
        return
    active = last - first + 1
    message = f"the steps {first} to {last} are profiled into {FOLDER}/"
    name = writer.new_name("profiler", "npu_profiler")
    activity = "torch_npu.profiler.ProfilerActivity"
    above(
        writer,
        place.outermost,
        lines(
            writer,
            *global_lines(place, name),
            f"{name} = torch_npu.profiler.profile(",
            f"    activities=[{activity}.CPU, {activity}.NPU],",
            f"    schedule=torch_npu.profiler.schedule(wait={first - 1}, warmup=1, active={active}, repeat=1),",
            f'    on_trace_ready=torch_npu.profiler.tensorboard_trace_handler("{FOLDER}"),',
            ")",
            f"{name}.start()",
        ),
        CODE,
        message,
    )
    above(writer, place.loop.body[0], [f"{name}.step()"], CODE, message)
    writer.after(place.outermost, [f"{name}.stop()"], CODE, message)
