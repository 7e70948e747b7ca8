"""The tree of a YAML or JSON file with the places of its nodes: what an editor reads, and never what it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from transplt.base.text.source import Source
from transplt.edits.edit import Extent
from transplt.engine.files.document import Document
from transplt.engine.files.yaml_reader import MappingNode, Node, NotYaml, ScalarNode, SequenceNode, compose

#: What is longer is data: nothing is configured by it, and the parser takes its time.
LONGEST = 300_000
#: Strings, comments and tabs of a JSON file with comments.
_JSON = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*|/\*.*?\*/|\t", re.DOTALL)
#: From so many characters on the bytes of a place are counted from the last of these steps.
_STEP = 1024


@dataclass(frozen=True, slots=True)
class Pair:
    """A key of a mapping with its value, and the keys above it, the nearest last."""

    key: ScalarNode
    value: Node
    above: tuple[str, ...]
    mapping: MappingNode

    @property
    def name(self) -> str:
        return self.key.value


@dataclass(slots=True)
class Yaml:
    """The documents of a file, and the byte offsets of their nodes."""

    text: str
    roots: list[Node]
    _bytes: list[int] = field(default_factory=list)

    def extent(self, node: Node) -> Extent:
        """The bytes of a node, quotes and all; of a block without the line end behind it."""
        text = self.text[node.start : node.end]
        return self.offset(node.start), self.offset(node.start + len(text.rstrip()))

    def offset(self, index: int) -> int:
        """The byte offset of a character."""
        if self.text.isascii():
            return index
        if not self._bytes:
            self._bytes = [0]
            for at in range(0, len(self.text), _STEP):
                self._bytes.append(self._bytes[-1] + len(self.text[at : at + _STEP].encode()))
        step = index // _STEP
        return self._bytes[step] + len(self.text[step * _STEP : index].encode())

    def pairs(self) -> Iterator[Pair]:
        """The keys of all mappings, in the order of the file; what an alias repeats is seen once."""
        seen: set[int] = set()
        stack: list[tuple[Node, tuple[str, ...]]] = [(root, ()) for root in reversed(self.roots)]
        while stack:
            node, above = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, SequenceNode):
                stack.extend((item, above) for item in reversed(node.value))
            elif isinstance(node, MappingNode):
                inner = []
                for key, value in node.value:
                    if isinstance(key, ScalarNode):
                        yield Pair(key, value, above, node)
                        inner.append((value, (*above, key.value)))
                stack.extend(reversed(inner))


def read_yaml(document: Document) -> Yaml | None:
    """The tree of a document; None for one that is no YAML, or too long to be a configuration."""
    if len(document.utf8) > LONGEST:
        return None
    return _composed(document.utf8, document.name.endswith((".json", ".jsonc")))


@lru_cache(maxsize=4)  # an edited file is looked at before and after
def _composed(utf8: bytes, is_json: bool) -> Yaml | None:
    text = read = utf8.decode()
    if is_json:
        read = _JSON.sub(_without_comments, text)
    try:
        return Yaml(text, compose(read))
    except NotYaml:
        return None


def _without_comments(match: re.Match[str]) -> str:
    """A comment or a tab as so many blanks; a string as it is."""
    if match[0].startswith('"'):
        return match[0]
    return "".join(each if each in "\r\n" else " " for each in match[0])


def scalars(node: Node) -> Iterator[ScalarNode]:
    """A scalar, or the scalars of a list."""
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, SequenceNode):
        yield from (item for item in node.value if isinstance(item, ScalarNode))


def below(node: Node, *keys: str) -> Node | None:
    """What a mapping holds under a key, under a key of that, and so on."""
    for name in keys:
        if not isinstance(node, MappingNode):
            return None
        found = next((value for key, value in node.value if isinstance(key, ScalarNode) and key.value == name), None)
        if found is None:
            return None
        node = found
    return node


def text_lines(document: Document, yaml: Yaml, node: ScalarNode) -> list[Extent] | None:
    """The byte ranges that make up the text of a scalar as it is read, a range for each line of a block.

    None for one whose text is written otherwise than it is read: folded, escaped, or over several lines in quotes.
    """
    start, end = yaml.extent(node)
    raw = document.utf8[start:end]
    if node.style in ("'", '"'):
        inner = raw[1:-1]
        plain = b"\n" not in raw and b"\\" not in raw and b"''" not in inner
        return [(start + 1, end - 1)] if plain and inner.decode() == node.value else None
    if node.style == "|":
        return _block(document.utf8, start, end, node.value)
    if node.style == ">":
        return None
    return [(start, end)] if raw.decode() == node.value else None


def folded_lines(document: Document, yaml: Yaml, node: ScalarNode) -> tuple[Document, list[Extent]] | None:
    """The same for a folded text (`>`, or plain over several lines), in a document with a blank for each fold.

    None for one whose lines are not joined by one blank each: with empty lines or deeper ones between them, in quotes.
    """
    start, end = yaml.extent(node)
    utf8 = document.utf8
    if node.style not in (">", ""):
        return None
    at = utf8.find(b"\n", start, end) + 1 if node.style == ">" else start
    lines: list[Extent] = []
    while 0 < at < end:
        stop = utf8.find(b"\n", at, end) + 1 or end
        text = utf8[at:stop]
        lines.append((at + len(text) - len(text.lstrip(b" ")), stop))
        at = stop
    if len(lines) < 2:
        return None
    joined = bytearray(utf8)
    for _, last in lines[:-1]:
        joined[last - 1 : last] = b" "
        if joined[last - 2] == 13:
            joined[last - 2 : last - 1] = b" "
    read = b" ".join(utf8[first:last].rstrip(b"\r\n") for first, last in lines).decode()
    if read.rstrip() != node.value.rstrip():
        return None
    return replace(document, source=Source(bytes(joined))), lines


def _block(utf8: bytes, start: int, end: int, value: str) -> list[Extent] | None:
    at = utf8.find(b"\n", start, end) + 1
    if not at:
        return None
    indent, lines = -1, []
    while at < end:
        stop = utf8.find(b"\n", at, end) + 1 or end
        line = utf8[at:stop]
        if line.strip():
            if indent < 0:
                indent = len(line) - len(line.lstrip(b" "))
            lines.append((at + indent, stop))
        else:
            lines.append((stop - len(line.lstrip(b" \t")), stop))
        at = stop
    text = b"".join(utf8[first:last] for first, last in lines).decode().replace("\r\n", "\n")
    return lines if text.rstrip() == value.rstrip() else None


__all__ = ["LONGEST", "MappingNode", "Node", "Pair", "ScalarNode", "SequenceNode", "Yaml", "below",
           "folded_lines", "read_yaml", "scalars", "text_lines"]  # fmt: skip
