"""Which nodes hold a place of the text."""

from __future__ import annotations

import ast
from bisect import bisect_right
from itertools import pairwise

from transplt.base.text.source import Source


class Inside:
    """Which node inside of another one holds a byte offset; a block of 10,000 statements is gone through once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.known: dict[int, tuple[list[int], list[tuple[int, int, ast.AST]], bool]] = {}

    def around(self, tree: ast.Module, at: int) -> list[ast.AST]:
        """The nodes around a byte offset, outermost first."""
        found: list[ast.AST] = []
        inner = self._holding(tree, at)
        while inner is not None:
            found.append(inner)
            inner = self._holding(inner, at)
        return found

    def _holding(self, node: ast.AST, at: int) -> ast.AST | None:
        if id(node) not in self.known:
            nodes = self._nodes(node)
            in_order = sorted(nodes, key=lambda item: item[:2])
            apart = all(before[1] <= after[0] for before, after in pairwise(in_order))
            self.known[id(node)] = [item[0] for item in in_order], in_order if apart else nodes, apart
        starts, nodes, apart = self.known[id(node)]
        if apart:
            before = bisect_right(starts, at)
            nodes = nodes[before - 1 : before] if before else []
        return next((inner for start, end, inner in nodes if start <= at < end), None)

    def _nodes(self, node: ast.AST) -> list[tuple[int, int, ast.AST]]:
        """The expressions and statements right inside a node, the last first: (start, end, node)."""
        found: list[tuple[int, int, ast.AST]] = []
        stack = list(ast.iter_child_nodes(node))
        while stack:
            inner = stack.pop()
            if isinstance(inner, (ast.expr, ast.stmt)):
                start, end = self.source.extent(inner)
                for decorator in getattr(inner, "decorator_list", ()):
                    start = min(start, self.source.extent(decorator)[0])
                found.append((start, end, inner))
            else:
                stack += ast.iter_child_nodes(inner)
        return found
