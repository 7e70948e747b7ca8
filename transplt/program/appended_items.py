"""Lists that are filled item by item: what is appended to one where nothing else can fill it."""

from __future__ import annotations

import ast

from transplt.program.program import File
from transplt.syntax.nodes import call_of, last_name
from transplt.syntax.scan import parent

#: What reads a list that it is given, and keeps no hold of it.
_READS = frozenset("len cat stack enumerate zip tuple list sum".split())


def appended(file: File, name: ast.Name) -> list[ast.expr]:
    """What is appended to the list of a variable in its scope; nothing where something else may fill it."""
    scope = file.scan.scope_of(name)
    found: list[ast.expr] = []
    for use in file.scan.names.get(name.id, ()):
        held = file.names.lookup(use.id, file.scan.scope_of(use))
        if held is None or held[0] is not scope or isinstance(use.ctx, ast.Store):
            continue
        if any(isinstance(parent(binding.node), ast.AugAssign) for binding in held[1]):
            return []
        above = parent(use)
        call = call_of(above) if isinstance(above, ast.Attribute) else None
        if call is not None and last_name(call.func) == "append" and len(call.args) == 1:
            found.append(call.args[0])
            continue
        match above:
            case ast.Call() if use in above.args and last_name(above.func) in _READS:
                pass
            case ast.Subscript(value=value, ctx=ast.Load()) if value is use:
                pass
            case ast.Return() | ast.For() | ast.comprehension() | ast.Compare():
                pass
            case _:
                return []
    return found
