"""Programs in a shell script: `python -c`, here-documents, commands in strings. Each is a piece of its own language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Extent, Finds, Note, extent_of
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_lines
from transplt.engine.files.install_commands import install_commands
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.shell.build_time import left_as_it_is
from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_words import SHELLS, Word, base, is_python, started, unwrapped
from transplt.rules.packages import is_bound, package_installed_as

#: Commands that run a string as a shell does, somewhere.
_RUN_STRINGS = frozenset({"eval", "ssh", "tmux", "screen", "watch", "parallel", "pdsh", "su", "runuser", "script"})
_WRITE = ("cat", "tee")
_READ_SCRIPTS = frozenset({"sbatch", "qsub", "bsub", "ssh", *SHELLS})
#: What the shell changes in a here-document or in double quotes.
_WORKED_OUT = re.compile(r"[$`\\]")
_ESCAPED = re.compile(r"\\[$`\"\\]")
_QUOTED_EXPANSION = re.compile(r"'[^']*\$")
_HEREDOC = re.compile(rb"<<(-?)[ \t]*(\\?['\"]?)([\w.!-]+)")
#: A word that is the value of a variable.
_HOLDS = re.compile(r'"?\$\{?(.*?)\}?"?')
_Piece = tuple[Node, FileKind, list[Extent], str]


def embedded_changes(script: Script) -> Iterator[tuple[Node, Finds]]:
    """Nodes that are programs of their own, with their findings."""
    for node, kind, extents, forbidden in _pieces(script):
        if script.sound(node):
            document = script.document
            runs = kind is not FileKind.PYTHON or not _is_written(script, node)
            found = _within(replace(document, building=document.building and runs), kind, extents, forbidden)
            lacking = _installed_if(script, node) if kind is FileKind.PYTHON else ""
            yield node, _left(found, lacking) if lacking else found


def _installed_if(script: Script, node: Node) -> str:
    """The package without a version for NPUs that is installed where a condition holds: `if python -c "..."; then`."""
    above = script.above(node)
    while above is not None and above.type not in ("if_statement", "subshell", "compound_statement", "program"):
        node, above = above, script.above(above)
    if above is None or above.type != "if_statement" or node not in above.children_by_field_name("condition"):
        return ""
    parts = [each for each in above.named_children if each.start_byte >= node.end_byte]
    ran = "\n".join(script.text(each) for each in parts if each.type not in ("else_clause", "elif_clause"))
    for name in (each.name for command in install_commands(ran) for each in command.requirements):
        if any(map(is_bound, (package_installed_as(name) or {}).get("import", ()))):
            return name
    return ""


def _left(found: Finds, lacking: str) -> Finds:
    """What was found in a condition that guards a package without a version for NPUs: hosts with NPUs do without it."""
    for each in found:
        start, end = extent_of(each)
        if not isinstance(each, Edit):
            yield each
        elif end > start:
            yield Note(
                (start, end), "NPU270", Level.MANUAL,
                f"this condition leads to code that needs CUDA ({lacking}); it is not changed, and the NPU takes the "
                "other branch",
                each.api, "check that the other branch is right on the NPU", Effort.LOW,
            )  # fmt: skip


def _is_written(script: Script, node: Node) -> bool:
    """True for a here-document that becomes a file: `cat > train.py <<EOF`."""
    redirect = script.above(node) if node.type == "heredoc_body" else None
    statement = script.above(redirect) if redirect is not None else None
    command = statement.child_by_field_name("body") if statement is not None else None
    words = words_of(script, command) if command is not None else []
    return bool(words) and base(words[0]) in _WRITE


def _within(document: Document, kind: FileKind, extents: list[Extent], forbidden: str) -> Finds:
    """The changes of a piece, without edits that write what its quotes do not let through."""
    found = list(in_lines(document, extents, kind))
    if document.building and kind is FileKind.PYTHON:
        found = list(left_as_it_is(document, found))
    lost = {
        each.group or str(id(each))
        for each in found
        if isinstance(each, Edit) and any(sign in str(each.new) for sign in forbidden)
    }
    yield from (each for each in found if not (isinstance(each, Edit) and (each.group or str(id(each))) in lost))


def _pieces(script: Script) -> Iterator[_Piece]:
    run: set[str] | None = None
    for node in script.walk("command", "redirected_statement", "variable_assignment"):
        if node.type == "command":
            words = words_of(script, node)
            yield from _strings(script, words)
        elif node.type == "redirected_statement":
            yield from _here_document(script, node)
        else:
            run = _run_variables(script) if run is None else run
            yield from _held_command(script, node, run)


def _strings(script: Script, words: Sequence[Word]) -> Iterator[_Piece]:
    run = unwrapped(words)
    python = next((at for at, word in enumerate(words) if is_python(word)), len(words))
    shell = next((at for at, word in enumerate(words) if base(word) in SHELLS), len(words))
    runs_strings = bool(run) and base(run[0]) in _RUN_STRINGS  # `ssh host "..."`
    for at, word in enumerate(words[1:], 1):
        before = words[at - 1]
        if word.node is None or word.node.type not in ("string", "raw_string"):
            continue
        is_argument = shell < at - 1 and re.fullmatch(r"-\w*c", before.source)  # `bash -c "..."`
        if base(before) == "-c" and python < at - 1:
            yield from _quoted(script, word.node, FileKind.PYTHON)
        elif is_argument or (runs_strings and re.search(r"\s", word.source)):
            yield from _quoted(script, word.node, FileKind.SHELL)


def _quoted(script: Script, node: Node, kind: FileKind) -> Iterator[_Piece]:
    """The piece between quotes, where its bytes are what the program gets to read."""
    text = script.text(node)[1:-1]
    extents = [(node.start_byte + 1, node.end_byte - 1)]
    if node.type == "raw_string":
        yield node, kind, extents, "'"
        return
    worked_out = _WORKED_OUT if kind is FileKind.PYTHON else _ESCAPED
    if not worked_out.search(text) and not _QUOTED_EXPANSION.search(text):
        yield node, kind, extents, '"$`\\!'


def _held_command(script: Script, node: Node, run: set[str]) -> Iterator[_Piece]:
    """`CMD="python train.py --device cuda"`, which `$CMD` or `eval $CMD` runs; `run`: the variables that are run."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None or value.type not in ("string", "raw_string"):
        return
    if script.text(name) in run:
        yield from _quoted(script, value, FileKind.SHELL)


def _run_variables(script: Script) -> set[str]:
    """The variables whose values the script runs as commands."""
    found = set()
    for command in script.walk("command"):
        words = words_of(script, command)
        for word in words[:1] if not words or base(words[0]) not in ("eval", "exec") else words[1:2]:
            if (match := _HOLDS.fullmatch(word.source)) is not None:
                found.add(match[1])
    return found


def _here_document(script: Script, node: Node) -> Iterator[_Piece]:
    document = next((child for child in node.named_children if child.type == "heredoc_redirect"), None)
    if document is None:
        return
    body = next((child for child in document.named_children if child.type == "heredoc_body"), None)
    end = next((child for child in document.named_children if child.type == "heredoc_end"), None)
    if body is None or end is None or sum(child.type == "heredoc_redirect" for child in node.named_children) > 1:
        return
    utf8 = script.document.utf8
    opening = _HEREDOC.match(utf8, document.start_byte)
    line = utf8.find(b"\n", document.start_byte) + 1
    last = utf8.rfind(b"\n", 0, end.start_byte) + 1
    if opening is None or not line <= last:
        return
    text = utf8[line:last].decode()
    kind = _kind_of_reader(script, node, document, text)
    if kind is None:
        return
    if not opening[2] and (_WORKED_OUT if kind is not FileKind.SHELL else _ESCAPED).search(text):
        return
    extents = list(_lines(utf8, line, last)) if opening[1] else [(line, last)]
    yield body, kind, extents, "" if opening[2] else "$`\\"


def _lines(utf8: bytes, start: int, end: int) -> Iterator[Extent]:
    """The lines of a here-document without the tabs that `<<-` takes away."""
    while start < end:
        stop = utf8.find(b"\n", start, end) + 1 or end
        while start < stop and utf8[start : start + 1] == b"\t":
            start += 1
        yield start, stop
        start = stop


def _kind_of_reader(script: Script, node: Node, document: Node, text: str) -> FileKind | None:
    """The kind of what a here-document holds, by who reads it; None where that is not known."""
    command = node.child_by_field_name("body")
    if command is None or command.type != "command":
        return None
    words = words_of(script, command)
    run = unwrapped(words)
    if path := _written_file(script, [*node.named_children, *document.named_children], words):
        kind = FileKind.PYTHON if path.endswith(".py") else kind_of(path, text.encode())
        return None if kind in (FileKind.PROSE, FileKind.BINARY) else kind
    if run and base(run[0]) in _READ_SCRIPTS and all(word.source != "-c" for word in run[1:]):
        return FileKind.SHELL
    reads = any(is_python(word) for word in words) and started(words) is None
    return FileKind.PYTHON if reads and not any(word.value == "-c" for word in words) else None


def _written_file(script: Script, parts: Sequence[Node], words: Sequence[Word]) -> str:
    """The file that `cat > train.py` or `tee train.py` writes; empty for other commands."""
    if not words or base(words[0]) not in _WRITE:
        return ""
    for part in parts:
        if part.type == "file_redirect" and script.text(part).lstrip("1").startswith(">"):
            if path := script.plain(part.child_by_field_name("destination")):
                return path
            break
    files = (word.value or "" for word in words[1:] if not word.source.startswith("-"))
    return next(files, "") if base(words[0]) == "tee" else ""
