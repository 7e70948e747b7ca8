"""Unified diffs of single files, as `git apply` takes them: bytes in, bytes out.

Lines end at LF only, as git has it; CR, encodings and a missing final newline come through as they are.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transplt.apply.edited_lines import edits_in_order
from transplt.finding import Finding

CONTEXT = 3
_NO_NEWLINE = b"\\ No newline at end of file\n"


class Block(NamedTuple):
    """Lines [old, old_end) of the old file, counted from 0, become lines [new, new_end) of the new one."""

    old: int
    old_end: int
    new: int
    new_end: int


def unified_diff(path: str, old: bytes, new: bytes, findings: Sequence[Finding] = ()) -> bytes:
    """The patch that makes `new` of `old`, empty when they are the same. `findings` hold the edits, where known.

    `path` is relative, with forward slashes; bytes that are not UTF-8 stand in it as lone surrogates.
    """
    if old == new:
        return b""
    before, after = split_lines(old), split_lines(new)
    blocks = _from_edits(before, after, findings)
    if blocks is None:
        blocks = _from_text(before, after)
    left, right = _name(f"a/{path}"), _name(f"b/{path}")
    tab = b"\t" if b" " in left and not left.startswith(b'"') else b""
    parts = [b"diff --git " + left + b" " + right + b"\n", b"--- " + left + tab + b"\n", b"+++ " + right + tab + b"\n"]
    for group in _groups(blocks):
        parts += _hunk(before, after, group)
    return b"".join(parts)


def split_lines(data: bytes) -> list[bytes]:
    """The lines of a file with their LF; the last one may lack it."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _from_edits(before: list[bytes], after: list[bytes], findings: Sequence[Finding]) -> list[Block] | None:
    """The blocks as the recorded edits have them; None when these do not tell the whole story."""
    blocks: list[Block] = []
    shift = 0
    end = -1
    for finding in edits_in_order(findings):
        assert finding.edit is not None
        first, last = finding.span.line - 1, finding.span.end_line
        grown = finding.edit.after.count("\n") - finding.edit.before.count("\n")
        if first < end:
            block = blocks.pop()
            first, last = block.old, max(last, block.old_end)
            shift -= (block.new_end - block.new) - (block.old_end - block.old)
            grown += (block.new_end - block.new) - (block.old_end - block.old)
        last = min(last, len(before))
        blocks.append(Block(first, last, first + shift, last + shift + grown))
        shift += grown
        end = last
    blocks = [_trim(before, after, block) for block in blocks]
    return _merged(blocks) if _tells_all(before, after, blocks) else None


def _merged(blocks: list[Block]) -> list[Block]:
    """Blocks with no line between them become one."""
    merged: list[Block] = []
    for block in blocks:
        if merged and merged[-1].old_end == block.old:
            last = merged.pop()
            block = Block(last.old, block.old_end, last.new, block.new_end)
        merged.append(block)
    return merged


def _trim(before: list[bytes], after: list[bytes], block: Block) -> Block:
    old, old_end, new, new_end = block
    while old < old_end and new < new_end and before[old : old + 1] == after[new : new + 1]:
        old, new = old + 1, new + 1
    while old < old_end and new < new_end and before[old_end - 1 : old_end] == after[new_end - 1 : new_end]:
        old_end, new_end = old_end - 1, new_end - 1
    return Block(old, old_end, new, new_end)


def _tells_all(before: list[bytes], after: list[bytes], blocks: list[Block]) -> bool:
    old = new = 0
    for block in [*blocks, Block(len(before), len(before), len(after), len(after))]:
        if block.old < old or block.new < new or before[old : block.old] != after[new : block.new]:
            return False
        old, new = block.old_end, block.new_end
    return True


def _from_text(before: list[bytes], after: list[bytes]) -> list[Block]:
    codes = difflib.SequenceMatcher(None, before, after).get_opcodes()
    return [Block(*ranges) for tag, *ranges in codes if tag != "equal"]


def _groups(blocks: list[Block]) -> Iterator[list[Block]]:
    """Blocks whose context would touch go into one hunk."""
    group: list[Block] = []
    for block in blocks:
        if block.old == block.old_end and block.new == block.new_end:
            continue
        if group and block.old - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _hunk(before: list[bytes], after: list[bytes], group: list[Block]) -> Iterator[bytes]:
    lead = min(CONTEXT, group[0].old)
    tail = min(CONTEXT, len(before) - group[-1].old_end)
    old, new = group[0].old - lead, group[0].new - lead
    olds, news = group[-1].old_end + tail - old, group[-1].new_end + tail - new
    yield f"@@ -{_range(old, olds)} +{_range(new, news)} @@\n".encode()
    at = old
    for block in group:
        yield from _marked(b" ", before[at : block.old])
        yield from _marked(b"-", before[block.old : block.old_end])
        yield from _marked(b"+", after[block.new : block.new_end])
        at = block.old_end
    yield from _marked(b" ", before[at : at + tail])


def _range(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _marked(mark: bytes, lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n" + _NO_NEWLINE


def _name(path: str) -> bytes:
    """A path as git writes it: quoted like a C string when it holds a quote, a backslash or a control character."""
    raw = os.fsencode(path)
    if not any(byte < 32 or byte in b'"\\\x7f' for byte in raw):
        return raw
    quoted = bytearray()
    for byte in raw:
        if byte in b'"\\':
            quoted += b"\\" + bytes((byte,))
        elif byte < 32 or byte == 127:
            quoted += f"\\{byte:03o}".encode()
        else:
            quoted.append(byte)
    return b'"' + bytes(quoted) + b'"'
