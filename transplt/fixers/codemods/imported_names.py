"""What uses of an imported name allow: whether it may get another name in its file, and what its rule notes of it."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left

from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.work import Work
from transplt.fixers.codemods.args import accepts
from transplt.rules.rule import Rule
from transplt.syntax.annotations import is_annotation
from transplt.syntax.modules import module_name
from transplt.syntax.nodes import call_of
from transplt.syntax.scan import parent
from transplt.syntax.scopes import Binding, Scope

_SPEAKS_TO_US = re.compile(rb"transplt:")


def may_rename(work: Work, scope: Scope, local: str, new: str, user: bool) -> bool:
    """A local name may change when one import binds it, the new name is free, and no other file can see it."""
    if len(scope.bindings.get(local, ())) != 1 or not (user or mentions_cuda(local.encode().lower())):
        return False
    if new in work.scan.names or work.scan.binds(new):
        return False
    if switched_off(work, local, scope):
        return False  # the import, or a use, would keep the old name
    if scope.kind == "module":
        if "__all__" in scope.bindings or work.scan.path.endswith("__init__.py"):
            return False
        if f"{module_name(work.scan.path)}.{local}" in work.project.used_names:
            return False
    word = re.compile(rf"\b{re.escape(local)}\b")  # a string is the name, or an annotation in quotes mentions it
    return not any(
        node.value == local or (word.search(str(node.value)) and is_annotation(node)) for node in work.scan.strings
    )


def switched_off(work: Work, local: str, scope: Scope) -> bool:
    """True when the settings or a comment may leave the import of a name, or a use of it, as it is."""
    if work.settings.ignored_codes(work.scan.path):
        return True
    source = work.source
    lines = [source.position(found.start())[0] for found in _SPEAKS_TO_US.finditer(source.utf8)]
    if not lines:
        return False
    places: list[ast.AST] = [*(binding.node for binding in scope.bindings[local]), *work.scan.names.get(local, ())]
    for place in places:
        first, last = _lines_of(place)
        at = bisect_left(lines, first)
        if at < len(lines) and lines[at] <= last:
            return True
    return False


def _lines_of(node: ast.AST) -> tuple[int, int]:
    """The first and the last line of a node's statement; of a compound one, of its header as far as the node."""
    last, at = node, node
    while not isinstance(at, ast.stmt):
        last = at if hasattr(at, "end_lineno") else last
        at = parent(at)
    whole = at if isinstance(at, ast.stmt) and not hasattr(at, "body") else last
    return getattr(at, "lineno", 1), getattr(whole, "end_lineno", None) or 1


def is_called(work: Work, local: str, scope: Scope) -> bool:
    for name in work.scan.names.get(local, ()):
        above = parent(name)
        if isinstance(above, ast.Call) and above.func is name:
            found = work.names.lookup(local, work.scan.scope_of(name))
            if found is not None and found[0] is scope:
                return True
    return False


def calls_of(work: Work, local: str, scope: Scope) -> list[ast.Call | None]:
    """The call of each use of an imported name; None for a use that calls nothing."""
    return [
        call_of(name)
        for name in work.scan.names.get(local, ())
        if isinstance(name.ctx, ast.Load)
        and (found := work.names.lookup(local, work.scan.scope_of(name))) is not None
        and found[0] is scope
    ]


def similar_fits(rule: Rule, calls: list[ast.Call | None]) -> bool:
    """True when each use of an imported name can become that of the similar API; else the import must not move."""
    return all(rule.skip_if is None if call is None else accepts(rule, call) for call in calls)


def mixed_imports(work: Work) -> set[Binding]:
    """Names that are only called, and whose import stays since not each call can become that of the similar API: those
    that can are written out. For `work.once`; filled where imports are looked at, before the references.
    """
    return set()
