"""Questions about the very class of a wrapper, to which a subclass of DataParallel gives another answer.

`isinstance` holds for the class that goes in for DataParallel (data_parallel.py); `type(net) is DataParallel` and
`net.__class__.__name__ == "DataParallel"` do not, and such lines decide whether `.module` is taken. They may stand in
another file than the call, so they are made to hold wherever they are.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.displays import with_twin
from transplt.edits.trees.expressions import left_side
from transplt.edits.trees.new_calls import as_instance
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.fixers.codemods.data_parallel import CLASS_NAME
from transplt.flow.callees import DATA_PARALLEL
from transplt.syntax.nodes import plain_name, string_of

fixer = Fixer(__name__, code="NPU135", rank=404, versions=">=2.1", words=("DataParallel",))

_NAME = "DataParallel"
_API = "torch.nn.DataParallel"
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
_IS = (ast.Is, ast.Eq, ast.In)
_IS_NOT = (ast.IsNot, ast.NotEq, ast.NotIn)


@fixer.on(ast.Compare)
def of_the_very_class(work: Work, test: ast.Compare) -> Finds:
    """Make the test hold for the class that goes in."""
    if work.settings.style == "portable" or len(test.ops) != 1 or not isinstance(test.ops[0], (*_IS, *_IS_NOT)):
        return
    if _is_type_of(work, test.left):
        yield from _by_class(work, test)
    elif isinstance(test.left, ast.Attribute) and test.left.attr in ("__name__", "__qualname__"):
        owner = test.left.value
        if _is_type_of(work, owner) or (isinstance(owner, ast.Attribute) and owner.attr == "__class__"):
            yield from _by_name(work, test)


def _by_class(work: Work, test: ast.Compare) -> Finds:
    given = test.comparators[0]
    inside = isinstance(test.ops[0], (ast.In, ast.NotIn))
    classes = given.elts if inside and isinstance(given, _DISPLAYS) else [given]
    if inside is not isinstance(given, _DISPLAYS) or any(isinstance(each, ast.Starred) for each in classes):
        return
    if not any(work.names.qualified(each) in DATA_PARALLEL for each in classes) or not work.take(test):
        return
    new = as_instance(negated=isinstance(test.ops[0], _IS_NOT))
    message = f"type(...) is DataParallel -> isinstance: {CLASS_NAME} is a subclass"
    what = test.left.args if isinstance(test.left, ast.Call) else []
    yield Edit(test, fixer.code, message, new, api=_API, holes=tuple(what))


def _by_name(work: Work, test: ast.Compare) -> Finds:
    given = test.comparators[0]
    message = f"the class is now called {CLASS_NAME}"
    if isinstance(test.ops[0], (ast.Eq, ast.NotEq)) and string_of(given) == _NAME:
        if work.take(test):
            operator = "in" if isinstance(test.ops[0], ast.Eq) else "not in"
            new: New = left_side(f' {operator} ("{_NAME}", "{CLASS_NAME}")')
            yield Edit(test, fixer.code, message, new, api=_API)
    elif isinstance(test.ops[0], (ast.In, ast.NotIn)) and isinstance(given, _DISPLAYS):
        named = [each for each in given.elts if string_of(each) == _NAME]
        if named and CLASS_NAME not in map(string_of, given.elts) and work.take(given):
            old = work.text(named[0])
            new = with_twin(old, old.replace(_NAME, CLASS_NAME))
            yield Edit(given, fixer.code, message, new, api=_API)


def _is_type_of(work: Work, node: ast.expr) -> bool:
    """True for `type(x)` with Python's own `type`."""
    if not (isinstance(node, ast.Call) and plain_name(node.func) == "type"):
        return False
    return len(node.args) == 1 and not node.keywords and "type" not in work.scan.root.bindings
