"""`profiler=N-M`: torch_npu.profiler around the steps N to M of the training.

Behind the steps, each after a colon, stand what is recorded besides and where it goes: `shapes`, `memory` and `stacks`
of operators, `simple` for the kernels of the NPU alone, `level=none|0|1|2` of CANN, `to=FOLDER`. Sources: the profiling
section of the Ascend PyTorch porting guide; torch_npu/profiler/profiler.py and experimental_config.py.
"""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import value_of, writer_for
from transplt.fixers.tunings.instruments import MeasuredLoop, above, global_lines, lines, only_one

_OPTION = r"shapes|memory|stacks|simple|level=(?:none|[012])|to=[\w./-]+"
_ONCE = r"(?!.*:(shapes|memory|stacks|simple|level|to)(?![^:=]).*:\1(?![^:=]))"
fixer = Fixer(__name__, code="NPU781", rank=630, theme="tune:profiler", on_request=True,
              value=rf"(?a:{_ONCE}[1-9]\d*-[1-9]\d*(?::(?:{_OPTION}))*)", example="5-10:shapes:level=1")  # fmt: skip

FOLDER = "npu_profile"
_RECORDED = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}


@on_file(fixer, writer_for)
def profiled_steps(work: Work, writer: Writer) -> None:
    """Start the profiler before the first pass over the data, step it with each step, stop it after the last pass."""
    written = b"torch_npu.profiler" in work.source.utf8
    if not written and (place := only_one(writer, fixer.code, "profiler")) is not None:
        steps, *options = value_of(work, fixer).split(":")
        first, last = map(int, steps.split("-"))
        given = {name: value for name, _, value in (option.partition("=") for option in options)}
        _write(writer, place, first, last, given)


def _write(writer: Writer, place: MeasuredLoop, first: int, last: int, options: dict[str, str]) -> None:
    active, folder = last - first + 1, options.get("to", FOLDER)
    message = f"the steps {first} to {last} are profiled into {folder.rstrip('/')}/"
    name = writer.new_name("profiler", "npu_profiler")
    profiler = "torch_npu.profiler"
    recorded = [f"    {_RECORDED[option]}=True," for option in _RECORDED if option in options]
    if "level" in options:
        level = f"{profiler}.ProfilerLevel.Level{options['level'].replace('none', '_none')}"
        recorded.append(f"    experimental_config={profiler}._ExperimentalConfig(profiler_level={level}),")
    kinds = ("NPU",) if "simple" in options else ("CPU", "NPU")
    above(
        writer,
        place.outermost,
        lines(
            writer,
            *global_lines(place, name),
            f"{name} = {profiler}.profile(",
            f"    activities=[{', '.join(f'{profiler}.ProfilerActivity.{kind}' for kind in kinds)}],",
            f"    schedule={profiler}.schedule(wait={first - 1}, warmup=1, active={active}, repeat=1),",
            f'    on_trace_ready={profiler}.tensorboard_trace_handler("{folder}"),',
            *recorded,
            ")",
            f"{name}.start()",
        ),
        fixer.code,
        message,
    )
    above(writer, place.loop.body[0], [f"{name}.step()"], fixer.code, message)
    writer.after(place.outermost, [f"{name}.stop()"], fixer.code, message)
