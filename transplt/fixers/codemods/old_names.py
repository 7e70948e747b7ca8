"""Names of older releases of Python, NumPy and others that a new environment does not have.

What moved is renamed by rules/python_gone.json: `collections.Mapping` is in collections.abc alone since Python 3.10
(docs.python.org/3/whatsnew/3.10.html), `np.Inf` is np.inf alone since NumPy 2.0 (release/2.0.0-notes.html),
`Image.ANTIALIAS` is Image.LANCZOS alone since Pillow 10. Here is what those rules leave alone, the names of a program
that knows of the change (`try: from collections.abc import Mapping`), and NumPy's names for Python's own types:
`np.float` was `float` itself and is gone since NumPy 1.24 (numpy.org/doc/stable/release/1.24.0-notes.html, expired
deprecations). `np.bool` and `np.long` are other types from NumPy 2.0 on, and stay.

torch 2.9 and newer have a torch_npu for Python 3.10 and newer alone (rules/support/versions.json), for which a NumPy of
that time has no wheel (rules/support/companions.json).
"""

from __future__ import annotations

import ast
from functools import cache

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import one_after_the_other, with_last_name
from transplt.edits.trees.names import dotted
from transplt.edits.trees.removals import without_keyword
from transplt.edits.work import Work
from transplt.flow.torch_branches import TorchTests
from transplt.rules.rule_set import builtin_rules
from transplt.syntax.nodes import keyword_of, last_name
from transplt.syntax.scan import chain, parent

#: NumPy's names, and what they were.
_TYPES = {"float": "float", "int": "int", "object": "object", "str": "str", "complex": "complex", "unicode": "str"}
#: What torch had for two Pythons, and what it was: torch/_six.py of torch 1.13.
_OF_TWO_PYTHONS = {"string_classes": "(str, bytes)", "int_classes": "int"}
_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"})
#: What a question for the release holds.
_ASKS = ("version", "PY2", "PY3", "hasattr")

fixer = Fixer(
    __name__,
    code="NPU153",
    rank=105,
    versions=">=2.9",
    words=("copy=False", *_OF_TWO_PYTHONS, *(rf"{module}.{name}\b" for module in ("np", "numpy") for name in _TYPES)),
)


@fixer.on(ast.Import)
def guarded_imports(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    """Keep `from collections import Mapping` where another statement is there for a Python without it, and any import
    that takes a name's old place where the `try` does not find the new one. `from torch._six import string_classes`
    becomes `string_classes = (str, bytes)`.
    """
    match node:
        case ast.ImportFrom(module="collections", level=0) if guarded(node):
            work.take(node)
        case ast.ImportFrom(level=0) if _is_fallback(work, node):
            work.take(node)
        case ast.ImportFrom(module="torch._six", names=[ast.alias(name=name, asname=local)]) if name in _OF_TWO_PYTHONS:
            if not guarded(node) and work.take(node):
                new, full = f"{local or name} = {_OF_TWO_PYTHONS[name]}", f"torch._six.{name}"
                yield Edit(node, fixer.code, f"{full} -> {new}", new, api=full)


def _is_fallback(work: Work, node: ast.ImportFrom) -> bool:
    """True in an `except ImportError` of a `try` that imports each name from where the rules would take it."""
    handler, whole = parent(node), parent(parent(node))
    if not isinstance(handler, ast.ExceptHandler) or not isinstance(whole, ast.Try) or not _catches(handler):
        return False
    imports = [each for each in whole.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    tried = {f"{getattr(each, 'module', '')}.{alias.name}".strip(".") for each in imports for alias in each.names}
    matched = [work.rules.resolve(f"{node.module}.{alias.name}") for alias in node.names]
    return all(each is not None and each[0].code == fixer.code and each[0].new in tried for each in matched)


@cache
def _moved(version: str) -> tuple[str, ...]:
    return tuple(name for name, rule in builtin_rules(version).names.items() if rule.code == fixer.code)


@fixer.on(ast.Module)
def guarded_names(work: Work, tree: ast.Module) -> Finds:
    """Keep `collections.Mapping` beside another way, and where the program itself puts it there."""
    for old in _moved(work.settings.torch_version):
        for node in work.scan.attributes.get(old.rpartition(".")[2], ()):
            if work.names.qualified(node) == old and (not isinstance(node.ctx, ast.Load) or guarded(node)):
                work.take(node)
    yield from ()


@fixer.on(ast.Attribute, last=tuple(_TYPES))
def types_of_python(work: Work, node: ast.Attribute) -> Finds:
    """`np.float` becomes `float`."""
    full, new = f"numpy.{node.attr}", _TYPES[node.attr]
    if not isinstance(node.ctx, ast.Load) or work.names.qualified(node) != full or guarded(node):
        return
    if work.names.lookup(new, work.scan.scope_of(node)) is None and work.take(node):
        yield Edit(node, fixer.code, f"{full} -> {new}", dotted(new), api=full)


@fixer.on(ast.Call, name="numpy.array")
def copied_where_needed(work: Work, call: ast.Call) -> Finds:
    """`np.array(x, t, copy=False)` becomes `np.asarray(x, t)`, which it was: NumPy 2.0 raises where it has to copy
    (numpy.org/doc/stable/numpy_2_0_migration_guide.html, adapting to changes in the copy keyword).
    """
    given = {each.arg for each in call.keywords}
    match call, keyword_of(call, "copy"):
        case ast.Call(func=ast.Attribute(), args=[_] | [_, _]), ast.Constant(value=False):
            if given <= {"copy", "dtype", "order"} and not guarded(call) and work.take(call):
                new = one_after_the_other(without_keyword("copy"), with_last_name("asarray"))
                yield Edit(call, fixer.code, "numpy.array(copy=False) -> numpy.asarray", new, api="numpy.array")


def guarded(node: ast.AST, tests: TorchTests | None = None) -> bool:
    """True in a `try` that catches what is raised where a name is gone, or below a question for the release; not in
    what runs where `tests` say that the question is about an older torch."""
    below = node
    for above in chain(node):
        if isinstance(above, ast.Try) and any(map(_catches, above.handlers)):
            return True
        if isinstance(above, (ast.If, ast.IfExp, ast.BoolOp, ast.While)) and below is not getattr(above, "test", None):
            asked = above.values if isinstance(above, ast.BoolOp) else [above.test]
            runs = tests is not None and isinstance(above, ast.If) and below in above.orelse and tests.fails(above.test)
            if any(word in ast.unparse(each) for each in asked if each is not below for word in _ASKS) and not runs:
                return True
        below = above
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or last_name(kind) in _ERRORS for kind in kinds)
