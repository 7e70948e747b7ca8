"""What went backward through one operator: the gradients of its outputs and, edge by edge, those of its inputs."""

from __future__ import annotations

from typing import Any

import torch

from ..trace.log import quiet
from . import steps
from .entries import entry

#: More nodes between the outputs of a module and its inputs are not searched.
_FAR = 50_000


def edges(values: Any) -> list[Any]:
    """The places in the graph at which the tensors in `values` were made, in order; None for one without gradient."""
    if not torch.is_grad_enabled():
        return []
    found = []
    for value in tensors(values):
        wanted = value.requires_grad and value.is_floating_point()
        found.append(torch.autograd.graph.get_gradient_edge(value) if wanted else None)
    return found


def tensors(values: Any) -> list[Any]:
    """The tensors in nested lists and dicts, in order."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (list, tuple)):
        return []
    return [tensor for value in values for tensor in tensors(value)]


def watch(name: str, parent: str | None, before: list[Any], outputs: Any, keep: Any, frame: Any) -> None:
    """Record the row `name` when the backward pass comes through what lies between `before` and `outputs`."""
    made = [(at, each.grad_fn, each.output_nr) for at, each in enumerate(tensors(outputs)) if each.grad_fn is not None]
    wanted = {(id(edge.node), edge.output_nr): at for at, edge in enumerate(before) if edge is not None}
    made = [each for each in made if (id(each[1]), each[2]) not in wanted]  # what gives its input back did nothing
    if not made or not wanted:
        return
    row = _Row(name, parent, len(tensors(outputs)), keep, before)
    row.place = steps.Place(frame) if frame is not None else None
    for node in {id(node): node for _, node, _ in made}.values():
        places = [(at, number) for at, other, number in made if other is node]
        node.register_prehook(lambda given, places=places: row.given(places, given))
    seen: set[int] = set()
    left = [node for _, node, _ in made]
    while left and len(seen) < _FAR:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        row.kept.append(node)
        reached = []
        for place, (below, number) in enumerate(node.next_functions):
            if below is None:
                continue
            at = wanted.get((id(below), number))
            if at is None:
                left.append(below)
            else:
                reached.append((place, at))
        if reached:
            node.register_hook(lambda to, given, reached=reached: row.passed_on(reached, to))


class _Row:
    """One row of a backward pass; it is there once the first gradient is."""

    def __init__(self, name: str, parent: str | None, outputs: int, keep: Any, before: list[Any]) -> None:
        self.name, self.parent, self.keep = name, parent, keep
        self.step = steps.current
        self.place: steps.Place | None = None
        self.row: dict[str, Any] = {"input": [None] * outputs, "output": [None] * len(before)}
        self.sums: dict[int, Any] = {}
        #: Ids show which node is which, so nodes stay.
        self.kept: list[Any] = list(before)

    def _there(self) -> bool:
        if self.step is not steps.current:
            return False
        if self.name not in self.step.rows:
            steps.add(self.name, self.row, self.parent)
        return True

    def given(self, places: list[tuple[int, int]], gradients: Any) -> None:
        """The gradients of outputs have come."""
        with steps.busy(), quiet():
            if self._there():
                for at, number in places:
                    if number < len(gradients):
                        self.row["input"][at] = entry(gradients[number], f"input.{at}", self.keep)

    def passed_on(self, reached: list[tuple[int, int]], gradients: Any) -> None:
        """The gradients of inputs are known; those that came by several ways add up."""
        with steps.busy(), quiet(), torch.no_grad():
            if not self._there():
                return
            for place, at in reached:
                gradient = gradients[place] if place < len(gradients) else None
                if gradient is None:
                    continue
                known = self.sums.get(at)
                self.sums[at] = total = gradient if known is None else known + gradient
                self.row["output"][at] = entry(total, f"output.{at}", self.keep)
            steps.look_for_overflow(self.name, self.row["input"], self.row["output"], self.place)
