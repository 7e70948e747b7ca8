"""What a name was last assigned above a place, in the scope it is read in."""

from __future__ import annotations

import ast

from transplt.syntax.scan import Scan, parent


def last_value(scan: Scan, name: ast.Name, *, past_sums: bool = False) -> ast.expr | None:
    """The value of the nearest plain assignment above; None when something else binds the name there, or nothing does.

    Branches and loops are not looked at: the nearest one in the text counts. With `past_sums`, `x += y` counts for
    none: it keeps the type and the device of a tensor.
    """
    nearest = nearest_binding(scan, name, past_sums=past_sums)
    holder = parent(nearest) if isinstance(nearest, ast.Name) else None
    if isinstance(holder, ast.AnnAssign):
        return holder.value if nearest is holder.target else None
    return holder.value if isinstance(holder, ast.Assign) and nearest in holder.targets else None


def nearest_binding(scan: Scan, name: ast.Name, *, past_sums: bool = False) -> ast.AST | None:
    """What binds a name in its scope nearest above the line it is read in; None where nothing does."""
    scope = scan.scope_of(name)
    while scope.kind == "comprehension" and name.id not in scope.bindings and scope.parent is not None:
        scope = scope.parent
    bindings = scope.bindings.get(name.id, ())
    above = [each.node for each in bindings if getattr(each.node, "lineno", name.lineno) < name.lineno]
    if past_sums:
        above = [node for node in above if not isinstance(parent(node), ast.AugAssign)]
    return max(above, key=lambda node: getattr(node, "lineno", 0), default=None)
