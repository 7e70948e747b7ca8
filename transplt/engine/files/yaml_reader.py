"""The nodes of a YAML text with their places: libyaml's events, put together here; what it refuses ruamel.yaml reads.

libyaml reads YAML 1.1 and ruamel.yaml 1.2; both give a node the same text, and the editors take no values but texts.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Node:
    """A node of the tree: the characters `start` to `end`, anchor and tag among them; an empty `tag` is YAML's own."""

    start: int
    end: int
    tag: str
    value: Any


@dataclass(slots=True, eq=False)
class ScalarNode(Node):
    """A text; `style` is its quote, `|` or `>` of a block, empty for a plain one."""

    value: str
    style: str


@dataclass(slots=True, eq=False)
class SequenceNode(Node):
    """A list."""

    value: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MappingNode(Node):
    """Keys with their values, in the order of the text."""

    value: list[tuple[Node, Node]] = field(default_factory=list)


#: What libyaml says of a text that nests over 1,000 levels, since 0.2.6.
_TOO_DEEP = "nesting depth"


class NotYaml(Exception):
    """The text is no YAML."""


def compose(text: str) -> list[Node]:
    """The roots of all documents of a text. NotYaml where neither reader reads it."""
    mark = text.startswith("\ufeff")  # libyaml does not count it
    found = _by_libyaml(text[mark:], int(mark))
    return _by_ruamel(text) if found is None else found


# --- libyaml ---------------------------------------------------------------------------------------------------------


def _by_libyaml(text: str, before: int) -> list[Node] | None:
    """The roots as libyaml reads them, all places `before` characters further on; None where it is not there, or
    refuses the text. NotYaml for what nests too deep for it.

    Events are put together without recursion: a text may nest as deep as it likes.
    """
    try:
        import yaml
        from yaml.cyaml import CParser
    except ImportError:
        return None
    roots: list[Node] = []
    anchors: dict[str, Node] = {}
    #: The collections that are open, each with the key that waits for its value.
    held: list[tuple[Any, list[Node]]] = []
    try:
        parser = CParser(text)
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                start, end = before + event.start_mark.index, before + event.end_mark.index
                style = event.style or ""
                node: Node = ScalarNode(start, end, _tag(event.tag), event.value, "" if style == "\0" else style)
            elif kind is yaml.MappingStartEvent:
                node = MappingNode(before + event.start_mark.index, 0, _tag(event.tag))
            elif kind is yaml.SequenceStartEvent:
                node = SequenceNode(before + event.start_mark.index, 0, _tag(event.tag))
            elif kind is yaml.AliasEvent:
                if event.anchor not in anchors:
                    return None
                _put(roots, held, anchors[event.anchor])
                continue
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                held.pop()[0].end = before + event.end_mark.index
                continue
            elif kind is yaml.DocumentStartEvent:
                anchors.clear()
                continue
            elif kind is yaml.StreamEndEvent or event is None:
                return roots
            else:
                continue
            if event.anchor is not None:
                anchors[event.anchor] = node
            _put(roots, held, node)
            if kind is not yaml.ScalarEvent:
                held.append((node, []))
    except (yaml.YAMLError, UnicodeError) as error:
        if _TOO_DEEP in str(error):
            raise NotYaml from error
        return None


def _put(roots: list[Node], held: list[tuple[Any, list[Node]]], node: Node) -> None:
    """Put a node where it belongs: into the innermost collection that is open."""
    if not held:
        roots.append(node)
        return
    above, keys = held[-1]
    if type(above) is SequenceNode:
        above.value.append(node)
    elif keys:
        above.value.append((keys.pop(), node))
    else:
        keys.append(node)


def _tag(tag: str | None) -> str:
    """`new:pkg.Class` of `!new:pkg.Class`; empty for what stands for a type of YAML's own."""
    text = str(tag or "")
    return "" if text.startswith("tag:yaml.org,2002:") and "python/" not in text else text.lstrip("!")


# --- ruamel.yaml -----------------------------------------------------------------------------------------------------


def _by_ruamel(text: str) -> list[Node]:
    from ruamel.yaml import YAML, nodes
    from ruamel.yaml.error import YAMLError

    parser = YAML(typ="safe", pure=True)  # half the time of the one that keeps comments
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor that is used again
            return [_node_of(node, nodes, {}) for node in parser.compose_all(text) if node is not None]
    except (YAMLError, ValueError, RecursionError, AssertionError, AttributeError, LookupError, TypeError) as error:
        raise NotYaml from error  # the parser breaks in many ways over what is no YAML


def _node_of(node: Any, nodes: Any, known: dict[int, Node]) -> Node:
    """A node of ruamel.yaml as one of ours; what an alias repeats is the same node."""
    if id(node) in known:
        return known[id(node)]
    start, end, tag = node.start_mark.index, node.end_mark.index, _tag(node.tag)
    made: Node
    if isinstance(node.value, str):
        made = known[id(node)] = ScalarNode(start, end, tag, node.value, node.style or "")
    elif isinstance(node, nodes.MappingNode):
        made = known[id(node)] = MappingNode(start, end, tag)
        made.value = [(_node_of(key, nodes, known), _node_of(value, nodes, known)) for key, value in node.value]
    else:
        made = known[id(node)] = SequenceNode(start, end, tag)
        made.value = [_node_of(each, nodes, known) for each in node.value]
    return made
