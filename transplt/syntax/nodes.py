"""Small questions about nodes: what a call calls and is given, what stands around a node."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeVar

from transplt.syntax.scan import FUNCTIONS, Scan, parent

_Kind = TypeVar("_Kind", bound=ast.AST)
_Placed = TypeVar("_Placed", bound=ast.expr | ast.stmt)


def of_kind(kind: type[_Kind], nodes: Iterable[ast.AST | None]) -> Iterator[_Kind]:
    """The nodes of one kind among several: `of_kind(ast.Call, ast.walk(body))`."""
    return (node for node in nodes if isinstance(node, kind))


# --- names -----------------------------------------------------------------------------------------------------------


def last_name(node: ast.AST | None) -> str:
    """The last part of a name: `c` of `a.b.c`, of `f().c` and of `c`; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def plain_name(node: ast.AST | None) -> str:
    """`a` of the name `a`; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else ""


def attribute_of(node: ast.AST | None) -> str:
    """`c` of `a.b.c` and of `f().c`; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else ""


def called_name(node: ast.AST | None) -> str:
    """The last part of the name that is called: `c` of `a.b.c()`; empty for anything else."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def root_name(node: ast.AST) -> ast.Name | None:
    """The name that a dotted name begins with; None for anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def is_dotted(node: ast.AST) -> bool:
    """True for `a` and `a.b.c`: read twice, they give the same without doing anything."""
    return root_name(node) is not None


def is_plain(node: ast.expr) -> bool:
    """True for a name, its attributes, and entries under a constant key: nothing that runs when it is read."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return is_plain(node.value)
    return isinstance(node, ast.Name)


def dotted(node: ast.AST) -> list[ast.expr]:
    """A Name and the Attributes stacked on it, innermost first: `a`, `a.b`, `a.b.c`."""
    assert isinstance(node, ast.expr)
    found: list[ast.expr] = [node]
    above = parent(node)
    while isinstance(above, ast.Attribute) and above.value is found[-1]:
        found.append(above)
        above = parent(above)
    return found


def by_place(nodes: Iterable[_Placed]) -> list[_Placed]:
    """Nodes in the order in which they begin in the source."""
    return sorted(nodes, key=begins)


def begins(node: ast.AST) -> tuple[int, int]:
    """The line and the column at which a node begins: of two that share a line one comes before the other too."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def ends(node: ast.AST) -> tuple[int, int]:
    """The line and the column behind a node."""
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0


def string_of(node: ast.AST | None) -> str | None:
    """The text of a string constant; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_none(node: ast.AST | None) -> bool:
    """True for `None` where it is written out."""
    return isinstance(node, ast.Constant) and node.value is None


def is_false(node: ast.AST | None) -> bool:
    """True for a constant that counts as false: `False`, `None`, `0`."""
    return isinstance(node, ast.Constant) and not node.value


def inner_nodes(node: ast.AST, kind: type[_Kind]) -> Iterator[_Kind]:
    """The nodes of a kind in a piece of code, itself among them, in the order of `ast.walk`."""
    return of_kind(kind, ast.walk(node))


def index_in(holder: ast.AST, field: str, node: ast.AST) -> int:
    """The index of a node in a list of the node that holds it (`elts`, `args`, `keys`), -1 when it is not in it.

    The list is gone through once: of a table of 30,000 rows each row asks for its index.
    """
    known: dict[str, dict[int, int]] = holder.__dict__.setdefault("_indices", {})
    if field not in known:
        known[field] = {id(each): index for index, each in enumerate(getattr(holder, field))}
    return known[field].get(id(node), -1)


def has_key(display: ast.Dict, name: str) -> bool:
    """True when a string is a key of a dict display. Its keys are gone through once, as in `index_in`."""
    known: set[str] | None = display.__dict__.get("_names")
    if known is None:
        found = (key.value for key in display.keys if isinstance(key, ast.Constant))
        known = display.__dict__["_names"] = {value for value in found if isinstance(value, str)}
    return name in known


def starred_at(display: ast.Tuple | ast.List) -> int:
    """The index of the first element with a star, the number of elements where none has one."""
    known: int | None = display.__dict__.get("_starred")
    if known is None:
        stars = (index for index, each in enumerate(display.elts) if isinstance(each, ast.Starred))
        known = display.__dict__["_starred"] = next(stars, len(display.elts))
    return known


def last_starred_at(display: ast.Tuple | ast.List) -> int:
    """The index of the last element with a star, -1 where none has one."""
    known: int | None = display.__dict__.get("_last_starred")
    if known is None:
        stars = (index for index, each in enumerate(display.elts) if isinstance(each, ast.Starred))
        known = display.__dict__["_last_starred"] = max(stars, default=-1)
    return known


# --- calls -----------------------------------------------------------------------------------------------------------


def call_of(node: ast.AST) -> ast.Call | None:
    """The call whose callee is `node`, else None."""
    above = parent(node)
    return above if isinstance(above, ast.Call) and above.func is node else None


def callee_of(node: ast.expr) -> ast.expr:
    """`f` of `f(x)`; any other expression itself: decorators come with and without arguments."""
    return node.func if isinstance(node, ast.Call) else node


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by place and by keyword."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def hides_arguments(call: ast.Call) -> bool:
    """True for `f(*some)` and `f(**some)`."""
    return any(isinstance(arg, ast.Starred) for arg in call.args) or any(key.arg is None for key in call.keywords)


def keyword_of(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def argument_at(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """What a call is given at a place, or else by the name of the parameter there."""
    return call.args[index] if len(call.args) > index else keyword_of(call, name)


def shape(call: ast.Call) -> tuple[int, set[str], bool]:
    """How many positional arguments stand before any star, which keywords, and whether there is a star."""
    positional = 0
    starred = hides_arguments(call)
    for arg in call.args:
        if isinstance(arg, ast.Starred):
            break
        positional += 1
    return positional, {k.arg for k in call.keywords if k.arg is not None}, starred


def lacks(call: ast.Call, name: str, index: int) -> bool | None:
    """True when a call gives no argument `name` (position `index`); None when a star may bring it."""
    positional, keywords, starred = shape(call)
    if positional > index or name in keywords:
        return False
    return None if starred else True


def has_effects(node: ast.AST) -> bool:
    """True when evaluating an expression may do more than give a value."""
    kinds = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
    return any(isinstance(inner, kinds) for inner in ast.walk(node))


# --- statements ------------------------------------------------------------------------------------------------------


def is_main_guard(node: ast.stmt) -> bool:
    """True for `if __name__ == "__main__":`."""
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[_], comparators=[right])):
            names = any(isinstance(side, ast.Name) and side.id == "__name__" for side in (left, right))
            return names and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in (left, right))
    return False


def is_elif(node: ast.AST) -> bool:
    """True for the `if` of an `elif`."""
    above = parent(node)
    below = isinstance(node, ast.If) and isinstance(above, ast.If) and node in above.orelse
    return below and begins(node)[1] == begins(above)[1]


def has_main_guard(tree: ast.Module) -> bool:
    """True for a file that does something where it is started, and not where it is imported."""
    return any(is_main_guard(node) for node in tree.body)


def first_code(tree: ast.Module, below: ast.AST | None = None) -> ast.stmt:
    """The first statement of a file that defines or calls something, with the assignments above it; of those below
    another one.
    """
    body = tree.body[tree.body.index(below) + 1 :] if isinstance(below, ast.stmt) else tree.body
    index = 0
    while index < len(body) and not _is_code(body[index]):
        index += 1
    while index > 0 and isinstance(body[index - 1], (ast.Assign, ast.AnnAssign)):
        index -= 1
    return body[index] if index < len(body) else tree.body[-1]


def _is_code(node: ast.stmt) -> bool:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return True
    return not isinstance(node, ast.Try) and any(isinstance(inner, ast.Call) for inner in ast.walk(node))


def block_of(node: ast.stmt) -> list[ast.stmt]:
    """The statements among which one stands."""
    return place_in_block(node)[0]


def place_in_block(node: ast.stmt) -> tuple[list[ast.stmt], int]:
    """The statements among which one stands, and its index."""
    above = parent(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None)
        if isinstance(block, list) and (index := index_in(above, name, node)) >= 0:
            return block, index
    return [node], 0


def following(node: ast.stmt) -> list[ast.stmt]:
    """The statements after one, in its own block."""
    block, index = place_in_block(node)
    return block[index + 1 :]


def nodes_in(block: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of some statements, and all that they hold."""
    return (node for each in block for node in ast.walk(each))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what it holds, without functions, classes and lambdas that it defines."""
    pending = [node]
    while pending:
        at = pending.pop()
        if not isinstance(at, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            yield at
            pending.extend(ast.iter_child_nodes(at))


def is_property(node: ast.AST) -> bool:
    """True for a function that a decorator makes an attribute to read."""
    if not isinstance(node, FUNCTIONS):
        return False
    lasts = [last_name(decorator) for decorator in node.decorator_list]
    return any("property" in last or last in ("setter", "getter") for last in lasts)


def variable(node: ast.AST) -> str:
    """`x`, `self.x`, and the same of `x[0]`, `x.y.z` and `x.append`; empty for what is no variable."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return f"self.{node.attr}"
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def class_of_method(function: ast.AST | None) -> ast.ClassDef | None:
    """The class whose method a function is."""
    above = parent(function) if function is not None else None
    return above if isinstance(above, ast.ClassDef) else None


def defaults_of(args: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, each with it."""
    yield from zip(reversed([*args.posonlyargs, *args.args]), reversed(args.defaults), strict=False)
    for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if value is not None:
            yield arg, value


def parameter_of(args: ast.arguments, default: ast.AST) -> ast.arg:
    """The parameter that has a default. All are gone through once, as in `index_in`."""
    known: dict[int, ast.arg] = args.__dict__.setdefault("_by_default", {})
    if not known:
        known.update((id(value), arg) for arg, value in defaults_of(args))
    return known[id(default)]


def is_unbound(scan: Scan, name: str) -> bool:
    """True for a name that a file reads, and that nothing in it gives a value, no star import either."""
    return name in scan.names and not scan.root.stars and not scan.binds(name)
