"""The independent token scan: the same words on every Python, in code, strings and comments."""

from __future__ import annotations

import io
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.text.cuda_words import WORDS, find_tokens, mentions_cuda
from transplt.base.text.lexer import lex


def where(text: str) -> list[tuple[str, str]]:
    utf8 = text.encode()
    return [(utf8[token.start : token.end].decode(), token.where) for token in find_tokens(utf8)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.cuda()", [("cuda", "code")]),
        ("'cuda'  # cuda", [("cuda", "string"), ("cuda", "comment")]),
        ("use_CUDA = NvCC", [("CUDA", "code"), ("NvCC", "code")]),
        ("cudacuda", [("cuda", "code"), ("cuda", "code")]),
        ("'a\\'cuda' cuda", [("cuda", "string"), ("cuda", "code")]),
        ('"""\n\'cuda\n"" # cuda """ cuda', [("cuda", "string"), ("cuda", "string"), ("cuda", "code")]),
        ("r'\\' cuda", [("cuda", "string")]),
        ("r'\\\\' cuda", [("cuda", "code")]),
        ("b'cuda' + Rb\"nccl\"", [("cuda", "string"), ("nccl", "string")]),
        ("'#cuda' #'cuda", [("cuda", "string"), ("cuda", "comment")]),
        ("f'{cuda}' cuda", [("cuda", "code"), ("cuda", "code")]),
        ("f'{{cuda' cuda", [("cuda", "string"), ("cuda", "code")]),
        ("f'{x[\"cuda\"]}' cuda", [("cuda", "string"), ("cuda", "code")]),
        ("f'{x['cuda']}' cuda", [("cuda", "string"), ("cuda", "code")]),
        ("f'{x:{w}}cuda' nccl", [("cuda", "string"), ("nccl", "code")]),
        ("f'''{\nx}''' cuda", [("cuda", "code")]),
        ("rf'\\{x}' cuda", [("cuda", "code")]),
        ("'cuda\\\r\nnccl' nvtx", [("cuda", "string"), ("nccl", "string"), ("nvtx", "code")]),
        ("# a\rcuda", [("cuda", "code")]),
        ("x = 'unfinished cuda\ncuda", [("cuda", "string"), ("cuda", "code")]),
        ("\u00e9 = 'cuda'", [("cuda", "string")]),
        ("", []),
        ("print('nothing')", []),
    ],
)
def test_where_a_word_stands(text: str, expected: list[tuple[str, str]]) -> None:
    assert where(text) == expected


def test_overlapping_words_count_once() -> None:
    assert [word for word, _ in where("nvidia cudnn cublas nvtx nvcc cupti nccl cuda")] == [
        "nvidia", "cudnn", "cublas", "nvtx", "nvcc", "cupti", "nccl", "cuda",
    ]


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_found_in_any_case(word: bytes) -> None:
    assert mentions_cuda(b"x" + word)
    assert len(find_tokens(word.upper() + b" " + word.capitalize())) == 2


SNIPPETS = (
    "cuda", "'cuda'", '"nccl"', "# cuda", "f'{cuda}'", 'f"{x!r:>{cuda}}"', "'''cuda\n'''", "r'\\'", "b'cuda'", "x",
    "(", ")", ",", "\n", " ", "'a\\'b cuda'", "rb'''nccl'''", "f'''{'cuda'}'''", "F'{{cuda}}'", "\\\n", "u'cuda'", "=",
)


@given(st.lists(st.sampled_from(SNIPPETS), max_size=12).map("".join))
def test_python_reads_the_same_strings_and_comments(text: str) -> None:
    """The standard tokenizer is the oracle, for texts that it accepts and that hold no nested f-string."""
    try:
        compile(text, "x", "exec", dont_inherit=True)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, tokenize.TokenError, ValueError, IndentationError):
        return
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(place: tuple[int, int]) -> int:
        return starts[place[0] - 1] + place[1]

    expected = []
    depth = 0
    begin = 0
    f_start = getattr(tokenize, "FSTRING_START", -1)
    f_end = getattr(tokenize, "FSTRING_END", -1)
    for token in tokens:
        if token.type == f_start:
            begin = begin if depth else offset(token.start)
            depth += 1
        elif token.type == f_end:
            depth -= 1
            if not depth:
                expected.append((begin, offset(token.end), "string"))
        elif token.type in (tokenize.STRING, tokenize.COMMENT) and not depth:
            kind = "string" if token.type == tokenize.STRING else "comment"
            expected.append((offset(token.start), offset(token.end), kind))
    found = [(each.start, each.end, "comment" if each.is_comment else "string") for each in lex(text.encode())]
    assert found == expected


@given(st.text(alphabet="cuda'\"#{}\\\nf\r ", max_size=60))
def test_the_lexer_ends_and_its_areas_are_apart(text: str) -> None:
    utf8 = text.encode()
    end = 0
    for each in lex(utf8):
        assert end <= each.start < each.end <= len(utf8)
        end = each.end
    assert len(find_tokens(utf8)) == utf8.lower().count(b"cuda")


def test_long_strings_cost_linear_time() -> None:
    text = b"x = '''" + b"cuda \\' " * 200_000 + b"'''\n"
    assert len(find_tokens(text)) == 200_000


