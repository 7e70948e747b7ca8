"""Where code stands: the loops around it, what they go over, whether it runs again, or instead of other code."""

from __future__ import annotations

import ast

from transplt.program.program import Program, enclosing_function
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def loops_around(node: ast.AST) -> list[Loop]:
    """The loops of the same function around a node, nearest first."""
    found: list[Loop] = []
    for above in chain(node):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, LOOPS):
            found.append(above)
    return found


def loop_head(loop: Loop) -> ast.expr:
    """What a loop goes over, or its condition."""
    return loop.test if isinstance(loop, ast.While) else loop.iter


def counts(loop: Loop) -> bool:
    """True for `for step in range(...)`: it counts, whatever is read in it."""
    head = loop_head(loop)
    counter = isinstance(head, ast.Call) and last_name(head.func) in ("range", "trange", "count")
    return counter and not isinstance(loop, ast.While)


def in_header(loop: Loop, node: ast.AST) -> bool:
    """True for what a `for` evaluates once, before it runs."""
    while parent(node) is not loop:
        node = parent(node)
    return not isinstance(loop, ast.While) and node is loop.iter


def repeated(program: Program, node: ast.AST) -> bool:
    """True for code that runs more than once: in a loop, or in a function that is called in one."""
    seen: set[ast.AST] = set()
    pending = [node]
    while pending:
        inner = pending.pop()
        if any(not in_header(loop, inner) for loop in loops_around(inner)):
            return True
        function = enclosing_function(inner)
        if function is not None and function not in seen:
            seen.add(function)
            pending += [call for _, call in program.call_sites.get(function, [])]
    return False


def own_body(loop: Loop) -> list[ast.AST]:
    """The nodes of a loop's body without those of the loops in it."""
    found: list[ast.AST] = []
    pending: list[ast.AST] = list(loop.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (*LOOPS, *FUNCTIONS, ast.ClassDef)):
            continue
        found.append(node)
        pending.extend(ast.iter_child_nodes(node))
    return found


def lifted(node: ast.AST, block: list[ast.stmt]) -> int | None:
    """Index of the statement of a block that holds a node, None when the block does not."""
    places = {id(item): index for index, item in enumerate(block)}
    while not isinstance(node, ast.Module):
        if id(node) in places:
            return places[id(node)]
        node = parent(node)
    return None


def excludes(node: ast.AST, other: ast.AST) -> bool:
    """True when two pieces of code stand in branches of one `if` of which only one runs."""
    around = {id(above) for above in chain(other)}
    at = node
    while not isinstance(at, ast.Module):
        above = parent(at)
        if isinstance(above, ast.If) and id(above) in around:
            return (at in above.orelse) != any(id(item) in around or item is other for item in above.orelse)
        at = above
    return False
