"""Which values of a program certainly come from NumPy: its arrays, and the scalars that it makes of them.

Functions of NumPy that hand a tensor on to torch (`np.sqrt(tensor)`) count only where what they are given comes from
NumPy itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.flow.facts import ProjectFacts
from transplt.flow.last_value import nearest_binding
from transplt.program.followed_values import Traced
from transplt.program.program import File, Function, enclosing_function, key_of, program_of
from transplt.syntax.nodes import call_of, callee_of, class_of_method, is_none, last_name, of_kind
from transplt.syntax.scan import chain, parent

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
#: How functions are called that rate a model.
_SCORES = re.compile(
    rb"\s*def\s+(?!test_)\w*(?:eval|valid|test|scor|metric|result|iou|acc|rank|f1|auc|psnr|ssim|bleu|loss|epoch|union|precision|recall)\w*\(",
    re.IGNORECASE,
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
        if self.is_one(file, node):
            return True
        key = id(node), (-1,)  # what is put into itself
        if key in self._open:
            return False
        self._open.add(key)
        found = any(self.holds(at, each) for at, each in self._collected(file, node))
        self._open.discard(key)
        return found

    def made(self, file: File, node: ast.expr) -> bool:
        """True for a call of NumPy, a method of an array, and what is computed of one with a number."""
        if isinstance(node, ast.BinOp):
            left, right = self.is_one(file, node.left), self.is_one(file, node.right)
            return (left and (right or _is_number(file, node.right))) or (right and _is_number(file, node.left))
        if not isinstance(node, ast.Call):
            return False
        module, _, last = (file.names.qualified(node.func) or "").rpartition(".")
        match node.func:
            case _ if module == "numpy":
                return self._makes(file, node, last)
            case ast.Name(id="max" | "min") if len(node.args) > 1:
                return any(self.is_one(file, each) for each in node.args)
            case ast.Attribute(value=value, attr=attr):
                return (attr in _KEEPS and self.is_one(file, value)) or (attr == "numpy" and not (node.args or module))
        return False

    def _makes(self, file: File, call: ast.Call, name: str) -> bool:
        """True for a function of NumPy that is given such values and numbers, and for one that makes them anyhow."""
        names_object = any(last_name(each.value) == "object" for each in call.keywords)
        given = [each for each in call.args[:2] if not _is_number(file, each)]
        known = bool(given) and all(self.is_one(file, each) for each in given)
        return not names_object and (name in _MAKES or (known and name not in ("ndim", "shape", "size")))

    def _name(self, file: File, node: ast.Name, *path: int | str) -> bool:
        """So of what a turn of the loop before has given the name: `best = score` below the place that saves it; and
        of what the function around has given it last."""
        if super()._name(file, node, *path):
            return True
        if node.id not in file.scan.scope_of(node).bindings:
            return self._any(self._held(file, node)[-1:], *path)
        nearest = nearest_binding(file.scan, node)
        around = {*chain(nearest)} if nearest is not None else set()
        loops = {each for each in chain(node) if isinstance(each, (ast.For, ast.While))} - around
        bindings = file.scan.scope_of(node).bindings.get(node.id, ()) if loops else ()
        below = [parent(each.node) for each in bindings if getattr(each.node, "lineno", 0) > node.lineno]
        again = [each.value for each in of_kind(ast.Assign, below) if not loops.isdisjoint(chain(each))]
        return any(self.is_one(file, each, *path) for each in again)

    def _returned(self, file: File, call: ast.Call, *path: int | str) -> bool:
        """So of functions of the program; of others of the project, and methods of their objects, by their names."""
        project, func, names = self.program.project, call.func, [file.names.qualified(call.func)]
        found = super()._returned(file, call, *path)
        if found or not project.numpy_results:
            return found
        if names == [None] and isinstance(func, ast.Attribute):
            # Of a parameter, what a variable of the caller holds.
            given = self._held(file, func.value)
            made = (value for each in given for value in self._held(each.file, each.node) or [each])
            held = [each.file.names.qualified(callee_of(each.node)) for each in made]
            names = [f"{name}.{func.attr}" if name else None for name in held]
        item = "".join(f"[{each}]" for each in path)
        results = project.numpy_results
        return bool(names) and all(name and f"{project.canonical(name)}{item}" in results for name in names)

    def item(self, file: File, node: ast.Subscript) -> bool:
        """True for an element or a part of an array."""
        return self.is_one(file, node.value)

    def _collected(self, file: File, node: ast.expr) -> Iterator[tuple[File, ast.expr]]:
        """What a list of a function or an object is given by `append`, and a dict under its keys."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return
        slot, scope = self.program.slot(file, node), file.scan.scope_of(node)
        if slot is None:
            return
        yield from ((each.file, each.node) for _, each in self.program.entries.get(slot, ()))
        if not any(isinstance(each.node, ast.List) for each in self.program.values.get(slot, ())):
            return
        for each in file.scan.attributes.get("append", ()):
            call = call_of(each)
            same = isinstance(node, ast.Attribute) or file.scan.scope_of(each) is scope
            if same and call is not None and call.args and ast.dump(each.value) == ast.dump(node):
                yield file, call.args[0]


def gives_scores(data: bytes) -> bool:
    """True for the text of a file that may say which of its functions return what NumPy made; it is parsed for it."""
    return b"numpy" in data and b"return" in data and _SCORES.search(data) is not None


def numpy_results(file: File) -> Iterator[str]:
    """`function` and `Class.method` for each that returns what NumPy made, `function[1]` and `function[key]` where that
    is one of several things; what functions of other files return is not looked at.
    """
    returned: dict[Function, list[ast.expr]] = {}
    for each in file.scan.returns:
        function = enclosing_function(each)
        if function is not None and each.value is not None and _SCORES.match(b"def %b(" % function.name.encode()):
            returned.setdefault(function, []).append(each.value)
    if not returned:
        return
    values = NumpyValues(program_of([file], ProjectFacts()))
    for function, every in returned.items():
        known = [each for each in every if not (is_none(each) or _is_of_another(file, each))]
        name = ".".join(each.name for each in (class_of_method(function), function) if each is not None)
        keys = filter(None, (key_of(key) for each in of_kind(ast.Dict, known) for key in each.keys))
        paths: list[tuple[int | str, ...]] = [(), *zip((*range(5), *keys), strict=True)]
        for path in dict.fromkeys(paths) if known else ():
            if all(values.is_one(file, each, *path) for each in known):
                yield name + "".join(f"[{at}]" for at in path)


def _is_of_another(file: File, node: ast.expr) -> bool:
    """True for a call of what is imported, and not from NumPy."""
    full = file.names.qualified(node.func) if isinstance(node, ast.Call) else None
    return full is not None and "." in full and not full.startswith("numpy.")


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
