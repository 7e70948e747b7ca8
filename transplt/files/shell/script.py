"""A shell text and its tree: what can be read of it with certainty, and the plain words in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from transplt.edits.edit import Extent
from transplt.files.document import Document

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

    def text(self, node: Node) -> str:
        """The source of a node."""
        return self.document.utf8[node.start_byte : node.end_byte].decode()

    def sound(self, node: Node) -> bool:
        """True for a node that no error stands near."""
        return node.end_byte <= self.lost and not any(a < node.end_byte and node.start_byte < b for a, b in self.bad)

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
    script = Script(document, Parser(_language()).parse(utf8).root_node, lost=len(utf8))
    if script.root.has_error:
        _mark_errors(script)
    return script


def _mark_errors(script: Script) -> None:
    utf8 = script.document.utf8
    if script.root.type == "ERROR":
        script.lost = 0
        return
    stack = [script.root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            if node.is_missing or _SHIFTS.search(utf8, node.start_byte, node.end_byte):
                script.lost = min(script.lost, _top(node).start_byte)
            top = _top(node)
            end = utf8.find(b"\n", top.end_byte)
            start = utf8.rfind(b"\n", 0, top.start_byte) + 1
            script.bad.append((start, len(utf8) if end < 0 else end))
        elif node.has_error:
            stack.extend(node.children)


def _top(node: Node) -> Node:
    """The statement of the script in which a node stands."""
    while node.parent is not None and node.parent.parent is not None:
        node = node.parent
    return node


def errors(document: Document) -> int:
    """How many places of a shell text its grammar does not read."""
    script = read_script(document)
    return 0 if script is None else (len(script.bad) or int(script.root.has_error))
