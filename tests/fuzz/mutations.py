"""Broken, bent and exchanged pieces: strategies that change bytes, tokens, nodes of a syntax tree and JSON values."""

from __future__ import annotations

import ast
import copy
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

#: Bytes on which readers stumble.
PIECES = (
    b"\0", b"\r", b"\n", b"\r\n", b"\x0c", b"\x1a", b"\t", b"\\", b"\\\n", b"'", b'"', b"'''", b'"""', b"#", b"{",
    b"}", b"{{", b"(", b")", b"[", b"]", b":", b";", b",", b"@", b"*", b"**", b"$", b"`", b"%", b"\xef\xbb\xbf",
    b"\xff", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xc2\x85", "é".encode(),
    "\U0001d484\U0001d496\U0001d485\U0001d482".encode(), b"9" * 5000, b"1e999", b"-1", b"(" * 120, b"[" * 1000,
    b"a" * 3000, b"a." * 400, b"not " * 300, b"f'{", b"rb'", b"cuda", b"CUDA", b"nccl", b"cuda:0", b"torch.cuda.",
    b".cuda()", b"import torch\n", b"# transplt: ignore\n", b"lambda: ", b"await ", b":=", b"if 1:\n", b"\n  ",
    b"\n\t", b"*a, ",
)  # fmt: skip
_TOKEN = re.compile(rb"\w+|[ \t]+|\r\n|[^\w \t]", re.DOTALL)
_Change = Callable[[st.DrawFn, bytes, Sequence[bytes]], bytes]


@st.composite
def mutated(
    draw: st.DrawFn, seeds: Sequence[bytes] | st.SearchStrategy[bytes], nodes: bool = False, most: int = 4
) -> bytes:
    """One of `seeds` with one to `most` changes; `nodes` exchanges expressions and statements of Python too."""
    known = list(seeds) if not isinstance(seeds, st.SearchStrategy) else []
    data = draw(st.sampled_from(known) if known else seeds)  # type: ignore[arg-type]
    changes = [*_CHANGES, *[exchange_nodes] * 4] if nodes else list(_CHANGES)
    for _ in range(draw(st.integers(1, most))):
        data = draw(st.sampled_from(changes))(draw, data, known or [data])
    return data


def _place(draw: st.DrawFn, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def insert_piece(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + draw(st.sampled_from(PIECES)) + data[at:]


def cut_out(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + data[at + draw(st.integers(1, 40)) :]


def cut_off(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    return data[: _place(draw, data)]


def copy_slice(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    start, at = _place(draw, data), _place(draw, data)
    return data[:at] + data[start : start + draw(st.integers(1, 80))] + data[at:]


def flip_byte(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


def exchange_tokens(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    tokens = _TOKEN.findall(data)
    if len(tokens) < 2:
        return data
    one, other = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
    tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


def another_token(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    tokens = _TOKEN.findall(data)
    if not tokens:
        return data
    others = _TOKEN.findall(draw(st.sampled_from(list(seeds)))) or tokens
    tokens[draw(st.integers(0, len(tokens) - 1))] = draw(st.sampled_from([b"", draw(st.sampled_from(others))]))
    return b"".join(tokens)


def other_lines(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    return data.replace(b"\n", draw(st.sampled_from([b"\r\n", b"\r", b"\n\n", b" \n", b"\n\r", b"; "])))


_CHANGES: tuple[_Change, ...] = (
    insert_piece, cut_out, cut_off, copy_slice, flip_byte, exchange_tokens, exchange_tokens, another_token,
    another_token, other_lines,
)  # fmt: skip


def exchange_nodes(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """The text of one node in place of another of its kind, from the same file or from another one."""
    other = draw(st.sampled_from([data, *seeds[:40]]))
    kind = draw(st.sampled_from(["expr", "expr", "stmt"]))
    own, others = _nodes(data)[kind], _nodes(other)[kind]
    if not own or not others:
        return data
    start, end = draw(st.sampled_from(own))
    begin, stop = draw(st.sampled_from(others))
    text = other[begin:stop]
    return data[:start] + (b"(" + text + b")" if kind == "expr" and draw(st.booleans()) else text) + data[end:]


@lru_cache(maxsize=256)
def _nodes(data: bytes) -> dict[str, list[tuple[int, int]]]:
    """Byte ranges of expressions and statements of a file that is UTF-8 with LF; none where it does not parse."""
    found: dict[str, list[tuple[int, int]]] = {"expr": [], "stmt": []}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(data.decode("utf-8"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", data))]
    for node in nodes:
        if isinstance(node, (ast.expr, ast.stmt)) and node.end_lineno is not None and node.end_col_offset is not None:
            kind = "stmt" if isinstance(node, ast.stmt) else "expr"
            found[kind].append(
                (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)
            )
    return found


#: Values that a reader of JSON does not wait for.
VALUES = (
    None, True, False, 0, -1, 1, 2**63, 10**400, 1.5, "", " ", "a", "a.b", "cuda", "torch.cuda.is_available", "..",
    "a\nb", "\0", "\ud800", "\u202e", "(", "lambda", "x" * 300, ">=2.1", "==99", [], {}, [[]], [None], {"": ""},
    ["2.8"],
)  # fmt: skip


@st.composite
def mutated_json(draw: st.DrawFn, seeds: Sequence[Any]) -> bytes:
    """A JSON document with one to three values exchanged, doubled or gone; now and then with broken bytes as well."""
    document = copy.deepcopy(draw(st.sampled_from(list(seeds))))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["value", "value", "other", "gone", "renamed"]))
        if change == "value":
            holder[key] = draw(st.sampled_from(VALUES))
        elif change == "other":
            other, name = draw(st.sampled_from(places))
            holder[key] = copy.deepcopy(other[name])
        elif change == "gone":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["", "rules", "old_name", "NewName", "a\nb"]))] = holder.pop(key)
        else:
            holder.append(copy.deepcopy(holder[key]))
    data = json.dumps(document, indent=draw(st.sampled_from([None, 1]))).encode()
    return draw(mutated([data], most=2)) if draw(st.integers(0, 3)) == 0 else data


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value in a document."""
    pending = [value]
    while pending:
        holder = pending.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            yield holder, key
            pending.append(holder[key])
