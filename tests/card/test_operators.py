"""Operators of the card beside the CPU's, by samples of PyTorch: each verdict is that of docs/reference/card.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.card.op_table import RUNS, SLICES, TABLE, verdicts

pytestmark = [pytest.mark.torch, pytest.mark.card]


@pytest.mark.parametrize("at", range(SLICES))
@pytest.mark.parametrize(
    "run", [RUNS[0], *(pytest.param(run, marks=pytest.mark.slow) for run in RUNS[1:])]
)
def test_verdicts_are_those_of_the_table(run: str, at: int, tmp_path: Path) -> None:
    recorded = json.loads(TABLE.read_text(encoding="utf-8"))["runs"][run]["others"]
    found = verdicts(run, at, tmp_path)
    assert len(found) > 20
    changed = {
        name: (verdict, why)
        for name, (verdict, why) in found.items()
        if verdict != recorded.get(name, ["right"])[0]
    }
    assert not changed, f"python scripts/card_page.py writes the table anew: {changed}"


def test_none_is_wrong_in_float32() -> None:
    others = json.loads(TABLE.read_text(encoding="utf-8"))["runs"]["float32 forward"]["others"]
    assert [name for name, (verdict, _) in others.items() if verdict == "wrong"] == []
