"""A shell text and its tree: what can be read of it with certainty, and the plain words in it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from transplt.edits.edit import Extent
from transplt.engine.files.document import Document
from transplt.engine.files.twin_names import twins

#: What is longer is data: no person wrote it, and a parser that recovers from errors takes its time.
LONGEST = 1_000_000
#: An error that holds one of these shifts what stands behind it: a quote or a here-document that does not end.
_SHIFTS = re.compile(rb"['\"`]|<<")
#: Parts of a text that stands for itself.
_PLAIN = frozenset({"word", "number", "string_content"})
#: Shells of another grammar.
_OTHER_SHELL = re.compile(rb"#![^\n]*\b(?:t?csh|fish|pwsh|xonsh)\b")
_OTHER_NAMES = (".bat", ".ps1", ".cmd", ".fish", ".csh")


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


@dataclass(slots=True)
class Script:
    """The tree of a document. `lost`: from there on nothing in the tree is certain; `bad`: ranges around errors."""

    document: Document
    root: Node
    lost: int = 0
    bad: list[Extent] = field(default_factory=list)
    _bad: list[Extent] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _above: dict[int, Node] = field(default_factory=dict)
    _whole: dict[int, Node] = field(default_factory=dict)
    _or: dict[int, Node] = field(default_factory=dict)

    @property
    def for_both(self) -> bool:
        """True for a script that hosts with CUDA run, too: in the portable style, but for one of the NPU's own."""
        return self.document.settings.style == "portable" and bool(twins(self.document.path))

    def text(self, node: Node) -> str:
        """The source of a node."""
        return self.document.utf8[node.start_byte : node.end_byte].decode()

    def sound(self, node: Node) -> bool:
        """True for a node that no error stands near."""
        if node.end_byte > self.lost:
            return False
        if len(self._bad) != len(self.bad):
            self._bad = sorted(self.bad)
            self._ends = [*accumulate((end for _, end in self._bad), max)]
        before = bisect_left(self._bad, (node.end_byte,))  # those that begin before the node ends
        return not before or self._ends[before - 1] <= node.start_byte

    def above(self, node: Node) -> Node | None:
        """The node that holds another one, None for the root. tree-sitter looks for it from the root at each call."""
        self._place()
        return self._above.get(node.id)

    def whole_list(self, node: Node) -> Node:
        """`a && b && c` is a list in a list: the outermost of them, for a list that is the left side of another one.

        A list of 8,000 commands is as deep, and each of them would go up through all.
        """
        self._place()
        return self._whole.get(node.id, node)

    def list_or(self, node: Node) -> Node | None:
        """The innermost list `x || y` around a list that has it, or another of the same run, on its left."""
        self._place()
        return self._or.get(node.id)

    def _place(self) -> None:
        if self._above:
            return
        stack = [self.root]
        while stack:
            node = stack.pop()
            children = node.named_children
            for index, child in enumerate(children):
                self._above[child.id] = node
                if not index and node.type == child.type == "list":
                    self._whole[child.id] = self._whole.get(node.id, node)
                    outer = node if self.operator(node) == "||" else self._or.get(node.id)
                    if outer is not None:
                        self._or[child.id] = outer
            stack.extend(reversed(children))

    def operator(self, node: Node) -> str:
        """The sign between the sides of a list or a comparison."""
        sides = node.named_children
        return self.document.utf8[sides[0].end_byte : sides[-1].start_byte].decode("utf-8", "replace").strip()

    def walk(self, *types: str, below: Node | None = None, but: frozenset[int] = frozenset()) -> Iterator[Node]:
        """Nodes of these types (without any: all), in the order of the text; not below those in `but` (their ids)."""
        stack = [below or self.root]
        while stack:
            node = stack.pop()
            if node.id in but:
                continue
            if not types or node.type in types:
                yield node
            stack.extend(reversed(node.named_children))

    def plain(self, node: Node | None) -> str | None:
        """The value of a node in which nothing is expanded and nothing escaped; None for others. No node is empty."""
        if node is None:
            return ""
        if node.type == "raw_string":
            return self.text(node)[1:-1]
        if node.type == "concatenation":
            parts = [self.plain(child) for child in node.named_children]
            whole = sum(child.end_byte - child.start_byte for child in node.named_children)
            if None in parts or whole != node.end_byte - node.start_byte:
                return None
            return "".join(part for part in parts if part is not None)
        if node.type == "string":
            inner = self.text(node)[1:-1]
            named = all(child.type == "string_content" for child in node.named_children)
            return inner if named and "\\" not in inner else None
        text = self.text(node)
        return text if node.type in _PLAIN and not node.named_children and "\\" not in text else None


def read_script(document: Document) -> Script | None:
    """The tree of a shell text; None for a shell of another grammar, and for what is too long for a script."""
    utf8 = document.utf8
    if len(utf8) > LONGEST or b"\0" in utf8 or document.name.endswith(_OTHER_NAMES) or _OTHER_SHELL.match(utf8):
        return None
    text = utf8[:-1] + b" " if utf8.endswith(b"\\") else utf8  # a line that ends the file goes on with nothing
    script = Script(document, Parser(_language()).parse(text).root_node, lost=len(utf8))
    if script.root.has_error:
        _mark_errors(script)
    return script


def _mark_errors(script: Script) -> None:
    utf8 = script.document.utf8
    if script.root.type == "ERROR":
        script.lost = 0
        return
    stack = [(each, each) for each in script.root.children]  # with the statement of the script in which each stands
    while stack:
        node, top = stack.pop()
        if node.is_error or node.is_missing:
            if node.is_missing or _SHIFTS.search(utf8, node.start_byte, node.end_byte):
                script.lost = min(script.lost, top.start_byte)
            end = utf8.find(b"\n", top.end_byte)
            start = utf8.rfind(b"\n", 0, top.start_byte) + 1
            script.bad.append((start, len(utf8) if end < 0 else end))
        elif node.has_error:
            stack.extend((each, top) for each in node.children)


def errors(document: Document) -> int:
    """How many places of a shell text its grammar does not read."""
    script = read_script(document)
    return 0 if script is None else (len(script.bad) or int(script.root.has_error))
