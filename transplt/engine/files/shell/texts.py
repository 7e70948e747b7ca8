"""Texts in a script that people read, and names of its own: the words of CUDA in them stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Finds, Kept
from transplt.engine.files.shell.script import Script

#: A path, in two parts; and files that hold data, not what is to be installed or run.
_PATH = re.compile(r"""((?:[^\s"'=]*/)?)([^\s"'=/]+)""")
_DATA = re.compile(r".+\.(?:json|pth?|ckpt|log|csv|tsv|pkl|np[yz]|h5|png|jpe?g)")
_TERMINAL = re.compile(r"\d?>+&\d|>+ ?/dev/(?:stderr|null|tty)")
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_SAYS = frozenset("echo printf print warn die log info error usage".split())


def text_changes(script: Script) -> Finds:
    """What is printed, and the names of functions."""
    for node in script.walk("command"):
        if not _mentions(script, node) or not is_printed(script, node):
            continue
        for part in script.walk("string_content", "raw_string", "word", below=node):
            if _mentions(script, part):
                yield Kept((part.start_byte, part.end_byte), "text")
    yield from _functions(script)
    yield from _shown_documents(script)
    yield from _file_names(script)


def _mentions(script: Script, node: Node) -> bool:
    return mentions_cuda(script.document.utf8[node.start_byte : node.end_byte].lower())


def _functions(script: Script) -> Iterator[Kept]:
    own = {}
    for node in script.walk("function_definition"):
        name = node.child_by_field_name("name")
        if name is not None and _mentions(script, name):
            own[script.text(name)] = name
            yield Kept((name.start_byte, name.end_byte), "own-name")
    for node in script.walk("command_name") if own else ():
        if script.text(node) in own:
            yield Kept((node.start_byte, node.end_byte), "own-name")


def _file_names(script: Script) -> Iterator[Kept]:
    """Programs of the project and files of data that are called after CUDA: what is in them is looked at there."""
    own = {path.rpartition("/")[2] for path in script.document.project.modules.values()}
    for node in script.walk("word", "string_content", "raw_string"):
        if not _mentions(script, node):
            continue
        for match in _PATH.finditer(script.text(node)):
            folder, name = match.groups()
            if not mentions_cuda(folder.lower().encode()) and (name in own or _DATA.fullmatch(name)):
                start = node.start_byte + len(script.text(node)[: match.start(2)].encode())
                yield Kept((start, start + len(name.encode())), "address")


def _shown_documents(script: Script) -> Iterator[Kept]:
    """`cat <<EOF`, which shows a text."""
    for node in script.walk("redirected_statement"):
        body, outer = node.child_by_field_name("body"), script.above(node)
        documents = [child for child in node.named_children if child.type == "heredoc_redirect"]
        if body is None or script.text(body) != "cat" or len(documents) != 1 or len(node.named_children) != 2:
            continue
        parts = documents[0].named_children
        is_read = any(part.type.endswith(("redirect", "pipeline")) for part in parts)
        is_read = is_read or (outer is not None and outer.type == "pipeline")
        if is_read or not _mentions(script, node) or is_inside(script, node, *_SUBSTITUTIONS):
            continue
        for part in parts:
            if part.type == "heredoc_body":
                texts = [each for each in part.named_children if each.type == "heredoc_content"]
                for text in texts if part.named_children else [part]:
                    yield Kept((text.start_byte, text.end_byte), "text")


def is_inside(script: Script, node: Node, *types: str) -> bool:
    """True for what stands in a node of one of these types, which are no lists."""
    above = script.above(node)
    while above is not None:
        if above.type in types:
            return True
        above = script.above(script.whole_list(above))
    return False


def is_printed(script: Script, node: Node) -> bool:
    """True for what `echo` and `printf` show to people: on the terminal, not in a file, a pipe or a variable."""
    current: Node | None = node
    while current is not None and current.type != "command":
        if current.type in _SUBSTITUTIONS:
            return False
        current = script.above(script.whole_list(current))
    if current is None:
        return False
    name = current.child_by_field_name("name")
    if name is None or script.text(name) not in _SAYS:
        return False
    above = script.above(current)
    while above is not None and above.type in ("redirected_statement", "list", "pipeline", "command_substitution"):
        if above.type in ("pipeline", "command_substitution"):
            return False
        if above.type == "redirected_statement":
            redirects = [child for child in above.named_children if child.type.endswith("redirect")]
            if not all(_TERMINAL.fullmatch(script.text(each)) for each in redirects):
                return False
        above = script.above(script.whole_list(above))
    return True
