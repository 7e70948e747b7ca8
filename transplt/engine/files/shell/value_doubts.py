"""Why a value that the shell works out is none for an NPU: what NVIDIA's driver gives for it, through variables too.

What is known of one value goes to all that read it, once for the whole script, and not from each place back to where
its values come from: scripts in which a thousand variables hand on one value are read as fast as others.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Iterator

from tree_sitter import Node

from transplt.edits.edit import Extent
from transplt.engine.files.shell.script import Script
from transplt.rules.environment import refused

#: What finds devices by NVIDIA's driver.
_ASKS_DRIVER = re.compile(rb"nvidia-smi|gpustat|nvidia_smi|nvml|\buuid\b|GPU-|MIG-", re.I)
#: The variable whose value is a list of devices.
_LIST = "CUDA_VISIBLE_DEVICES"
_DEFAULTS = frozenset({":-", "-", ":=", "="})
_READS = frozenset({"simple_expansion", "expansion"})
#: What a reason is handed to: a value, the inside of a node, and a variable where it is the whole value or a part.
_VALUE, _INSIDE, _WHOLE, _PART = "value", "inside", "whole", "part"
_Key = tuple[str, Hashable]


class Doubts:
    """The reasons for the values of one script. They are worked out when the first one is asked for."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._values: list[Node] = []
        self._questions: list[Extent] = []
        self._goes_to: dict[_Key, list[_Key]] = {}
        self._reasons: dict[bool, dict[_Key, str]] = {}

    def why(self, name: str, value: Node) -> str:
        """Why the value, which the variable `name` gets, is none for an NPU; empty where nothing is seen."""
        is_list = name == _LIST
        if is_list not in self._reasons:
            self._reasons[is_list] = self._work_out(is_list)
        return self._reasons[is_list].get((_VALUE, value.id), "")

    def _work_out(self, is_list: bool) -> dict[_Key, str]:
        """The reasons of all values; `is_list`: a list of devices that is none is a reason too."""
        if not self._goes_to:
            text = self._script.document.utf8
            self._questions = [match.span() for match in _ASKS_DRIVER.finditer(text)]
            for node in self._script.walk():
                self._read(node)
        found: dict[_Key, str] = {}
        for value in self._values:
            if why := self._own(value, is_list):
                found[_VALUE, value.id] = why
        waiting = deque(found)
        while waiting:
            key = waiting.popleft()
            for other in self._goes_to.get(key, ()):
                if other not in found:
                    found[other] = found[key]
                    waiting.append(other)
        return found

    def _own(self, value: Node, is_list: bool) -> str:
        """The reason in the text of a value by itself."""
        at = bisect_left(self._questions, (value.start_byte, 0))
        if at < len(self._questions) and self._questions[at][1] <= value.end_byte:
            start, end = self._questions[at]
            return _from_driver(self._script.document.utf8[start:end].decode())
        text = self._script.plain(value) if is_list else None
        return "" if text is None else refused(_LIST, text)

    def _read(self, node: Node) -> None:
        for child in node.named_children:
            self._leads((_INSIDE, child.id), (_INSIDE, node.id))
        if node.type in _READS:
            for name in self._name(node):
                self._leads((_PART, name), (_INSIDE, node.id))
        if node.type == "variable_assignment":
            target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if target is not None and value is not None:
                self._value(value)
                name = self._script.text(target)
                self._leads((_VALUE, value.id), (_WHOLE, name))
                # Of a part of the value, or of a changed one, the list is not the value.
                if self._script.plain(value) is None:
                    self._leads((_VALUE, value.id), (_PART, name))
        elif node.type == "expansion" and (value := default_of(node)) is not None:
            self._value(value)

    def _value(self, value: Node) -> None:
        self._values.append(value)
        self._leads((_INSIDE, value.id), (_VALUE, value.id))
        for read in (value, *value.named_children):
            if read.type in _READS:
                for name in self._name(read):
                    self._leads((_WHOLE, name), (_VALUE, value.id))

    def _name(self, read: Node) -> Iterator[str]:
        """The variable that an expansion reads."""
        inner = next((child for child in read.named_children if child.type == "variable_name"), None)
        if inner is not None:
            yield self._script.text(inner)

    def _leads(self, one: _Key, other: _Key) -> None:
        self._goes_to.setdefault(one, []).append(other)


def asked_of_driver(text: str) -> str:
    """Why a text is none for an NPU, by itself; empty where nothing is seen."""
    match = _ASKS_DRIVER.search(text.encode())
    return "" if match is None else _from_driver(match[0].decode())


def _from_driver(word: str) -> str:
    """The reason for a value that NVIDIA's driver gives; `word` is what asks it."""
    return f"its value comes from NVIDIA's driver ({word})"


def default_of(expansion: Node) -> Node | None:
    """The word that stands in for a variable: `0` in `${X:-0}`."""
    if not any(child.type in _DEFAULTS for child in expansion.children):
        return None
    children = expansion.named_children
    return children[-1] if len(children) > 1 else None
