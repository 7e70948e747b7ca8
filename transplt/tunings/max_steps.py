"""`max-steps=N`: the training ends after N optimizer steps; what comes after it, such as the checkpoint, runs."""

from __future__ import annotations

from transplt.tunings.instruments import above, first_statement, global_lines, lines, only_one
from transplt.tunings.loops import statement_at
from transplt.tunings.reach import key
from transplt.writing import Writer

CODE = "NPU782"


def plan(writer: Writer, value: str) -> None:
    """Count the steps and leave each loop that trains at its head."""
    if b"train_steps >=" in writer.work.source.utf8:
        return
    place = only_one(writer, CODE, "max-steps")
    if place is None:
        return
    if any(loop.orelse for loop in (place.loop, *place.around)):
        writer.left(place.loop, "max-steps: a loop has an else branch", "leave the loop by hand", CODE)
        return
    message = f"the training ends after {value} steps"
    name = writer.new_name("train_steps")
    above(writer, place.outermost, [*global_lines(place, name), f"{name} = 0"], CODE, message)
    if place.apart and place.function is not None:
        above(writer, first_statement(place.function), [f"global {name}"], CODE, message)
    leave = lines(writer, f"if {name} >= {value}:", "    break")
    steps = place.batches.steps
    step = statement_at(writer.work, key(writer.work.scan.path, steps[-1])) if steps else None
    counted = step is not None and writer.layout.fits(step)
    for loop in place.around:
        above(writer, loop.body[0], leave, CODE, message)
    above(writer, place.loop.body[0], leave if counted else [*leave, f"{name} += 1"], CODE, message)
    if counted and step is not None:
        writer.after(step, [f"{name} += 1"], CODE, message)
