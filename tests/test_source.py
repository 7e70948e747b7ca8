"""Bytes to text and back: cookies, byte order marks, newlines, spans, and what cannot be read."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.text.source import Source, UnreadableSource, declared_encoding, line_starts, read_source, splice
from transplt.syntax.parse import parse


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"# -*- coding: gbk -*-\n", "gbk"),
        (b"#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\n", "latin-1"),
        (b"\n# coding=utf-8\n", "utf-8"),
        (b"\x0c# coding: cp1252\r\nx\r\n", "cp1252"),
        (b"x = 1\n# coding: gbk\n", None),
        (b"\n\n# coding: gbk\n", None),
        (b"'# coding: gbk'\n", None),
        (b"", None),
    ],
)
def test_cookies_count_in_the_first_two_lines(data: bytes, encoding: str | None) -> None:
    assert declared_encoding(data) == encoding


HEAD = st.lists(
    st.sampled_from(
        ["# coding: latin-1", "# -*- coding: utf-8 -*-", "# vim: set fileencoding=cp1252 :", "#", " ", "\t", "\f",
         "coding", ":", "=", "utf8", "gbk", "nope", "\n", "\r\n", "x = 1", "'", "\\\n", "\v", "."]
    ), max_size=8,
).map(lambda parts: "".join(parts).encode())  # fmt: skip


@given(HEAD)
def test_python_finds_the_same_cookie(data: bytes) -> None:
    declared = declared_encoding(data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        assert declared is not None
        with pytest.raises(LookupError):
            codecs.lookup(declared)
    else:
        assert codecs.lookup(declared or "utf-8") == codecs.lookup(encoding)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"#!python\r# coding: gbk\rx = 1\r", "gbk"),
        (b"x = 1\r# coding: gbk\r", None),
        (b"# \xe9 coding: latin-1\n", "latin-1"),
        (b"# coding: gbk\xe9\n", "gbk"),
        (b"#" * 1000 + b" coding: gbk\n", None),
    ],
)
def test_cookies_that_only_python_itself_reads(data: bytes, encoding: str | None) -> None:
    assert declared_encoding(data) == encoding


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1",
        codecs.BOM_UTF8 + b"x = 'cuda'\r\n",
        codecs.BOM_UTF8 + b"# coding: utf-8-sig\nx\n",
        "# -*- coding: utf-8-unix -*-\nx = '\u4e2d'\n".encode(),
        b"# coding: UTF_8_mac\nx\n",
        b"# coding: iso-latin-1-dos\nx = '\xe9'\n",
        codecs.BOM_UTF8 + b"# coding: utf-8\nx\n",
        "# -*- coding: gbk -*-\nname = '\u4e2d\u6587'\n".encode("gbk"),
        b"# coding: latin-1\nx = '\xe9'\n",
        "x = '\u00e9\U0001f600'\n".encode(),
        b"if x:\n\ty = 1\x0c\n\x0cz = 2\r",
    ],
)
def test_reading_and_encoding_again_gives_the_bytes(data: bytes) -> None:
    source = read_source(data)
    assert source.encode(source.utf8) == data


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        ("x = 1\n".encode("utf-16"), "NPU902", 1),
        (b"x = 1\ny = '\0'\n", "NPU902", 2),
        (b"x = 1\r\ny = '\xe9'\r\n", "NPU902", 2),
        (b"# coding: ascii\n# \xe9\n", "NPU902", 2),
        (b"# coding: no-such-code\n", "NPU902", 1),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "NPU902", 1),
        (b"# coding: gbk\nx = '\xff\xff'\n", "NPU902", 1),
        (b"# coding: utf-7\nx = '+AOk-'\ny = '+AOkA6Q-'\n", "NPU902", 1),
    ],
)
def test_what_python_refuses_is_refused(data: bytes, code: str, line: int) -> None:
    with pytest.raises(UnreadableSource) as caught:
        parse(read_source(data))
    # A codec that does not give back its own bytes may also fail in the parser.
    assert caught.value.code in (code, "NPU901")
    if caught.value.code == code:
        assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print 'cuda'\n", "Python 2"),
        ("exec 'cuda'\n", "Python 2"),
        ("x.cuda(async=True)\n", "async"),
        ("import {{ cookiecutter.name }}\n", "template"),
        ("def f(:\n    cuda\n", "syntax error"),
    ],
)
def test_the_reason_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UnreadableSource, match=said) as caught:
        parse(read_source(text.encode()))
    assert caught.value.code == "NPU901"
    assert caught.value.line == 1


def test_too_deep_for_python_is_no_crash() -> None:
    with pytest.raises(UnreadableSource) as caught:
        parse(read_source(b"x = " + b"(" * 5000 + b"1" + b")" * 5000))
    assert caught.value.code in ("NPU901", "NPU903")


def test_a_cookie_is_not_followed_twice() -> None:
    source = read_source("# coding: gbk\nx = '\u4e2d'\n".encode("gbk"))
    tree = parse(source)
    assert isinstance(tree.body[0], ast.Assign)
    assert ast.literal_eval(tree.body[0].value) == "\u4e2d"


# --- places ----------------------------------------------------------------------------------------------------------


def test_lines_end_where_the_tokenizer_ends_them() -> None:
    assert line_starts(b"a\r\nb\rc\nd\x0b\x0c\x1c\xc2\x85e") == [0, 3, 5, 7]
    assert line_starts(b"a\nb\n") == [0, 2, 4]
    assert line_starts(b"") == [0]


def test_spans_count_characters_from_one() -> None:
    source = read_source("x = 1\ny = '\u00e9', torch.cuda\n".encode())
    start = source.utf8.index(b"torch")
    span = source.span(start, start + len(b"torch.cuda"))
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 10, 2, 20)
    assert source.slice(span.start, span.end) == "torch.cuda"
    assert source.line_text(2) == "y = '\u00e9', torch.cuda"


@pytest.mark.parametrize(
    ("data", "newline"), [(b"a\r\nb\n", "\r\n"), (b"a\rb", "\r"), (b"a", "\n"), (b"a\nb\r\n", "\n")]
)
def test_the_newline_is_the_first(data: bytes, newline: str) -> None:
    assert read_source(data).newline() == newline


@given(st.text(alphabet="ab\u00e9\u4e2d\r\n\x0c(", max_size=40))
def test_every_name_is_where_ast_says(text: str) -> None:
    data = f"{text}\nx = cuda\n".encode()
    try:
        source = read_source(data)
        tree = parse(source)
    except UnreadableSource:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert source.slice(*source.extent(node)) == node.id
            line, column = source.position(source.extent(node)[0])
            assert source.line_text(line)[column - 1 :].startswith(node.id)


# --- splicing --------------------------------------------------------------------------------------------------------


def test_splice_replaces_inserts_and_deletes() -> None:
    assert splice(b"abcdef", [(0, 0, b">"), (1, 3, b"X"), (3, 3, b"|"), (5, 6, b"")]) == b">aX|de"
    assert splice(b"abc", []) == b"abc"


def test_overlapping_edits_are_a_defect() -> None:
    with pytest.raises(AssertionError, match="overlap"):
        splice(b"abcdef", [(0, 3, b""), (2, 4, b"")])


@given(st.binary(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.binary(max_size=3))))
def test_what_no_edit_covers_stays(utf8: bytes, wanted: list[tuple[int, int, bytes]]) -> None:
    edits: list[tuple[int, int, bytes]] = []
    at = 0
    for start, length, new in sorted(wanted):
        if at <= start and start + length <= len(utf8):
            edits.append((start, start + length, new))
            at = start + length
    result = splice(utf8, edits)
    for index, (start, _, new) in enumerate(edits):
        shift = sum(len(n) - (e - s) for s, e, n in edits[:index])
        assert result[start + shift : start + shift + len(new)] == new
    assert len(result) == len(utf8) + sum(len(new) - (end - start) for start, end, new in edits)


def test_an_encoding_keeps_its_bytes_around_an_edit() -> None:
    data = "# coding: gbk\ns = '\u4e2d\u6587'\nx = 'cuda'\n".encode("gbk")
    source = read_source(data)
    at = source.utf8.index(b"cuda")
    assert source.encode(splice(source.utf8, [(at, at + 4, b"npu")])) == data.replace(b"cuda", b"npu")


def test_a_source_made_by_hand_has_no_mark() -> None:
    assert Source(b"x").encode(b"y") == b"y"
