"""Local variables that nothing reads any more once some expressions are gone, and the statements that set them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from transplt.edits.work import Work
from transplt.syntax.nodes import block_of, plain_name
from transplt.syntax.scan import parent, statement
from transplt.syntax.scopes import Scope

#: Functions that do nothing but compute.
_PURE = frozenset({"min", "max", "int", "len", "abs", "bool", "triton.cdiv", "triton.next_power_of_2"})


def unread_locals(work: Work, gone: Iterable[ast.Name]) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The variables of functions that only the names in `gone` read, each with the statements that can go for it.

    A variable stays where anything else binds it than `name = value`, where a value does more than compute, and where
    a block would be left without a statement.
    """
    names = list(gone)
    ids = {id(name) for name in names}
    done: set[tuple[str, int]] = set()
    for name in names:
        found = work.names.lookup(name.id, work.scan.scope_of(name))
        if found is None or found[0].kind != "function" or (name.id, id(found[0])) in done:
            continue
        done.add((name.id, id(found[0])))
        statements = _statements(work, name.id, found[0], ids)
        if statements:
            yield name.id, statements


def _statements(work: Work, name: str, owner: Scope, gone: set[int]) -> list[ast.stmt]:
    for use in work.scan.names.get(name, ()):
        held = work.names.lookup(name, work.scan.scope_of(use))
        if held is not None and held[0] is owner and id(use) not in gone:
            return []
    doomed: set[ast.stmt] = set()
    for binding in owner.bindings.get(name, ()):
        set_by = statement(binding.node)
        plain = isinstance(set_by, ast.Assign) and set_by.targets == [binding.node]
        if not plain or not isinstance(set_by, ast.Assign) or not _computes(work, set_by.value):
            return []
        doomed.add(set_by)
    tops: dict[int, ast.stmt] = {}
    for each in doomed:
        top = each
        while isinstance(above := parent(top), ast.If) and _only_sets(work, above, doomed):
            top = above
        tops[id(top)] = top
    if any(all(id(each) in tops for each in block_of(top)) for top in tops.values()):
        return []
    return sorted(tops.values(), key=lambda each: each.lineno)


def _only_sets(work: Work, node: ast.If, doomed: set[ast.stmt]) -> bool:
    """True for an `if` that does nothing but the statements that go."""
    inner = [*node.body, *node.orelse]
    return _computes(work, node.test) and all(
        each in doomed or (isinstance(each, ast.If) and _only_sets(work, each, doomed)) for each in inner
    )


def _computes(work: Work, node: ast.expr) -> bool:
    """True for an expression that does nothing but give a value."""
    for each in ast.walk(node):
        match each:
            case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
                return False
            case ast.Call(func=ast.Attribute(attr="element_size" | "numel" | "dim"), args=[]):
                continue  # a number that a tensor knows
            case ast.Call(func=func):
                called = work.names.qualified(func) or plain_name(func)
                if called.removeprefix("builtins.") not in _PURE:
                    return False
    return True
