"""The edits of a probe copy, as byte ranges of one file; and what is left to a person."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.files import File
from transplt.text.source import splice


@dataclass(frozen=True, slots=True, order=True)
class Left:
    """What a probe copy cannot fix, or (`informs`) what is worth knowing of it."""

    path: str
    line: int
    message: str
    informs: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(slots=True)
class Edits:
    """What changes in one file. A range inside one that is replaced already is left alone."""

    file: File
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    probes: bool = False  #: whether `transplt_probe` is called

    def replace(self, node: ast.expr, text: str) -> None:
        """Another text for an expression."""
        self.span(*self.file.source.extent(node), text)

    def span(self, start: int, end: int, text: str) -> None:
        """Another text for a range; nothing where a change covers it."""
        if not any(begin <= start and end <= stop and begin != stop for begin, stop, _ in self.changes):
            self.changes.append((start, end, text))

    def around(self, node: ast.expr, before: str, after: str) -> None:
        """Texts right before and right behind an expression."""
        start, end = self.file.source.extent(node)
        self.span(start, start, before)
        self.span(end, end, after)

    def say(self, node: ast.AST, message: str, *, informs: bool = False) -> None:
        """A finding at a node."""
        self.left.append(Left(self.file.path, getattr(node, "lineno", 1), message, informs))

    def add_keyword(self, call: ast.Call, text: str) -> None:
        """`name=value` behind the other arguments of a call."""
        if not (call.args or call.keywords):
            end = self.file.source.extent(call)[1] - 1
            self.span(end, end, text)
            return
        end = max(end for _, end in self._arguments(call))
        self.span(end, end, f", {text}")

    def drop_keyword(self, call: ast.Call, keyword: ast.keyword) -> None:
        """The call without one keyword argument."""
        spans = self._arguments(call)
        at = spans.index(self.file.source.extent(keyword))
        if at:
            self.span(spans[at - 1][1], spans[at][1], "")
        else:
            self.span(spans[0][0], spans[1][0] if len(spans) > 1 else spans[0][1], "")

    def _arguments(self, call: ast.Call) -> list[tuple[int, int]]:
        extent = self.file.source.extent
        return sorted([*(extent(each) for each in call.args), *(extent(each) for each in call.keywords)])

    def result(self) -> bytes:
        """The file with its changes."""
        changes = sorted(((start, end, text.encode()) for start, end, text in self.changes), key=lambda each: each[:2])
        return self.file.source.encode(splice(self.file.source.utf8, changes))
