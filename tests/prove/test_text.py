"""A proof as text and as JSON: proofs made by hand, and what is told of them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.prove.test_record import SETUP
from transplt.base.render.cell import figure
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove.found import Curve, Difference, Findings, Part, Property, Width
from transplt.proof.prove.proof import Proof
from transplt.proof.prove.proof_text import as_json, as_text
from transplt.proof.prove.tolerance import PLAIN, REORDERED
from transplt.proof.prove.training import Place

LOST = Difference(
    "the learning rate is 0.1 at step 8, in the original 0.05", Place("train.py", 14), Place("train.py", 12), 8
)
CLOSE = "relative: losses 0.00001; 8 times what rounding errors change"
WIDTHS = [Width(0, 0, 1e-5, None, None)]


def part(word: Word, sentence: str, title: str = "one and the other", **found: Any) -> Part:
    return Part(title, Verdict(word, sentence), Findings(**found))


def lines(*parts: Part) -> list[str]:
    return as_text(Proof(list(parts))).splitlines()


def test_one_comparison_says_its_verdict_once() -> None:
    equal = part(
        Word.EQUAL, "20 steps compared with the original's; 12 printed results", steps=20, printed=12,
        rounding=PLAIN, widths=WIDTHS,
    )  # fmt: skip
    assert lines(equal) == [
        "transplt prove: equal: 20 steps compared with the original's; 12 printed results",
        "  one and the other",
        f"    tolerance: {CLOSE}",
    ]


def test_several_comparisons_say_theirs() -> None:
    equal = part(Word.EQUAL, "20 steps compared", "a", steps=20, rounding=REORDERED)
    differs = part(Word.DIFFERS, str(LOST), "b", steps=20, rounding=PLAIN, widths=WIDTHS, differences=[LOST])
    told = "differs: train.py:14: the learning rate is 0.1 at step 8, in the original 0.05 (original: train.py:12)"
    assert lines(equal, differs) == [
        f"transplt prove: {told}",
        "  a",
        "    equal: 20 steps compared",
        "    tolerance: none was needed: the results are bit-identical",
        "  b",
        f"    {told}",
        f"    tolerance: {CLOSE}",
    ]


@pytest.mark.parametrize("word", [Word.RUNS, Word.STOPS, Word.NOT_RUN])
def test_what_was_not_compared_has_no_tolerance(word: Word) -> None:
    assert lines(part(word, "why", rounding=PLAIN, widths=WIDTHS, steps=3)) == [
        f"transplt prove: {word}: why", "  one and the other",
    ]  # fmt: skip


def test_what_differs_at_once_is_not_bit_identical() -> None:
    differs = part(Word.DIFFERS, str(LOST), steps=1, rounding=PLAIN, differences=[LOST])
    assert not [line for line in lines(differs) if "bit-identical" in line]


def test_a_reason_that_the_sentence_has_is_not_repeated() -> None:
    said = part(Word.RUNS, "ran to its end; no training was seen", reasons=["no training was seen", "and more"])
    assert lines(said)[2:] == ["    not compared: and more"]


def test_more_differences_and_remarks() -> None:
    many = [Difference(f"number {number}") for number in range(9)]
    told = lines(part(Word.DIFFERS, "number 0", differences=many, remarks=["mixed precision: 0 of 20 steps skipped"]))
    assert told[2:] == [
        *(f"    also: number {number}" for number in range(1, 6)),
        "    ... and 3 more",
        "    mixed precision: 0 of 20 steps skipped",
    ]


def test_what_a_program_says_stays_in_its_line() -> None:
    odd = "a\x1b[31m\nb\udcff\u202e"
    told = part(Word.DIFFERS, odd, odd, differences=[LOST, Difference(odd)], reasons=[odd, "c\nd"], remarks=[odd])
    text = as_text(Proof([told, told]))
    assert len(text.splitlines()) == 11
    assert all(line.isprintable() for line in text.split("\n"))
    assert "a\\x1b[31m\\nb\\xff\\u202e" in text


def test_json() -> None:
    equal = part(
        Word.EQUAL, "2 steps compared", steps=2, printed=3, saved=4, rounding=PLAIN, widths=WIDTHS, reasons=["r"],
        curves=[Curve("optimizer 0 (Adam)", [(1.5, 1.5, 0.0), (None, math.nan, None), (math.inf, 1.0, 2e-8)])],
        properties=[Property("noise", Verdict(Word.EQUAL, "each rank draws its own"))],
    )  # fmt: skip
    assert "    noise: ok: each rank draws its own" in lines(equal)
    told = as_json(Proof([equal], 12.34), SETUP)
    kept = json.loads(json.dumps(told, allow_nan=False))
    assert len(kept.pop("sha256")) == 64
    assert kept == {
        "schema_version": 2,
        "verdict": "equal",
        "sentence": "2 steps compared",
        "made": "2026-01-02T03:04:05+00:00",
        "command": "transplt prove old new -- --epochs 1",
        "folder": "/work",
        "versions": {"transplt": "1", "python": "3.11.4", "torch": "2.13.0", "torch_npu": "2.8"},
        "settings": {
            "processes": [1],
            "npus": 8,
            "steps": 20,
            "seed": 1234,
            "threads": 1,
            "timeout": 600.0,
            "stubs": [],
        },
        "original": {"path": "old", "main": "main.py", "commit": "a" * 40, "sha256": "b" * 64},
        "migrated": {"path": "new", "main": "main.py", "commit": "", "sha256": "c" * 64},
        "comparisons": [
            {
                "title": "one and the other",
                "verdict": "equal",
                "sentence": "2 steps compared",
                "steps": 2,
                "printed_results": 3,
                "saved_tensors": 4,
                "tolerance": {
                    "rounding": 4 * 2.0**-23,
                    "times": 8.0,
                    "steps": [
                        {"optimizer": 0, "step": 0, "loss": 1e-5}
                        | dict.fromkeys(("gradient", "parameter", "buffer", "metric", "end"))
                    ],
                },
                "differences": [],
                "properties": [{"name": "noise", "verdict": "equal", "sentence": "each rank draws its own"}],
                "not_compared": ["r"],
                "remarks": [],
                "curves": [
                    {
                        "name": "optimizer 0 (Adam)",
                        "steps": [[1.5, 1.5, 0.0], [None, "nan", None], ["inf", 1.0, 2e-8]],
                    }
                ],
            }
        ],
        "seconds_of_runs": 12.3,
    }


def test_json_of_a_difference() -> None:
    told = as_json(Proof([part(Word.DIFFERS, "d", differences=[LOST, Difference("x")])]), SETUP)
    first, second = told["comparisons"][0]["differences"]
    assert first == {
        "what": LOST.what, "path": "train.py", "line": 14, "original_path": "train.py", "original_line": 12,
        "step": 8, "cause": "",
    }  # fmt: skip
    assert [second[key] for key in ("path", "line", "original_path", "original_line", "step")] == [None] * 5
    assert told["comparisons"][0]["tolerance"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (0.5, "0.5"), (1e-4, "0.0001"), (1e-5, "0.00001"), (2e-5, "0.00002"),
        (1.5e-5, "1.5e-5"), (1e-6, "1e-6"), (1.2345678e-10, "1.23457e-10"), (65536.0, "65536"),
        (1048576.0, "1048576"), (1234567.5, "1.23457e6"), (1e10, "1e10"), (-1e-5, "-1e-5"), (math.nan, "nan"),
        (-math.inf, "-inf"), (7, "7"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert figure(value) == text
