"""`--check-ranks N`: behind each step of an optimizer all ranks are compared, every N steps."""

from __future__ import annotations

from transplt.fixers.distributed.current_program import Bench
from transplt.program.program import text_of

_CODE = "NPU357"


def write_checks(bench: Bench) -> None:
    """A line behind each step of the file on the bench."""
    every = bench.work.settings.check_ranks
    done: set[tuple[int, str]] = set()
    for step in bench.verdict.steps if every else ():
        place, text = step.stmt, text_of(bench.file, step.optimizer)
        if step.file is not bench.file or (id(place), text) in done:
            continue
        done.add((id(place), text))
        if bench.fits(place) and bench.alike(step.call):
            line = f"{bench.call('check_ranks')}({text}, every={every})"
            bench.after(place, [line], _CODE, f"every {every} steps the ranks are compared")
        else:
            bench.remark(
                step.call, _CODE, "the ranks are not compared behind this step", "call npu_port.check_ranks by hand"
            )
