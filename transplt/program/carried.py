"""What a model gets from the batch before: ranks whose batches follow one another otherwise carry something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.loops import Loop
from transplt.program.models import Models
from transplt.syntax.asks import by_place
from transplt.syntax.files import File
from transplt.syntax.scan import FUNCTIONS, chain


def carried(models: Models, file: File, loop: Loop) -> Iterator[ast.Name]:
    """What a model gets from the batch before: read in a round before the round has assigned it."""
    done = set[str]()
    for call in by_place(node for node in ast.walk(loop) if isinstance(node, ast.Call)):
        if models.origin(file, call.func) is None or any(
            isinstance(above, FUNCTIONS) for above in _within(call, loop)
        ):
            continue
        for given in call.args[1:]:
            if not isinstance(given, ast.Name) or given.id in done:
                continue
            named = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == given.id]
            stores = [node for node in named if isinstance(node.ctx, ast.Store)]
            if stores and all(_comes_from(store, given.id) for store in stores):
                done.add(given.id)
                yield given


def _within(node: ast.AST, loop: Loop) -> Iterator[ast.AST]:
    for above in chain(node):
        if above is loop:
            return
        yield above


def _comes_from(store: ast.Name, name: str) -> bool:
    """True for `h = f(h)` and `y, h = model(x, h)`: what is assigned holds what was there before."""
    stored = next((above for above in chain(store) if isinstance(above, ast.stmt)), None)
    value = stored.value if isinstance(stored, ast.Assign) else None
    return value is not None and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))
