"""Texts are looked for among the names of a file: found is what a plain search finds, whatever stands around it."""

from __future__ import annotations

import random
import re

import pytest

from transplt.base.settings import Settings
from transplt.base.text.text_search import Marked, Texts, on_lines_with
from transplt.engine import prefilter

_BYTES = [b"a", b"b", b"_", b"1", b".", b"-", b" ", b"\n", b"\xc3\xa9", b"(", b"B"]
_WORDS = b"torch setup flops A100 data.data[0] gpu num_gpus parallel gather sparse mm Apex_C x device=0 cudnn".split()


def _drawn(random_: random.Random, parts: list[bytes], most: int) -> bytes:
    return b"".join(random_.choice(parts) for _ in range(random_.randrange(most)))


def test_texts_are_those_of_a_plain_search() -> None:
    random_ = random.Random(1)
    for _ in range(20_000):
        data, inner = _drawn(random_, _BYTES, 14), _drawn(random_, _BYTES, 4)
        left, right = random_.choice((b"", rb"\b")), random_.choice((b"", rb"\b"))
        expected = re.search(left + re.escape(inner) + right, data) is not None
        if inner or not (left or right):
            assert Texts(left + inner + right).in_(data) is expected, (left, inner, right, data)


def test_lines_with_a_word_give_what_a_search_of_all_bytes_gives() -> None:
    random_ = random.Random(2)
    pattern = re.compile(rb"^[ \t]*(?:ab[ \t]+(\([^)]*\)|[^\n(]*)|a=ab)", re.M)
    for _ in range(20_000):
        data = _drawn(random_, [b"ab", b"a=", b" ", b"\n", b"(", b")", b"x", b"\r"], 16)
        found = [match.span() for match in on_lines_with(b"ab", pattern, data)]
        assert found == [match.span() for match in pattern.finditer(data)], data


@pytest.mark.parametrize(
    "text",
    [
        "an AMP",
        "amp_x",
        "camp",
        "ampère",
        "é amp",
        "GPU",
        "\u212a8bit",
        "\u017frun",
        "m\u0130llion",
        "l\u0131on",
        "lions",
    ],
)
def test_a_marked_expression_finds_what_it_would_find_alone(text: str) -> None:
    pattern = r"gpu|8bit|\bamp\b|lion\b|srun"
    marked = Marked(pattern, *r"gpu 8bit \bamp\b lion\b srun".split())
    found, alone = marked.search(text), re.search(pattern, text, re.IGNORECASE)
    assert (found and found.span()) == (alone and alone.span())


def test_what_files_before_have_taught_changes_no_answer() -> None:
    random_, settings = random.Random(2), Settings()
    files = [_drawn(random_, [*_WORDS, b" ", b"\n", b".", b"_"], 8) for _ in range(2000)]
    taught = [prefilter.worth_a_look(data, settings) for data in files]
    for data, answer in zip(files[:300], taught, strict=False):
        prefilter._known.cache_clear()
        assert prefilter.worth_a_look(data, settings) is answer, data
