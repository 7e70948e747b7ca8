"""What set a number of an optimizer, such as its learning rate, otherwise than in the original."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Place, Training


def of_number(first: Difference, one: Training, other: Training, root: Path) -> Difference:
    """What set a number of the optimizer: a scheduler behind the last step, an assignment, or the line that made it."""
    lines = other.of("scheduler")
    if first.step is not None and first.step > 1 and lines:
        return replace(first, place=lines[-1].place, cause="", event=True)
    begun = [training.of("optimizer")[:1] for training in (one, other)]
    if all(begun) and begun[0][0].fields["hyper"] == begun[1][0].fields["hyper"]:
        assigned = assignment(other, root, str(first.figure[-1]))
        if assigned is not None:
            return replace(first, place=assigned, original=None, cause="", event=True)
    made, origin = (training.optimizers.get(int(first.figure[1])) for training in (other, one))
    place = made.place if made is not None else first.place
    return replace(first, place=place, original=origin.place if origin is not None else None, cause="", event=True)


def assignment(training: Training, root: Path, name: str) -> Place | None:
    """The first line that assigns to the number of a group (`group["lr"] = ...`), in the files that train."""
    for path in dict.fromkeys(event.place.path for event in training.of("step") if event.place is not None):
        try:
            tree = ast.parse(read_regular(root / path, SOURCE))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        lines = [node.lineno for node in ast.walk(tree) if _is_number(node, name) and isinstance(node.ctx, ast.Store)]
        if lines:
            return Place(path, min(lines))
    return None


def _is_number(node: ast.AST, name: str) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == name
