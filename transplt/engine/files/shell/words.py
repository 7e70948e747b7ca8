"""The words of a command in a shell script; what they mean is for transplt/flow/command_words.py."""

from __future__ import annotations

from tree_sitter import Node

from transplt.engine.files.shell.script import Script
from transplt.flow.command_words import Word


def words_of(script: Script, command: Node) -> list[Word]:
    """The words of a command from its name on, without what is assigned before it and what is redirected."""
    nodes = [child for child in command.named_children if child.type == "command_name"]
    nodes += command.children_by_field_name("argument")
    inner = ((node, node.named_children if node.type == "command_name" else ()) for node in nodes)
    held = ((node, below[0] if below else node) for node, below in inner)
    return [Word((node.start_byte, node.end_byte), script.text(node), script.plain(each), each) for node, each in held]
