"""Which optimizers of a piece of training code share a scaler: those that step with the gradients of one loss.

Optimizers whose steps are taken one after the other, each with the gradients of losses of its own, get a scaler each:
the scale that suits one loss may leave the other without a step. Gradients of different scales must not meet in one
parameter: an optimizer stands alone only where its gradients are set to zero behind every foreign backward pass.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from transplt.fixers.amp.scaler_place import Home
from transplt.program.loops import lifted
from transplt.program.optimizers import OptimizerStep
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import begins, block_of, by_place, call_of, inner_nodes, variable
from transplt.syntax.scan import FUNCTIONS, statement

_OPTIMIZER = re.compile(r"optimi[sz]er|optim|opt|solver", re.I)


@dataclass(slots=True, eq=False)
class Part:
    """What one scaler serves: backward passes with the steps that take their gradients.

    `updates` are the statements behind which an iteration has no step left, `exits` the ways out before that. `home` is
    where the scaler is made. `scope` is the function, class or module that this is a part of; `mark` keeps its parts
    apart, empty where there is one.
    """

    program: Program
    file: File
    scope: ast.AST
    backwards: list[ast.Call]
    steps: list[OptimizerStep]
    mark: str = ""
    updates: list[ast.stmt] = field(default_factory=list)
    exits: list[ast.stmt] = field(default_factory=list)
    home: Home | None = None

    @property
    def texts(self) -> set[str]:
        """The spellings of its optimizers."""
        return {text_of(self.file, step.optimizer) for step in self.steps}

    @property
    def first(self) -> ast.Call:
        """Its first backward pass."""
        return self.backwards[0]


def parts_of(
    program: Program, file: File, scope: ast.AST, backwards: list[ast.Call], steps: list[OptimizerStep]
) -> list[Part]:
    """The parts of a piece of training code, by place; one for all where their gradients may meet."""
    whole = [Part(program, file, scope, backwards, steps)]
    groups = _grouped(file, backwards, steps)
    if len(groups) < 2 or any(step.stmt is not statement(step.call) for step in steps):
        return whole
    index = 0
    while index < len(groups) and len(groups) > 1:
        met = _groups_met(program, file, groups, index)
        if met:
            # Gradients of these meet: one scale for all of them.
            runs = [run for at, every in enumerate(groups) if at == index or at in met for run in every]
            groups = [runs, *(every for at, every in enumerate(groups) if at != index and at not in met)]
            index = 0
        else:
            index += 1
    if len(groups) < 2:
        return whole
    parts = [
        Part(program, file, scope, by_place(call for calls, _ in runs for call in calls),
             sorted((step for _, taken in runs for step in taken), key=lambda step: begins(step.call)))
        for runs in groups
    ]  # fmt: skip
    parts.sort(key=lambda part: begins(part.first))
    _mark(parts)
    return parts


def _mark(parts: list[Part]) -> None:
    """`g` of `optimizer_G` and of `self.g_opt`: what sets an optimizer apart from others; `0` for a plain one."""
    for part in parts:
        texts = sorted(part.texts)
        rest = _OPTIMIZER.sub("", texts[0].rpartition(".")[2]).strip("_").lower() if len(texts) == 1 else ""
        part.mark = rest if rest.isidentifier() and rest.isascii() else "0"
    if len({part.mark for part in parts}) < len(parts):
        for index, part in enumerate(parts, 1):
            part.mark = str(index)


_Run = tuple[list[ast.Call], list[OptimizerStep]]


def _grouped(file: File, backwards: list[ast.Call], steps: list[OptimizerStep]) -> list[list[_Run]]:
    """Backward passes with the steps right behind them, those of the same optimizers together; empty if unsure."""
    scopes = {id(enclosing_function(call)): enclosing_function(call) for call in backwards}
    scopes |= {id(enclosing_function(step.call)): enclosing_function(step.call) for step in steps}
    runs: list[_Run] = []
    for scope in scopes.values():
        events: list[tuple[ast.Call, OptimizerStep | None]] = [(call, None) for call in backwards]
        events += [(step.call, step) for step in steps]
        at: _Run = ([], [])
        for call, event in sorted(events, key=lambda item: begins(item[0])):
            if enclosing_function(call) is not scope:
                continue
            if event is not None:
                at[1].append(event)
                continue
            if at[1]:
                runs.append(at)
                at = ([], [])
            at[0].append(call)
        runs.append(at)
    if any(not calls or not taken for calls, taken in runs):
        return []
    groups: list[tuple[set[str], list[_Run]]] = []
    for run in runs:
        texts, every = _texts(file, run[1]), [run]
        for known, others in [group for group in groups if group[0] & texts]:
            texts, every = texts | known, [*others, *every]
        groups = [group for group in groups if not group[0] & texts]
        groups.append((texts, every))
    return [every for _, every in groups]


def _texts(file: File, steps: Sequence[OptimizerStep]) -> set[str]:
    return {text_of(file, step.optimizer) for step in steps}


def _groups_met(program: Program, file: File, groups: list[list[_Run]], index: int) -> set[int]:
    """The other groups whose gradients may be left in a parameter of one when its backward passes begin."""
    steps = [step for _, taken in groups[index] for step in taken]
    found: set[int] = set()
    for text in _texts(file, steps):
        zeroed = _zeroed(program, file, text, steps)
        for calls, _ in groups[index]:
            first = calls[0]
            function = enclosing_function(first)
            clean = [
                begins(node)
                for node in zeroed
                if begins(node) < begins(first)
                and enclosing_function(node) is function
                and lifted(first, block_of(node)) is not None
            ]
            for at, every in enumerate(groups):
                foreign = [call for run, _ in every for call in run if enclosing_function(call) is function]
                if at != index and (not clean or any(max(clean) < begins(call) < begins(first) for call in foreign)):
                    found.add(at)
    return found


def _zeroed(program: Program, file: File, text: str, steps: list[OptimizerStep]) -> list[ast.stmt]:
    """The statements that set the gradients of an optimizer to zero: its own, its model's, or a method's."""
    optimizer = next(step.optimizer for step in steps if text_of(file, step.optimizer) == text)
    models = {
        variable(at.value).rpartition(".")[2]
        for _, value in values_of(program, file, optimizer)
        for at in inner_nodes(value, ast.Attribute)
        if at.attr == "parameters"
    }
    found: list[ast.stmt] = []
    for node in file.scan.attributes.get("zero_grad", ()):
        if call_of(node) is None:
            continue
        base = text_of(file, node.value)
        of_model = isinstance(node.value, (ast.Name, ast.Attribute)) and base.rpartition(".")[2] in models
        if base != text and not of_model:
            continue
        found.append(statement(node))
        function = enclosing_function(node)
        if isinstance(function, FUNCTIONS) and text.startswith("self.") and statement(node) in function.body:
            # `self.reset_grad()`, which sets all of them to zero
            found += [statement(call) for at, call in program.call_sites.get(function, ()) if at is file]
    return found
