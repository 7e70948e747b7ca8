"""What set a number of an optimizer, such as its learning rate, otherwise than in the original."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from transplt.proof.prove.found import Difference
from transplt.proof.prove.rank_conditions import parsed, read_source
from transplt.proof.prove.training import Place, Training


def of_number(first: Difference, one: Training, other: Training, root: Path) -> Difference:
    """What set a number of the optimizer: a scheduler behind the last step, an assignment, or the line that made it."""
    which, name = int(first.figure[1]), str(first.figure[-1])
    begun = [next((each for each in side.of("optimizer") if each.fields["o"] == which), None) for side in (one, other)]
    lines = other.of("scheduler")
    groups = [event.fields["hyper"] if event is not None else [] for event in begun]
    alike = all(left.get(name) == right.get(name) for left, right in zip(*groups, strict=False))
    if first.step is not None and first.step > 1 and lines and alike:
        place, original = _of_schedule(first, one, other)
        return replace(first, place=place, original=original or first.original, cause="", event=True)
    assigned = assignment(other, root, name) if None not in begun and groups[0] == groups[1] else None
    if assigned is not None:
        return replace(first, place=assigned, original=None, cause="", event=True)
    made, origin = (training.optimizers.get(which) for training in (other, one))
    place = made.place if made is not None else first.place
    return replace(first, place=place, original=origin.place if origin is not None else None, cause="", event=True)


def _of_schedule(first: Difference, one: Training, other: Training) -> tuple[Place | None, Place | None]:
    """The line that made the last schedule (which takes a step of its own then) where it has turned as often as in the
    original, or where a library turns it; otherwise the line that turned it. That of the original, too, if it is known.
    """
    turned = []
    for side in (other, one):
        step = side.step(int(first.figure[1]), (first.step or 1) - 1)
        turned.append([each for each in side.of("scheduler") if step is None or each.index < step.index])
    ours, theirs = turned
    if not ours:
        return other.of("scheduler")[-1].place, None
    which = ours[-1].fields.get("s")
    by_library = ours[-1].place is not None and ours[-1].place in {each.place for each in other.of("step")}
    if len(ours) == len(theirs) or by_library:
        made = [next((each.place for each in side if each.fields.get("s") == which), None) for side in turned]
        return made[0], made[1]
    return ours[-1].place, None


def assignment(training: Training, root: Path, name: str) -> Place | None:
    """The first line that assigns to the number of a group (`group["lr"] = ...`), in the files that train."""
    return _stored(training, root, lambda node: isinstance(node, ast.Subscript) and (
        isinstance(node.slice, ast.Constant) and node.slice.value == name))  # fmt: skip


def writing(training: Training, root: Path, name: str) -> Place | None:
    """The first line that assigns to an attribute of a network, or to rows of it."""
    return _stored(training, root, lambda node: name in (
        getattr(node, "attr", ""), getattr(getattr(node, "value", None), "attr", "")))  # fmt: skip


def _stored(training: Training, root: Path, wanted: Callable[[ast.AST], bool]) -> Place | None:
    """The first line that assigns to what is wanted, in the files that train."""
    events = training.of("step", "backward", "evaluated", "optimizer")
    for path in dict.fromkeys(event.place.path for event in events if event.place is not None):
        nodes = ast.walk(parsed(read_source(str(root / path))))
        lines = [node.lineno for node in nodes if isinstance(node, (ast.Subscript, ast.Attribute))
                 and isinstance(node.ctx, ast.Store) and wanted(node)]  # fmt: skip
        if lines:
            return Place(path, min(lines))
    return None
