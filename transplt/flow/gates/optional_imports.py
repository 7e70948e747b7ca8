"""Imports that a program can do without: in a `try` that goes on, or behind a question such as
`if is_xformers_available():`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from transplt.flow.gates.conditions import CAUGHT, goes_on_without
from transplt.syntax.conditions import leaves
from transplt.syntax.nodes import last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, Scan, chain, parent

#: How questions are called that ask whether a package is there.
ASKS = re.compile(r"available|installed|(?:^|_)has_|(?:^|_)have_|find_spec", re.I)
#: Questions for a card, which an NPU answers with yes or no; after a migration some that were for CUDA with yes.
_CARD = re.compile(r"(?:^|[._])(?:cuda|gpus?|npu|mps|xpu)(?:[._]|$)", re.I)


def can_fail(node: ast.AST, caught: frozenset[str] = CAUGHT) -> bool:
    """True for an import without which the program goes on, or for what else may raise one of some errors."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.Try) and node in above.body and goes_on_without(above, caught):
            return True
        if isinstance(above, ast.If) and node in above.body and _asks(above.test):
            return True
        for item in above.items if isinstance(above, ast.With) else ():
            match item.context_expr:
                case ast.Call(func=func, args=errors) if last_name(func) == "suppress":
                    if any(last_name(each) in caught for each in errors):
                        return True
        node = above
    return False


def has_another_way(scan: Scan, node: ast.AST, taken: frozenset[str]) -> bool:
    """True for an import or a build that may fail, where what stands behind it does the same: a handler that binds its
    names again, or uses that all ask first whether it is there. `taken` are the names that other files import.
    """
    match node if isinstance(node, ast.stmt) else parent(node):
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases) as statement:
            names = _bound_by(aliases)
        case ast.Assign(targets=[ast.Name(id=name)]) as statement:
            names = {name}
        case _:
            return False
    tried = next((each for each in chain(statement) if isinstance(each, ast.Try) and goes_on_without(each)), ast.Pass())
    asked = set(names)
    for each in ast.walk(tried):
        match each:
            case ast.Name(id=name, ctx=ast.Store()):
                asked.add(name)  # a flag
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if name in names:
                return True
            case ast.Import() | ast.ImportFrom() if each is not statement:
                if names <= _bound_by(each.names):
                    return True
    flags = asked - names
    asked |= {last_name(target) for each in scan.assigns if last_name(each.value) in flags for target in each.targets}
    if flags and "ops" not in scan.attributes:  # no import for what it registers with torch
        names &= taken | {*filter(scan.names.get, names)}
    return all(_is_asked_first(scan, name, asked, taken, frozenset()) for name in names)


def _bound_by(aliases: list[ast.alias]) -> set[str]:
    return {each.asname or each.name.partition(".")[0] for each in aliases}


def _is_asked_first(scan: Scan, name: str, asked: set[str], taken: frozenset[str], around: frozenset[str]) -> bool:
    """True for a name, or an attribute (`.name`), whose uses, some at least, ask before, or stand in what nobody uses
    who has not asked; so for what is set to it.
    """
    used = [
        each for each in (scan.attributes.get(name[1:], ()) if name[0] == "." else scan.names.get(name, ()))
        if isinstance(each.ctx, ast.Load)
        # but where it is itself asked: `if x is not None`
        and not any(isinstance(up, (ast.If, ast.IfExp)) and up.test is inner for inner, up in _way_up(each))
    ]  # fmt: skip
    if not used or name in taken or name in around:
        return False
    for each in used:
        if any(_asks_before(inner, above, asked) for inner, above in _way_up(each)):
            continue
        match parent(each):
            case ast.Assign(targets=[ast.Attribute(attr=kept)]) if (
                _is_asked_first(scan, f".{kept}", asked, taken, around | {name})
            ):
                continue
        holders = (above for above in reversed([*chain(each)]) if isinstance(above, (*FUNCTIONS, ast.ClassDef)))
        holder = next(holders, None)
        if holder is None or not _is_asked_first(scan, holder.name, asked, taken, around | {name}):
            return False
    return True


def _way_up(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    return pairwise((node, *chain(node)))


def _asks_before(node: ast.AST, above: ast.AST, asked: set[str]) -> bool:
    """True where a node runs only if its holder, or what left before it, has asked for one of some names."""
    if isinstance(above, ast.Try) and node in above.body and goes_on_without(above):
        return True
    if isinstance(above, (ast.If, ast.IfExp)) and node is not above.test and _names_one(above.test, asked):
        return True
    if not isinstance(node, ast.stmt):
        return False
    block, index = place_in_block(node)
    before = (each for each in block[:index] if isinstance(each, ast.If) and leaves(each.body))
    return any(_names_one(each.test, asked) for each in before)


def _names_one(test: ast.expr, asked: set[str]) -> bool:
    return any(last_name(each) in asked for each in ast.walk(test))


def _asks(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return False
    for node in ast.walk(test):
        name = last_name(node)
        if isinstance(node, ast.Attribute):  # with what it is asked of: `cuda.is_available`
            name = f"{last_name(node.value)}.{name}"
        if ASKS.search(name) and not _CARD.search(name):
            return True
    return False
