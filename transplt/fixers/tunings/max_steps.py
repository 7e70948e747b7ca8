"""`max-steps=N`: the training ends after N optimizer steps; what comes after it, such as the checkpoint, runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import value_of, writer_for
from transplt.fixers.tunings.instruments import MeasuredLoop, above, first_statement, global_lines, lines, only_one
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU782", rank=610, theme="tune:max-steps", on_request=True,
              value=r"[1-9]\d*", example="100")  # fmt: skip


@on_file(fixer, writer_for)
def last_step(work: Work, writer: Writer) -> None:
    """Count the steps and leave each loop that trains at its head."""
    written = b"train_steps >=" in work.source.utf8
    if not written and (place := only_one(writer, fixer.code, "max-steps")) is not None:
        _write(writer, place, value_of(work, fixer))


def _write(writer: Writer, place: MeasuredLoop, value: str) -> None:
    if any(loop.orelse for loop in (place.loop, *place.around)):
        writer.left(place.loop, "max-steps: a loop has an else branch", "end the loop by hand", fixer.code)
        return
    message = f"training ends after {value} steps"
    name = writer.new_name("train_steps")
    above(writer, place.outermost, [*global_lines(place, name), f"{name} = 0"], fixer.code, message)
    if place.apart and place.function is not None:
        above(writer, first_statement(place.function), [f"global {name}"], fixer.code, message)
    leave = lines(writer, f"if {name} >= {value}:", "    break")
    steps = last_steps(place.batches.steps)
    counted = bool(steps) and writer.fits(*steps)
    for loop in place.around:
        above(writer, loop.body[0], leave, fixer.code, message)
    above(writer, place.loop.body[0], leave if counted else [*leave, f"{name} += 1"], fixer.code, message)
    for step in steps if counted else ():
        writer.after(step, [f"{name} += 1"], fixer.code, message)


def last_steps(steps: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Of the optimizer steps of one pass those that end it: the last, and the last of each branch of an `if`."""
    ordered = sorted(steps, key=lambda node: node.lineno)
    branches = {step: dict(_branches(step)) for step in ordered}
    found = []
    for index, step in enumerate(ordered):
        here = branches[step]
        later = (branches[each] for each in ordered[index + 1 :])
        if all(any(here.get(node, branch) != branch for node, branch in there.items()) for there in later):
            found.append(step)
    return found


def _branches(node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """The `if` statements around a node, and whether it stands in the branch for True."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.If):
            yield above, node in above.body
        node = above
