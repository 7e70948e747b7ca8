"""`max-steps=N`: the training ends after N optimizer steps; what comes after it, such as the checkpoint, runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from transplt.edits.writing import Writer
from transplt.syntax.scan import parent
from transplt.themes.tunings.instruments import above, first_statement, global_lines, lines, only_one
from transplt.themes.tunings.loops import statement_at
from transplt.themes.tunings.reach import key

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
    found = [statement_at(writer.work, key(writer.work.scan.path, step)) for step in last_steps(place.batches.steps)]
    steps = [step for step in found if step is not None]
    counted = bool(steps) and writer.layout.fits(*steps)
    for loop in place.around:
        above(writer, loop.body[0], leave, CODE, message)
    above(writer, place.loop.body[0], leave if counted else [*leave, f"{name} += 1"], CODE, message)
    for step in steps if counted else ():
        writer.after(step, [f"{name} += 1"], CODE, message)


def last_steps(steps: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Of the optimizer steps of one pass those that end it: the last, and the last of each branch of an `if`."""
    ordered = sorted(steps, key=lambda node: node.lineno)
    return [step for index, step in enumerate(ordered) if all(_exclude(step, later) for later in ordered[index + 1 :])]


def _exclude(first: ast.stmt, second: ast.stmt) -> bool:
    """True when two statements stand in two branches of one `if`."""
    branches = {id(node): branch for node, branch in _branches(first)}
    return any(branches.get(id(node), branch) != branch for node, branch in _branches(second))


def _branches(node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """The `if` statements around a node, and whether it stands in the branch for True."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.If):
            yield above, node in above.body
        node = above
