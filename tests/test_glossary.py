"""The glossary: fifty words in two languages, in the order of the alphabet, and Chinese as the catalogue has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| English")
]
CATALOGUE = (ROOT / "transplt/base/locale/zh/LC_MESSAGES/transplt.po").read_text(encoding="utf-8")


def test_fifty_words_in_their_order() -> None:
    words = [row[0] for row in ROWS]
    assert len(words) == 50 and words == sorted({*words}, key=str.lower)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_word_is_chinese_or_a_word_of_the_machine(row: tuple[str, str, str]) -> None:
    english, chinese, meaning = row
    assert re.search("[\u4e00-\u9fff]", chinese) or chinese == english
    assert meaning and meaning[-1] != "."


@pytest.mark.parametrize(
    "word", ["action", "card", "edit", "finding", "fused operator", "gradient", "operator", "overflow", "proof"]
)
def test_the_catalogue_has_the_same_words(word: str) -> None:
    assert next(chinese for english, chinese, _ in ROWS if english == word) in CATALOGUE
