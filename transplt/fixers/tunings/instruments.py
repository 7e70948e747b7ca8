"""What the tunings that only measure share: a loop of the file, and lines at its places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.shared_lines import indent_unit
from transplt.edits.writer import Writer
from transplt.fixers.around import program_around
from transplt.fixers.tunings.loops import Batches, batch_loops
from transplt.program.cards import on_card
from transplt.program.loops import Loop
from transplt.program.program import enclosing_function
from transplt.syntax.scan import FUNCTIONS


@dataclass(slots=True)
class MeasuredLoop:
    """A loop over batches of the file on the bench, `around` are the loops that train around it, the outermost last.

    `apart` is true where the loops around are those of the caller, `function` is the one that holds the loop then.
    """

    batches: Batches
    loop: Loop
    around: list[Loop]
    apart: bool

    @property
    def outermost(self) -> ast.stmt:
        return (self.around or [self.loop])[-1]

    @property
    def function(self) -> ast.AST | None:
        return enclosing_function(self.loop)


def measured_loops(writer: Writer, code: str, what: str) -> list[MeasuredLoop]:
    """The loops to write at; a finding where no loop is in sight or the lines do not fit. None of a CPU's program."""
    work = writer.work
    program = program_around(work)
    if program is None or not on_card(program):
        return []
    found, lost = batch_loops(work)
    if lost is not None:
        writer.left(lost, f"{what}: the training loop was not found", "add it by hand", code)
    result = []
    for batches in found:
        loops = [batches.loop, *batches.around, *(batches.calls or ())]
        if not writer.fits(*loops, *(loop.body[0] for loop in loops)):
            why = "the first statement of the loop cannot be put on a separate line"
            writer.left(loops[0], f"{what}: {why}", "write each on a separate line", code)
            continue
        result.append(MeasuredLoop(batches, loops[0], loops[1:], bool(batches.calls)))
    return result


def only_one(writer: Writer, code: str, what: str) -> MeasuredLoop | None:
    """The loop of the program's training, all of whose passes this file sees; else findings."""
    found = measured_loops(writer, code, what)
    for place in found:
        if len(found) > 1:
            why = "several loops train here"
        elif place.batches.calls is None:
            why = "the function of this loop is called from another file, or from several places"
        else:
            return place
        writer.left(place.loop, f"{what}: {why}", "add it by hand, before the first pass over the data", code)
    return None


def lines(writer: Writer, *texts: str) -> list[str]:
    """Lines of code in the indentation of the file."""
    unit = indent_unit(writer.work.source, writer.work.scan.tree)
    found = []
    for text in texts:
        bare = text.lstrip(" ")
        found.append(unit * ((len(text) - len(bare)) // 4) + bare)
    return found


def global_lines(place: MeasuredLoop, name: str) -> Sequence[str]:
    """`global name` for a function that gives a variable its value which another one reads."""
    holder = enclosing_function(place.outermost)
    return [f"global {name}"] if place.apart and holder is not None else []


def first_statement(function: ast.AST) -> ast.stmt:
    """The first statement of a function below its docstring."""
    assert isinstance(function, FUNCTIONS)
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    return function.body[1] if is_text and len(function.body) > 1 else first


def above(writer: Writer, node: ast.stmt, texts: Sequence[str], code: str, message: str) -> None:
    """Lines above a statement and its comments."""
    writer.before(node, texts, code, message, above_comments=True)
