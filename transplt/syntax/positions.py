"""Which nodes hold a place of the text."""

from __future__ import annotations

import ast
from bisect import bisect_right
from itertools import pairwise

from transplt.base.text.source import Source


class Inside:
    """Which node inside of another one holds a byte offset; a block of 10,000 statements is gone through once.

    The way to a place is kept for the next one: the last `elif` of 1,000 is as deep, and so are those before it.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.known: dict[int, tuple[list[int], list[tuple[int, int, ast.AST]], bool]] = {}
        self._tree: ast.Module | None = None
        self._way: list[ast.AST] = []
        self._extents: list[tuple[int, int]] = []
        self._sure = 0  # so many nodes of the way each lie in the one before, and beside no other that holds a place

    def around(self, tree: ast.Module, at: int) -> list[ast.AST]:
        """The nodes around a byte offset, outermost first."""
        if self._tree is not tree:
            self._tree, self._sure = tree, 0
        kept = self._sure
        while kept and not self._extents[kept - 1][0] <= at < self._extents[kept - 1][1]:
            kept -= 1
        del self._way[kept:], self._extents[kept:]
        self._sure = kept
        inner = self._holding(self._way[-1] if kept else tree, at)
        while inner is not None:
            start, end, node, apart = inner
            within = not self._way or (self._extents[-1][0] <= start and end <= self._extents[-1][1])
            if apart and within and self._sure == len(self._way):
                self._sure += 1
            self._way.append(node)
            self._extents.append((start, end))
            inner = self._holding(node, at)
        return [*self._way]

    def _holding(self, node: ast.AST, at: int) -> tuple[int, int, ast.AST, bool] | None:
        if id(node) not in self.known:
            nodes = self._nodes(node)
            in_order = sorted(nodes, key=lambda item: item[:2])
            apart = all(before[1] <= after[0] for before, after in pairwise(in_order))
            self.known[id(node)] = [item[0] for item in in_order], in_order if apart else nodes, apart
        starts, nodes, apart = self.known[id(node)]
        if apart:
            before = bisect_right(starts, at)
            nodes = nodes[before - 1 : before] if before else []
        return next(((start, end, inner, apart) for start, end, inner in nodes if start <= at < end), None)

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
