"""The five words of a verdict: which, in which order, and what is the gravest of several."""

from __future__ import annotations

import json

import pytest

from transplt.base.render.verdict import WORDS, Verdict, Word, gravest


def test_the_words_and_their_order() -> None:
    assert WORDS == ("equal", "runs", "differs", "stops", "not run")
    assert all(word.meaning for word in Word)


def test_a_word_is_its_text_in_json_and_in_a_sentence() -> None:
    assert json.dumps({"verdict": Word.NOT_RUN}) == '{"verdict": "not run"}'
    assert str(Verdict(Word.STOPS, "a.py:3: ValueError: no")) == "stops: a.py:3: ValueError: no"


def test_the_gravest_is_the_first_of_the_last_word() -> None:
    parts = [
        Verdict(Word.EQUAL, "1"),
        Verdict(Word.STOPS, "2"),
        Verdict(Word.RUNS, "3"),
        Verdict(Word.STOPS, "4"),
    ]
    assert gravest(parts) == Verdict(Word.STOPS, "2")
    with pytest.raises(ValueError, match="no verdicts"):
        gravest([])
