"""The account of a file: every CUDA-bound token is converted, manual, unknown, or ignored with a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from transplt.finding import Effort, Finding, Level, TokenCount
from transplt.scan import Scan
from transplt.source import Source
from transplt.tokens import Token, find_tokens
from transplt.work import Note

_IDENTIFIER = re.compile(rb"[A-Za-z0-9_]")


def settle(
    source: Source,
    scan: Scan,
    applied: list[tuple[int, int, bytes]],
    findings: Iterable[Finding],
    kept: list[tuple[int, int, str]],
) -> tuple[TokenCount, list[Note]]:
    """Count the tokens of a file and say of those that nothing accounts for that they are unknown.

    `applied` are the edits of the output (start, end, new bytes), `findings` what is said without an edit, `kept`
    the ranges that stay for a reason.
    """
    tokens = find_tokens(source.utf8)
    comments = sum(token.where == "comment" for token in tokens)
    live = [token for token in tokens if token.where != "comment"]
    manual: list[tuple[int, int]] = []
    unknown: list[tuple[int, int]] = []
    ignored: list[tuple[int, int]] = [(start, end) for start, end, _ in kept]
    for finding in findings:
        extent = (finding.span.start, finding.span.end)
        if finding.ignored or finding.level is Level.INFO:
            ignored.append(extent)
        elif finding.level is Level.UNKNOWN:
            unknown.append(extent)
        else:
            manual.append(extent)
    converted_at = [(start, end, new.lower()) for start, end, new in applied if start < end]
    counts = dict.fromkeys(("converted", "manual", "unknown", "ignored"), 0)
    left: list[Note] = []
    for token in live:
        state = _state(source, token, converted_at, manual, unknown, ignored)
        if state == "unknown" and not _covered(token, unknown):
            left.append(_unknown(source, token))
        counts[state] += 1
    return TokenCount(len(live), comments=comments, **counts), _one_a_line(source, left)


def _covered(token: Token, extents: Iterable[tuple[int, int]]) -> bool:
    return any(start <= token.start and token.end <= end for start, end in extents)


def _state(
    source: Source,
    token: Token,
    converted: list[tuple[int, int, bytes]],
    manual: list[tuple[int, int]],
    unknown: list[tuple[int, int]],
    ignored: list[tuple[int, int]],
) -> str:
    word = source.utf8[token.start : token.end].lower()
    for start, end, new in converted:
        if start <= token.start and token.end <= end:
            if new.count(word) < source.utf8[start:end].lower().count(word):
                return "converted"
            break
    if _covered(token, manual):
        return "manual"
    if _covered(token, unknown):
        return "unknown"
    if _covered(token, ignored) or (token.where == "code" and _own_identifier(source, token)):
        return "ignored"
    return "unknown"


def _own_identifier(source: Source, token: Token) -> bool:
    """A longer identifier (`use_cuda`, `CudaModule`) is a name of the project's own: it stays."""
    before = source.utf8[token.start - 1 : token.start] if token.start else b""
    after = source.utf8[token.end : token.end + 1]
    return bool(_IDENTIFIER.match(before) or _IDENTIFIER.match(after))


def _unknown(source: Source, token: Token) -> Note:
    text = source.slice(token.start, token.end)
    return Note(
        (token.start, token.end),
        "NPU602",
        Level.UNKNOWN,
        f"{text!r} stands here and no rule knows what it is",
        help="see whether it binds the program to CUDA; if not, add `# transplt: ignore[NPU602]` with the reason",
        effort=Effort.LOW,
    )


def _one_a_line(source: Source, notes: list[Note]) -> list[Note]:
    """At most one note for each line and word: the reader looks at lines."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for note in notes:
        key = (source.position(note.extent[0])[0], note.message)
        if key not in seen:
            seen.add(key)
            kept.append(note)
    return kept


def own_names(scan: Scan) -> list[tuple[int, int, str]]:
    """Identifiers that are exactly `cuda`, `nccl`, ... and belong to the project: variables, parameters, keywords."""
    source = scan.source
    kept: list[tuple[int, int, str]] = []
    reason = "a name of the project's own stays"
    words = ("cuda", "nccl", "cudnn", "nvtx", "nvidia", "CUDA", "NCCL")
    for word in words:
        for node in scan.names.get(word, ()):
            kept.append((*source.extent(node), reason))
    for scope in scan.scopes.values():
        for word in words:
            for binding in scope.bindings.get(word, ()):
                if isinstance(binding.node, (ast.Name, ast.arg)):
                    kept.append((*source.extent(binding.node), reason))
                elif isinstance(binding.node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                    node = binding.node
                    start = source.extent(node)[0]
                    at = source.utf8.find(word.encode(), start)
                    kept.append((at, at + len(word), reason))
    for call in scan.calls:
        for keyword in call.keywords:
            if keyword.arg in words:
                start = source.extent(keyword)[0]
                kept.append((start, start + len(keyword.arg), "a keyword of the callee's own stays"))
    return kept
