"""`transplt prove` on forty planted mistakes and twenty right ports: the cause's line, and no false alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.mistakes import MISTAKES, Mistake
from tests.planted.planting import PROGRAMS, Told, miss, mistaken, plant, ported, prove, told
from tests.planted.right import RIGHT, Right, place
from tests.planted.second import judged


def test_forty_mistakes_and_twenty_right_ports() -> None:
    names = [mistake.name for mistake in MISTAKES] + [right.name for right in RIGHT]
    assert (len(MISTAKES), len(RIGHT), len({*names})) == (40, 20, 60)
    # A program that crashes is easily found.
    assert sum(not mistake.ends for mistake in MISTAKES) <= 10


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_mistakes_are_in_programs_that_are_right_without_them(mistake: Mistake, tmp_path: Path) -> None:
    right = ported(PROGRAMS / f"{mistake.base}.py", mistake.port)["main.py"]
    text = mistaken(mistake)
    compile(text, mistake.name, "exec")
    assert text != right
    planted = plant(mistake, tmp_path)
    assert planted.lines or planted.lost
    # Lines that only hold what was there before could be named by chance: they are few.
    assert len(planted.lines) <= 8


def test_lines_that_a_report_names() -> None:
    difference = {"what": "a is 1", "line": 7, "original_line": 5, "cause": "only the original runs main.py:9"}
    parts = [
        {"verdict": "equal", "sentence": "main.py:1: fine", "differences": [], "not_compared": []},
        {"verdict": "differs", "sentence": "main.py:7: a is 1 (original: main.py:5)", "differences": [difference] * 4,
         "not_compared": ["main.py:11: batch statistics"]},
    ]  # fmt: skip
    found = told({"verdict": "differs", "sentence": "", "comparisons": parts}, 1, "")
    assert (found.lines, found.original_lines) == ({7, 9, 11}, {5})


@pytest.mark.parametrize(
    ("verdict", "sentence", "differences", "first"),
    [
        ("differs", "main.py:7: a", [(7, 5), (9, None)], (7, 5)),
        ("differs", "main.py:7: a", [(None, 5)], (None, 5)),
        ("runs", "only the original runs the lines under the if of main.py:9", [], (9, None)),
        ("stops", "it stops (original: main.py:5), main.py:9", [], (None, 5)),
        ("runs", "nothing to compare", [], (None, None)),
    ],
)
def test_the_first_place_that_a_report_names(
    verdict: str, sentence: str, differences: list[tuple[int | None, int | None]], first: tuple[int | None, int | None]
) -> None:
    rows = [{"what": "", "cause": "", "line": line, "original_line": other} for line, other in differences]
    part = {"verdict": verdict, "sentence": sentence, "differences": rows, "not_compared": []}
    equal = {"verdict": "equal", "sentence": "main.py:1", "differences": [], "not_compared": []}
    assert told({"verdict": verdict, "sentence": "", "comparisons": [equal, part]}, 1, "").first == first


@pytest.mark.parametrize(
    ("verdict", "first", "lines", "word"),
    [
        ("differs", (8, None), {8}, "first"),
        ("differs", (None, 4), {30}, "first"),
        ("differs", (30, None), {30, 8}, "right line"),
        ("differs", (30, None), {30}, "found"),
        ("equal", (None, None), set(), "missed"),
    ],
)
def test_how_a_mistake_is_judged(
    verdict: str, first: tuple[int | None, int | None], lines: set[int], word: str
) -> None:
    case = {"kind": "mistake", "verdicts": ["differs"], "lines": [7], "lost": [5]}
    assert judged(case, Told(1, verdict, "", frozenset(lines), frozenset(), "", first)) == word


@pytest.mark.parametrize(
    ("verdict", "word"),
    [(word, word) for word in ("equal", "runs", "not run")] + [(word, "false alarm") for word in ("differs", "stops")],
)
def test_how_a_right_port_is_judged(verdict: str, word: str) -> None:
    assert judged({"kind": "right"}, Told(0, verdict, "", frozenset(), frozenset(), "")) == word


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_mistake_is_found(mistake: Mistake, tmp_path: Path) -> None:
    planted = plant(mistake, tmp_path)
    found = prove(planted.original, planted.migrated, tmp_path, str(mistake.nproc))
    assert miss(mistake, planted, found) == "", found.output
    assert found.code == 1


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.name)
def test_right_port_is_not_called_wrong(right: Right, tmp_path: Path) -> None:
    original, migrated, main = place(right, tmp_path)
    found = prove(original, migrated, tmp_path, right.nproc, "--", *right.arguments, main=main)
    assert found.verdict in ("equal", "runs"), found.output
