"""What recipes in YAML and JSON have in common: names of images, and variables that a container or a step gets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Extent, Finds, Note
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_lines
from transplt.engine.files.exec_form import Item, list_changes
from transplt.engine.files.kind import FileKind
from transplt.engine.files.variables import DEVICES, variable_set
from transplt.engine.files.yaml_nodes import (
    MappingNode,
    Node,
    Pair,
    ScalarNode,
    SequenceNode,
    Yaml,
    below,
    folded_lines,
    scalars,
    text_lines,
)
from transplt.flow.command_words import Word, split
from transplt.rules.containers import image_text, is_cuda_image

IMAGE = "NPU850"
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTES = re.compile(r"[\"'`\\]|\$\(")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A document, its tree, and what stands in it."""

    document: Document
    yaml: Yaml

    def extent(self, node: Node) -> Extent:
        return self.yaml.extent(node)

    def from_to(self, first: Node, last: Node) -> Extent:
        """From the first byte of a node to the last of another."""
        return self.extent(first)[0], self.extent(last)[1]

    def devices(self, extent: Extent, message: str, api: str, help_: str) -> Note:
        """That a place asks for NVIDIA's cards."""
        return Note(extent, DEVICES, Level.MANUAL, message, api, help_, Effort.LOW)

    def image(self, node: Node) -> Finds:
        """What is found of the name of an image."""
        if isinstance(node, ScalarNode) and is_cuda_image(str(node.value)):
            name, told = str(node.value), self.document
            help_ = image_text(told.settings, told.target, "image", name, told.project.imported)
            message = f"the image {name} is built on CUDA"
            yield Note(self.extent(node), IMAGE, Level.MANUAL, message, name, help_, Effort.MEDIUM)

    def environment(self, node: Node) -> Finds:
        """Variables of a mapping, of a list of `NAME=value`, and of a list of `name:` and `value:`."""
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if isinstance(key, ScalarNode) and isinstance(value, ScalarNode):
                    yield from self._variable(key, value, self.from_to(key, value))
        elif isinstance(node, SequenceNode):
            for item in node.value:
                yield from self._item(item)

    def shell(self, node: ScalarNode) -> Finds:
        """What the shell's editors find in a text that is one command, or a script."""
        lines = text_lines(self.document, self.yaml, node)
        if lines:
            yield from in_lines(self.document, lines, FileKind.SHELL)
        elif (folded := folded_lines(self.document, self.yaml, node)) is not None:
            yield from in_lines(*folded, FileKind.SHELL)

    def started(self, first: Node | None, then: Node | None) -> Finds:
        """What is found of a command (`entrypoint`) and of what it is given besides (`command`), as texts or lists."""
        parts = [node for node in (first, then) if isinstance(node, (ScalarNode, SequenceNode))]
        if len(parts) == 1 and isinstance(parts[0], ScalarNode):
            yield from self.shell(parts[0])
            return
        items = [item for node in parts for item in self._words(node)]
        yield from list_changes(self.document, items)

    def _words(self, node: ScalarNode | SequenceNode) -> Iterator[Item]:
        """The words of a list; those of a text, where it is nothing but words."""
        for each in scalars(node):
            text, lines = str(each.value), text_lines(self.document, self.yaml, each) or []
            extent = (lines[0][0], lines[-1][1]) if lines else self.extent(each)
            if isinstance(node, ScalarNode) and len(lines) == 1 and not _QUOTES.search(text):
                yield from (Item(word, (word.extent,)) for word in split(text, extent[0]))
            else:
                yield Item(Word(extent, text, text), tuple(lines))

    def _item(self, item: Node) -> Finds:
        if isinstance(item, ScalarNode) and "=" in str(item.value):
            name, _, value = str(item.value).partition("=")
            start, end = self.extent(item)
            begin = start + (1 if item.style in ("'", '"') else 0)
            at = (begin, begin + len(name.encode()))
            if self.document.utf8[at[0] : at[1]] == name.encode():
                yield from self._set(name, at, value, (start, end))
            return
        name_node, value_node = below(item, "name"), below(item, "value")
        if isinstance(name_node, ScalarNode) and isinstance(value_node, ScalarNode):
            one, other = self.extent(name_node), self.extent(value_node)
            yield from self._variable(name_node, value_node, (min(one[0], other[0]), max(one[1], other[1])))

    def _variable(self, key: ScalarNode, value: ScalarNode, whole: Extent) -> Finds:
        start, end = self.extent(key)
        quote = 1 if key.style else 0
        if self.document.utf8[start + quote : end - quote] == key.value.encode():
            yield from self._set(key.value, (start + quote, end - quote), value.value, whole)

    def _set(self, name: str, at: Extent, value: str, whole: Extent) -> Finds:
        if _NAME.fullmatch(name):
            yield from variable_set(self.document, name, at, value, whole)


def is_environment(pair: Pair) -> bool:
    """True for a key under which a recipe sets variables."""
    return pair.name in ("environment", "env", "variables", "containerEnv", "remoteEnv")
