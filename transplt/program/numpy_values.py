"""Which values of a program certainly come from NumPy: its arrays, and the scalars that it makes of them.

Functions of NumPy that hand a tensor on to torch (`np.sqrt(tensor)`) count only where what they are given comes from
NumPy itself.
"""

from __future__ import annotations

import ast

from transplt.flow.last_value import nearest_binding
from transplt.program.followed_values import Traced
from transplt.program.program import File
from transplt.syntax.nodes import callee_of, last_name
from transplt.syntax.scan import parent

#: Functions whose result is an array or a scalar of NumPy (NumPy's reference, "Routines"), whatever they are given.
_MAKES = frozenset(
    "argmax argmin arange array asarray average concatenate count_nonzero cumsum empty eye float16 float32 float64 "
    "full hstack int32 int64 linspace max mean median min nanmean ones percentile prod quantile stack std sum trace "
    "trapz uint8 unique var vstack where zeros zeros_like".split()
)
#: Methods of arrays that give an array or a scalar again.
_KEEPS = frozenset(
    "all any argmax argmin argsort astype clip copy cumsum diagonal dot flatten max mean min prod ravel reshape round "
    "squeeze std sum transpose var".split()
)
_NUMBERS = frozenset({"float", "int", "len", "time"})


class NumpyValues(Traced):
    """Arrays and scalars of NumPy in a program."""

    def holds(self, file: File, node: ast.expr) -> bool:
        """True where an expression is, or a container that is written out or filled holds, such a value."""
        if isinstance(node, ast.Dict):
            return any(self.holds(file, each) for each in node.values)
        if isinstance(node, (ast.List, ast.Tuple)):
            return any(self.holds(file, each) for each in node.elts)
        return self.is_one(file, node) or self._collects(file, node)

    def made(self, file: File, node: ast.expr) -> bool:
        """True for a call of NumPy, a method of an array, and what is computed of one with a number."""
        if isinstance(node, ast.BinOp):
            left, right = self.is_one(file, node.left), self.is_one(file, node.right)
            return (left and (right or _is_number(file, node.right))) or (right and _is_number(file, node.left))
        if not isinstance(node, ast.Call):
            return False
        full = file.names.qualified(node.func) or ""
        module, _, last = full.rpartition(".")
        if module == "numpy":
            names_object = any(last_name(each.value) == "object" for each in node.keywords)
            given = bool(node.args) and self.is_one(file, node.args[0])
            return not names_object and (last in _MAKES or (given and last not in ("ndim", "shape", "size")))
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _KEEPS and self.is_one(file, func.value):
            return True
        return isinstance(func, ast.Attribute) and func.attr == "numpy" and not node.args and not full

    def _returned(self, file: File, call: ast.Call, index: int | None) -> bool:
        """So of functions of the program; of others of the project, and methods of their objects, by their names."""
        project, func, names = self.program.project, call.func, [file.names.qualified(call.func)]
        found = super()._returned(file, call, index)
        if found or index is not None or not project.numpy_results:
            return found
        if names == [None] and isinstance(func, ast.Attribute):
            values = self._held(file, func.value)
            held = [each.file.names.qualified(callee_of(each.node)) for each in values]
            names = [f"{name}.{func.attr}" if name else None for name in held]
        return bool(names) and all(name and project.canonical(name) in project.numpy_results for name in names)

    def item(self, file: File, node: ast.Subscript) -> bool:
        """True for an element or a part of an array."""
        return self.is_one(file, node.value)

    def _collects(self, file: File, node: ast.expr) -> bool:
        """True for a list that the function of a name appends such values to."""
        if not isinstance(node, ast.Name):
            return False
        nearest = nearest_binding(file.scan, node)
        above = parent(nearest) if isinstance(nearest, ast.Name) else None
        if not (isinstance(above, ast.Assign) and isinstance(above.value, ast.List)):
            return False
        scope = file.scan.scope_of(node)
        for each in file.scan.attributes.get("append", ()):
            held, call = each.value, parent(each)
            if not (isinstance(held, ast.Name) and held.id == node.id and file.scan.scope_of(held) is scope):
                continue
            if isinstance(call, ast.Call) and call.args and self.holds(file, call.args[0]):
                return True
        return False


def _is_number(file: File, node: ast.expr) -> bool:
    """True for a number of Python: nothing that makes a tensor of what it is multiplied with."""
    match node:
        case ast.Constant():
            return isinstance(node.value, (int, float))
        case ast.Call():
            return last_name(node.func) in _NUMBERS
        case ast.Name():
            bindings = file.scan.scope_of(node).bindings.get(node.id, ())
            above = [parent(each.node) if each.kind == "assign" else None for each in bindings]
            return bool(above) and all(
                isinstance(each, (ast.Assign, ast.AugAssign)) and isinstance(each.value, ast.Constant) for each in above
            )
    return False
