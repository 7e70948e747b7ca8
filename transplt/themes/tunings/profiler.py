"""`profiler=N-M`: torch_npu.profiler around the steps N to M of the training."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.themes.tunings.instruments import MeasuredLoop, above, global_lines, lines, only_one
from transplt.themes.tunings.writer import value_of, writer_for

fixer = Fixer(__name__, code="NPU781", rank=630, theme="tune:profiler", on_request=True,
              value=r"[1-9]\d*-[1-9]\d*", example="5-10")  # fmt: skip

FOLDER = "npu_profile"


@fixer.on(ast.Module)
def profiled_steps(work: Work, tree: ast.Module) -> Finds:
    """Start the profiler before the first pass over the data, tell it each step, stop it after the last pass."""
    if b"torch_npu.profiler" not in work.source.utf8 and (writer := writer_for(work, fixer)):
        place = only_one(writer, fixer.code, "profiler")
        if place is not None:
            first, last = map(int, value_of(work, fixer).split("-"))
            _write(writer, place, first, last)
        yield from writer.found


def _write(writer: Writer, place: MeasuredLoop, first: int, last: int) -> None:
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
        fixer.code,
        message,
    )
    above(writer, place.loop.body[0], [f"{name}.step()"], fixer.code, message)
    writer.after(place.outermost, [f"{name}.stop()"], fixer.code, message)
