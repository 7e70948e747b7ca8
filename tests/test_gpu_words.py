"""The table of words that bind to a GPU without naming CUDA: its form, and that a pair shows each of its words."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator

from tests.codemods.test_gpu_words import FOUND as IN_PYTHON
from tests.test_gpu_words_in_files import FOUND as IN_FILES
from transplt.base.finding import Level
from transplt.rules.gpu_words import GpuWord, PathPlace, level_and_help, literals, places_of
from transplt.rules.pages import all_codes
from transplt.rules.tables import read_table

ROWS = read_table("support/gpu_words.json")["words"]


def test_the_table_has_its_form() -> None:
    schema = read_table("support/gpu_words.schema.json")
    Draft202012Validator.check_schema(schema)
    wrong = [error.message for error in Draft202012Validator(schema).iter_errors(read_table("support/gpu_words.json"))]
    assert wrong == []


def test_every_row_has_a_name_of_its_own_and_a_page() -> None:
    names = [row["word"] for row in ROWS]
    assert len(names) == len(set(names))
    assert {row["code"] for row in ROWS} <= set(all_codes())


@pytest.mark.parametrize("row", ROWS, ids=[row["word"] for row in ROWS])
def test_every_row_is_shown_by_a_pair(row: dict[str, object]) -> None:
    shown = {word for word, *_ in (*IN_PYTHON, *IN_FILES)}
    assert row["word"] in shown


def test_every_literal_is_one_that_the_bytes_hold_in_any_case() -> None:
    assert all(literal and not re.search(r"\s", literal) for literal in literals())


def word_since(first: str) -> GpuWord:
    every = {word.word: word for _, word in places_of(PathPlace)}
    word = every["flash_attention_2"]
    assert word.since == ("transformers", first)
    return word


@pytest.mark.parametrize(
    ("asked", "level"),
    [
        ("==4.46.0", Level.MANUAL),
        ("==4.46.*", Level.MANUAL),
        ("<=4.50", Level.MANUAL),
        ("<4.51.0", Level.MANUAL),
        (">=4.40,<4.50", Level.MANUAL),
        ("==4.51.0", Level.INFO),
        (">=4.51", Level.INFO),
        (">=4.53,<5", Level.INFO),
        ("~=4.52.0", Level.INFO),
        (">=4.40", Level.INFO),
        ("<4.60", Level.INFO),
        ("!=4.46.0", Level.INFO),
        ("@ git+https://example.org", Level.INFO),
        ("", Level.INFO),
    ],
)
def test_the_version_that_the_project_asks_for_decides(asked: str, level: Level) -> None:
    found, help_ = level_and_help(word_since("4.51.0"), [("accelerate", "==0.1"), ("transformers", asked)])
    assert found is level
    assert ("require transformers>=4.51.0" in help_) is (level is Level.MANUAL)


def test_without_a_version_the_table_decides() -> None:
    word = word_since("4.51.0")
    assert level_and_help(word, []) == (word.level, word.help)
    assert level_and_help(word, [("torch", "==2.1")]) == (word.level, word.help)


@pytest.mark.parametrize(
    ("pins", "wanted"),
    [
        ([], ""),
        ([("pytorch-lightning", ">=2.6"), ("torchmetrics", ">=0.7")], ""),
        ([("pytorch-lightning", "==1.5.10")], "the project requires pytorch-lightning==1.5.10: require"),
        ([("pytorch-lightning", ">=2.6"), ("torchmetrics", "<0.7")], "the project requires torchmetrics<0.7: require"),
    ],
)
def test_a_condition_on_a_version_is_said_where_the_project_is_older(
    pins: list[tuple[str, str]], wanted: str
) -> None:
    word = {word.word: word for _, word in places_of(PathPlace)}["accelerator of Lightning"]
    level, help_ = level_and_help(word, pins)
    assert level is Level.MANUAL and help_.startswith(wanted or word.help) and help_.endswith(word.help)
