"""The statements of the forward pass and the loss: those on which the argument of a backward pass depends."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.fixers.amp.reading import own_nodes, reads, runs_network, writes
from transplt.program.loops import LOOPS
from transplt.program.program import File, Program
from transplt.syntax.nodes import begins, block_of, of_kind
from transplt.syntax.scan import FUNCTIONS, parent, statement


def forward_regions(
    program: Program,
    file: File,
    losses: Iterable[ast.expr],
    barriers: set[int],
    known: set[str],
) -> tuple[list[list[ast.stmt]], list[ast.expr]]:
    """Neighbouring statements from the forward pass to the loss, and the losses for which there are none.

    `barriers` are ids of the calls that may not stand under autocast (backward, step); `known` are variables that hold
    networks.
    """
    wanted: dict[int, tuple[list[ast.stmt], set[int]]] = {}
    missing: list[ast.expr] = []
    for loss in losses:
        found = _contributing(program, file, loss, barriers, known)
        if not found:
            missing.append(loss)
        for block, indices in found:
            wanted.setdefault(id(block), (block, set()))[1].update(indices)
    regions: list[list[ast.stmt]] = []
    for block, indices in wanted.values():
        regions += _runs(program, file, block, indices, barriers, known)
    regions.sort(key=lambda region: begins(region[0]))
    return regions, missing


def with_inline(regions: list[list[ast.stmt]], losses: list[ast.expr], barriers: set[int]) -> list[list[ast.stmt]]:
    """The regions with the statements `criterion(model(x), y).backward()`, each at the end of what leads up to it."""
    found = list(regions)
    for loss in losses:
        stmt = statement(loss)
        block = block_of(stmt)
        end = block.index(stmt)
        region = next((item for item in reversed(found) if item[0] in block[:end]), None)
        if region is None or any(holds(item, barriers) for item in block[block.index(region[0]) : end]):
            found.append([stmt])
        else:
            found[found.index(region)] = block[block.index(region[0]) : end + 1]
    return sorted(found, key=lambda item: begins(item[0]))


def is_compute(program: Program, file: File, node: ast.AST, known: set[str]) -> bool:
    """True for code that runs a network or a loss."""
    return any(runs_network(program, file, at, known) for at in of_kind(ast.Call, own_nodes(node)))


def holds(node: ast.AST, ids: set[int]) -> bool:
    """True when one of some nodes stands in a piece of code."""
    return any(id(at) in ids for at in ast.walk(node))


def _contributing(
    program: Program, file: File, loss: ast.expr, barriers: set[int], known: set[str]
) -> list[tuple[list[ast.stmt], set[int]]]:
    """Blocks with the indices of the statements that make a loss, out to the loop in which a network runs for it."""
    needed = reads(loss)
    found: list[tuple[list[ast.stmt], set[int]]] = []
    at = statement(loss)
    computes = False
    while True:
        block = block_of(at)
        place = block.index(at) if at in block else 0
        indices: set[int] = set()
        for index in range(place - 1, -1, -1):
            item = block[index]
            if isinstance(item, (*FUNCTIONS, ast.ClassDef)) or holds(item, barriers):
                continue
            if writes(item) & needed:
                indices.add(index)
                needed |= reads(item)
                computes = computes or is_compute(program, file, item, known)
        if indices:
            found.append((block, indices))
        above = parent(at)
        if isinstance(above, (ast.Module, *FUNCTIONS, ast.ClassDef)) or (isinstance(above, LOOPS) and computes):
            return found if computes else []
        if isinstance(above, (ast.For, ast.AsyncFor)):
            needed |= reads(above.iter)
        at = statement(above)  # of an except clause or a case


def _runs(
    program: Program,
    file: File,
    block: list[ast.stmt],
    indices: set[int],
    barriers: set[int],
    known: set[str],
) -> list[list[ast.stmt]]:
    """Contributing statements as runs without a barrier, each from its first network to its last statement."""
    runs: list[list[int]] = []
    open_run: list[int] = []
    for index in range(min(indices), max(indices) + 1):
        if holds(block[index], barriers):
            runs.append(open_run)
            open_run = []
        elif index in indices:
            open_run.append(index)
    runs.append(open_run)
    found = []
    for run in runs:
        while run and not is_compute(program, file, block[run[0]], known):
            run = run[1:]
        if run:
            found.append(block[run[0] : run[-1] + 1])
    return found
