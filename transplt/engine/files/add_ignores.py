"""Ignore comments that go in behind lines, where the format has such comments and a line can take one.

Whether it can is asked of the format's own reader: with the comment a file has to mean what it meant without.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from transplt.base.finding import Finding
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.ignore_comments import ignore_comments
from transplt.base.text.source import Source, UnreadableSource, read_source, splice
from transplt.base.text.toml import parse_toml
from transplt.engine.files.document import Document, text_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.native_text import code_of, has_hash_comments
from transplt.engine.files.shell.script import read_script
from transplt.engine.files.yaml_reader import MappingNode, Node, NotYaml, SequenceNode, compose
from transplt.flow.facts import ProjectFacts

_PYTHON = (".py", ".pyi", ".pyw")
#: `pytorch=1.4.0=py3.7_cuda10.1`, or a list of addresses.
_OF_CONDA = re.compile(rb"^[ \t]*(?:[\w.-]+=[^=]|@EXPLICIT)", re.M)
#: What a text means, as something that can be compared; None where that cannot be told.
_Meaning = Callable[[bytes], Any]


def with_ignores(data: bytes, path: str, findings: Sequence[Finding], why: str) -> tuple[bytes, list[Finding]]:
    """The file with a comment `# transplt: ignore[CODES] why` for each finding, and the findings for which none can be.

    It stands behind the first line of a finding, or else behind its last one. A comment that is there gets the code.
    """
    source, meaning, sign = _read(data, path)
    before = meaning(source.utf8) if source is not None else None
    if source is None or before is None:
        return data, [*findings]
    held: dict[int, list[str]] = {}
    left: list[Finding] = []

    def holds(lines: dict[int, list[str]]) -> bool:
        added = _added(source, lines, sign, why)
        return added is not None and bool(meaning(added) == before)

    together = _with(held, [(each.span.line, each.code) for each in findings])
    if holds(together):
        held = together
    else:
        for each in findings:
            tried = (_with(held, [(line, each.code)]) for line in dict.fromkeys((each.span.line, each.span.end_line)))
            more = next(filter(holds, tried), None)
            if more is None:
                left.append(each)
            else:
                held = more
    added = _added(source, held, sign, why)
    return (data if added is None else source.encode(added)), left


def _with(lines: dict[int, list[str]], more: Sequence[tuple[int, str]]) -> dict[int, list[str]]:
    """The codes by line, with those of some lines more, each once."""
    found = {line: [*codes] for line, codes in lines.items()}
    for line, code in more:
        if code not in found.setdefault(line, []):
            found[line].append(code)
    return found


def _added(source: Source, lines: dict[int, list[str]], sign: str, why: str) -> bytes | None:
    """The text with comments for the codes of some lines; None where one of these holds nothing but a comment."""
    edits = []
    for line, codes in sorted(lines.items()):
        starts = [*source.line_starts, len(source.utf8)]
        if line >= len(starts):
            return None
        first, last = starts[line - 1 : line + 1]
        whole = source.utf8[first:last].rstrip(b"\r\n")
        text = whole.rstrip()
        if not text or text.lstrip().startswith(sign.encode()) or text.endswith(b"\\"):
            return None
        known = next((each for each in ignore_comments(text) if each.codes and not each.problem), None)
        if known is not None:
            at = first + known.places[-1][1]
            edits.append((at, at, "".join(f", {code}" for code in codes).encode()))
        else:
            comment = f"  {sign} transplt: ignore[{', '.join(codes)}] {why}"
            edits.append((first + len(text), first + len(whole), comment.encode()))
    return splice(source.utf8, edits)


def _read(data: bytes, path: str) -> tuple[Source | None, _Meaning, str]:
    """The text of a file, how to tell what it means, and what begins a comment; no text where there are no comments."""
    suffix = PurePosixPath(path.lower()).suffix
    if suffix in _PYTHON:
        try:
            return read_source(data), tree_of, "#"
        except UnreadableSource:
            return None, tree_of, "#"
    kind, source = kind_of(path, data), text_of(data)
    if suffix in (".yml", ".yaml"):
        return source, _yaml, "#"
    if suffix == ".toml":
        return source, _toml, "#"
    if kind is FileKind.SHELL:
        return source, lambda utf8: _shell(utf8, path), "#"
    if kind is FileKind.REQUIREMENTS and suffix in (".txt", ".in"):
        return source, _requirements, "#"
    if kind is FileKind.NATIVE and not has_hash_comments(path) and suffix != ".ptx":
        # not of a source with texts that go over lines
        return source, lambda utf8: None if b'R"' in utf8 else code_of(utf8), "//"
    return None, tree_of, "#"


def tree_of(text: str | bytes) -> str | None:
    """What Python code says, whatever its form; None for what is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _yaml(utf8: bytes) -> list[Any] | None:
    try:
        return [_value(node) for node in compose(utf8.decode())]
    except (NotYaml, ValueError, RecursionError):
        return None


def _value(node: Node) -> tuple[str, Any]:
    if isinstance(node, MappingNode):
        return node.tag, [(_value(key), _value(value)) for key, value in node.value]
    if isinstance(node, SequenceNode):
        return node.tag, [_value(each) for each in node.value]
    return node.tag, node.value


def _toml(utf8: bytes) -> dict[str, Any] | None:
    try:
        return parse_toml(utf8.decode())
    except ValueError:
        return None


def _shell(utf8: bytes, path: str) -> list[tuple[str, str]] | None:
    """The words and signs of a script that its grammar reads without a doubt; comments are none."""
    document = Document(Source(utf8), path, FileKind.SHELL, Settings(), TorchTarget("", ""), ProjectFacts())
    script = read_script(document)
    if script is None or script.root.has_error:
        return None
    found, stack = [], [script.root]
    while stack:
        node = stack.pop()
        if not node.children and node.type not in ("comment", "\n"):
            found.append((node.type, script.text(node)))
        stack.extend(reversed(node.children))
    return found


def _requirements(utf8: bytes) -> list[bytes] | None:
    """The lines without their comments, as pip reads them; not of a list of conda's."""
    if _OF_CONDA.search(utf8):
        return None
    joined = utf8.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    return [re.sub(rb"(?:^|\s+)#.*$", b"", line).rstrip() for line in joined.splitlines()]
