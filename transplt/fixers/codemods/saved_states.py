"""Keys of saved random states: checkpoints are read by them, so they stay."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.syntax.nodes import inner_nodes, last_name
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="", rank=160, needs=(b"get_rng_state",))

_GETTERS = frozenset({"get_rng_state", "get_rng_state_all"})


@fixer.on(ast.Constant)
def key_of_a_state(work: Work, node: ast.Constant) -> Finds:
    """Keep the key `cuda` of a dict in which random states are gathered."""
    display = parent(node)
    if not isinstance(display, ast.Dict) or node not in display.keys:
        return
    value = display.values[display.keys.index(node)]
    called = (each.func for each in inner_nodes(value, ast.Call))
    if any(last_name(func) in _GETTERS for func in called) and work.take(node):
        yield work.keep(node, "state-key")
