"""The values of a YAML file: through anchors, aliases, merge keys and interpolations, which all lead to one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.edits.edit import Extent
from transplt.engine.files.config.values import MOST_ITEMS, WORD, Holder, Value
from transplt.engine.files.document import Document
from transplt.engine.files.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode, Yaml, read_yaml, text_lines

#: A value that is that of another key: OmegaConf's `${train.device}`, HyperPyYAML's `!ref <device>`.
_INTERPOLATION = re.compile(r"\$\{([\w.]+)\}")
_REFERENCE = re.compile(r"<([\w.]+)>")
_PROPERTIES = re.compile(rb"(?:[&!]\S*\s+)+")
#: Of so many nodes a configuration does not consist, aliases followed.
_MOST_NODES = 100_000
_SHORT = 200


class NotYaml(ValueError):
    """The text is no YAML, or too long for a configuration."""


def values(document: Document) -> list[Value]:
    """The values of a document that have a word of CUDA, or whose key has, in the order of the file."""
    yaml = read_yaml(document)
    if yaml is None:
        raise NotYaml
    reader = _Reader(document, yaml)
    for root in yaml.roots:
        reader.read(root)
    return reader.finished()


@dataclass(slots=True, eq=False)
class _Node(Holder):
    """A container, and what it was read from."""

    node: Node | None = None


class _Reader:
    def __init__(self, document: Document, yaml: Yaml) -> None:
        self.document, self.yaml = document, yaml
        self.found: dict[int, Value] = {}
        self.places: dict[tuple[str, ...], int] = {}  # path -> the scalar there
        self.readers: list[tuple[tuple[str, ...], Holder, str]] = []  # path of what is read -> by whom
        self.nodes = 0

    def read(self, root: Node) -> None:
        stack: list[tuple[Node, Holder | None, str, ScalarNode | None, str]] = [(root, None, "", None, "")]
        while stack:
            node, holder, name, key, before = stack.pop()
            self.nodes += 1
            if self.nodes > _MOST_NODES:
                raise NotYaml
            if isinstance(node, ScalarNode):
                if holder is not None:
                    self._scalar(node, holder, name, key, before)
                continue
            above = holder
            while isinstance(above, _Node) and above.node is not node:
                above = above.above
            if above is not None:
                continue  # an alias of what it stands in
            at = self._extents(key)[1] if key is not None and WORD.search(name) else None
            if holder is not None and at is not None:
                self.found.setdefault(id(node), Value.many(name, holder, at))
            here = _Node(name, holder, isinstance(node, SequenceNode), node.tag, node=node)
            stack.extend(reversed(list(self._inside(node, here))))

    def _inside(self, node: Node, here: Holder) -> Iterator[tuple[Node, Holder, str, ScalarNode | None, str]]:
        if isinstance(node, SequenceNode):
            before = ""
            for index, item in enumerate(node.value):
                yield item, here, str(index), None, before
                before = str(item.value) if isinstance(item, ScalarNode) else ""
                if index < MOST_ITEMS and len(before) <= _SHORT:
                    here.texts[str(index)] = before
        elif isinstance(node, MappingNode):
            for key, value in node.value:
                if not isinstance(key, ScalarNode):
                    continue
                name = str(key.value)
                if name == "<<" and isinstance(value, (MappingNode, SequenceNode)):
                    for merged in value.value if isinstance(value, SequenceNode) else [value]:
                        if isinstance(merged, MappingNode):
                            yield from self._inside(merged, here)
                    continue
                short = isinstance(value, ScalarNode) and len(str(value.value)) <= _SHORT
                here.texts[name] = str(value.value) if short else ""
                yield value, here, name, key, ""

    def _scalar(self, node: ScalarNode, holder: Holder, name: str, key: ScalarNode | None, before: str) -> None:
        text = str(node.value)
        path = (*holder.path(), name)
        self.places.setdefault(path, id(node))
        reference = _REFERENCE.fullmatch(text) if node.tag.endswith("ref") else _INTERPOLATION.fullmatch(text)
        if reference is not None:
            self.readers.append((tuple(reference[1].split(".")), holder, name))
        elif WORD.search(text) or WORD.search(name):
            known = self.found.get(id(node))
            if known is not None:
                known.others.append((holder, name))
                return
            whole, extent = self._extents(node)
            lines = text_lines(self.document, self.yaml, node) if node.style == "|" else None
            key_at = None if key is None else self._extents(key)[1]
            self.found[id(node)] = Value(text, name, holder, extent, whole, key_at, before, tuple(lines or ()))

    def _extents(self, node: ScalarNode) -> tuple[Extent, Extent | None]:
        """The bytes of a scalar without its anchor and tag, and those of its text: None where they are not its text."""
        start, end = self.yaml.extent(node)
        if (match := _PROPERTIES.match(self.document.utf8, start, end)) is not None:
            start = match.end()
        quoted = node.style in ("'", '"')
        inner = (start + 1, end - 1) if quoted else (start, end)
        same = node.style not in ("|", ">") and self.document.utf8[slice(*inner)].decode() == node.value
        return (start, end), inner if same else None

    def finished(self) -> list[Value]:
        for path, holder, name in self.readers:
            value = self.found.get(self.places.get(path, 0))
            if value is not None:
                value.others.append((holder, name))
        return sorted(self.found.values(), key=lambda value: value.whole)
