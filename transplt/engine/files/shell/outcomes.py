"""What comes of a script where a command that it calls is not there: it stops, goes on, or never gets to the call.

bash's manual, "The Set Builtin" (`-e`), "Lists of Commands": the exit status of a command before `||`, `&&`, `|` other
than the last, behind `!` and in the test of `if` and `while` stops no script.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from transplt.edits.edit import Extent
from transplt.engine.files.kind import FileKind
from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.texts import is_inside

#: The command is not there: `stops` the script, `goes on`, with a value in its place (`falls back`), `unreached`.
STOPS, GOES_ON, FALLS_BACK, UNREACHED = "stops", "goes on", "falls back", "unreached"
_SETS_E = re.compile(
    rb"^[^#\n]*\bset[ \t]+(?:-\w+[ \t]+)*(?:-[a-zA-Z]*e\w*|-o[ \t]+errexit)\b|^#![^\n]*[ \t]-\w*e", re.M
)
_LOOKS = r"(?:command[ \t]+-[vV]|which|type|hash)[ \t]+(?:-\w+[ \t]+)*"
_NOT = re.compile(r"!")
#: What ends a script, or counts as its failure.
_ENDS = re.compile(r"\b(?:exit|return|die|fail|abort|false|kill)\b")
#: Recipes in which a command that fails ends the step: of a container's build, of a CI service, of make.
_EACH_COUNTS = frozenset({FileKind.DOCKER, FileKind.NATIVE, FileKind.CONFIG})


def outcome(script: Script, node: Node, tool: str) -> str:
    """What comes of a call of a tool that is not there."""
    asks = re.compile(rf"{_LOOKS}[\"']?(?:\S*/)?{re.escape(tool)}\b|-x[ \t]+\S*{re.escape(tool)}\b")
    held = False  # its status decides something, or is caught
    read = False
    for below, above in _way(script, node):
        match above.type:
            case "list":
                left, right = above.named_children[0], above.named_children[-1]
                operator = script.operator(above)
                if below == right and operator == "&&" and _asks_for_it(script, left, asks):
                    return UNREACHED
                if below == left and operator == "||":
                    if _ENDS.search(script.text(right)):
                        return STOPS
                    return FALLS_BACK if read or is_inside(script, above, "command_substitution") else GOES_ON
                held = held or (below == left and operator == "&&")
            case "if_statement" if _reached_if(script, below, above, asks):
                return UNREACHED
            case "if_statement" | "elif_clause" | "while_statement":
                held = held or is_test(above, below)
            case "command_substitution":
                read = True
            case "negated_command":
                held = True
            case "pipeline" if below != above.named_children[-1]:
                held = read = True
    if read or held:
        return STOPS if _guards_an_end(script, node) or read else GOES_ON
    return STOPS if script.document.host in _EACH_COUNTS or _sets_e(script, node.start_byte) else GOES_ON


def answer(script: Script, node: Node) -> str:
    """What comes of a question whether a tool is there (`command -v tool`), whose answer is no."""
    return STOPS if _guards_an_end(script, node) else GOES_ON


def guarded(script: Script, node: Node) -> list[Node]:
    """The commands that run only where the answer to a question is yes; nothing where others depend on it too."""
    for below, above in _way(script, node):
        if above.type == "list":
            left, right = above.named_children[0], above.named_children[-1]
            operator = script.operator(above)
            above = _caught(script, above)
            outer = script.above(above)
            if below == left and operator == "&&" and outer is not None and outer.type != "list":
                return list(script.walk("command", below=right))
            return []
        if above.type == "if_statement":
            if not is_test(above, below) or any(each.type in ("else_clause", "elif_clause") for each in above.children):
                return []
            then = next((each.start_byte for each in above.children if each.type == "then"), above.end_byte)
            found = list(script.walk("command", "variable_assignment", below=above))
            return [each for each in found if each.start_byte >= then]
        if above.type not in ("redirected_statement",):
            return []
    return []


def _way(script: Script, node: Node) -> Iterator[tuple[Node, Node]]:
    """Each node with the one above it, up to the top. Of a list in lists the first, and the next one that has `||`:
    what is joined by `&&` says no more than the first does.
    """
    while (above := script.above(node)) is not None:
        yield node, above
        if node.type != "list" or above.type != "list":
            node = above
        elif (outer := script.list_or(above)) is None:
            node = script.whole_list(above)
        else:
            yield outer.named_children[0], outer
            node = outer


def _sets_e(script: Script, before: int) -> bool:
    """True where a script is told in front of a place to stop at the first command that fails."""
    first = _first_set_e(script.document.utf8)
    if first is None or first[0] > before:
        return False
    return first[1] <= before or _SETS_E.search(script.document.utf8, first[0], before) is not None


@lru_cache(4)
def _first_set_e(utf8: bytes) -> Extent | None:
    found = _SETS_E.search(utf8)
    return None if found is None else found.span()


def _caught(script: Script, node: Node) -> Node:
    """`node || true` for a list behind which nothing depends on how it ends."""
    above = script.above(node)
    if above is None or above.type != "list" or above.named_children[0] != node:
        return node
    right = above.named_children[-1]
    harmless = script.operator(above) == "||" and script.text(right).strip() in ("true", ":")
    return above if harmless else node


def _asks_for_it(script: Script, node: Node, asks: re.Pattern[str]) -> bool:
    utf8 = script.document.utf8
    starts, ends = _spans(utf8, asks.pattern.encode())
    at = bisect_left(starts, node.start_byte)
    return at < len(ends) and ends[at] <= node.end_byte and utf8.find(b"!", node.start_byte, node.end_byte) < 0


@lru_cache(4)
def _spans(utf8: bytes, pattern: bytes) -> tuple[list[int], list[int]]:
    """Where the matches of a pattern begin and end; each side of a long list asks for those in it."""
    spans = [found.span() for found in re.finditer(pattern, utf8)]
    return [start for start, _ in spans], [end for _, end in spans]


def is_test(above: Node, below: Node) -> bool:
    """True for what stands before `then` or `do`."""
    starts = next((child.start_byte for child in above.children if child.type in ("then", "do", "do_group")), None)
    return starts is not None and below.end_byte <= starts


def _reached_if(script: Script, below: Node, above: Node, asks: re.Pattern[str]) -> bool:
    """True for a branch of `if` that is taken where the tool is there."""
    if below.type in ("else_clause", "elif_clause") or is_test(above, below):
        return False
    then = next((child.start_byte for child in above.children if child.type == "then"), above.end_byte)
    test = script.document.utf8[above.start_byte : then].decode("utf-8", "replace")
    return asks.search(test) is not None and _NOT.search(test) is None and "||" not in test


def _guards_an_end(script: Script, node: Node) -> bool:
    """True where the script ends if the status of a command is not zero."""
    for below, above in _way(script, node):
        if above.type == "list":
            left, right = above.named_children[0], above.named_children[-1]
            if below == left and script.operator(above) == "||":
                return _ENDS.search(script.text(right)) is not None
        elif above.type == "if_statement" and is_test(above, below):
            then = next((child.start_byte for child in above.children if child.type == "then"), above.end_byte)
            test = script.document.utf8[above.start_byte : then].decode("utf-8", "replace")
            other = next((child for child in above.children if child.type == "else_clause"), None)
            if _NOT.search(test):
                branch = script.document.utf8[then : other.start_byte if other else above.end_byte].decode()
            else:
                branch = "" if other is None else script.text(other)
            return _ENDS.search(branch) is not None
    return False
