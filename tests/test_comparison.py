"""docs/reference/comparison.md is what a run and the facts say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import comparison_table


def test_the_page_is_that_of_the_tree() -> None:
    assert comparison_table.main(["--check"]) == 0


ROW = {"what": "a row", "transplt": "does it", "tool": {"is": "", "source": ""}}


@pytest.mark.parametrize(
    ("shows", "said"),
    [
        ({"after": "x = torch.zeros(2).npu()", "finds": []}, []),
        ({"after": "x = torch.zeros(2).cuda()", "finds": []}, ["is not in what came out"]),
        ({"after": ".npu()", "finds": ["NPU127"]}, ["NPU127 should be told, not "]),
    ],
)
def test_what_transplt_is_said_to_do_is_run(shows: dict[str, Any], said: list[str]) -> None:
    row = {**ROW, "shows": {"before": "import torch\nx = torch.zeros(2).cuda()\n", **shows}}
    found = list(comparison_table.shown_wrong([row, ROW]))
    assert len(found) == len(said) and all(part in each for part, each in zip(said, found, strict=True))


def test_something_that_is_told_and_not_expected_is_wrong() -> None:
    shows = {"before": "import torch\ntorch.cuda.get_gencode_flags()\n", "after": "cuda", "finds": []}
    (said,) = comparison_table.shown_wrong([{**ROW, "shows": shows}])
    assert "nothing should be told" in said


def test_what_is_said_of_other_tools_has_a_source() -> None:
    document = {"tools": {"tool": {}}, "rows": [ROW, {**ROW, "tool": {"is": "yes", "source": ""}}]}
    assert list(comparison_table.without_source(document)) == ["a row: what is said of tool has no source"]


def test_figures_of_other_projects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "train.py").write_text("import torch\nx = torch.zeros(2).cuda()\n")
    (tmp_path / "net" / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    assert comparison_table.main([str(tmp_path / "net")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "| net | 2 | 2 | 1 | 2 | 0 | 0 | 3 | 0 |"


def _row(theirs: str, ours: str, **original: Any) -> dict[str, Any]:
    held = {way: {"verdict": word.partition(": ")[0], "sentence": word.partition(": ")[2]}
            for way, word in (("theirs", theirs), ("ours", ours), ("both", "runs: it ran"))}  # fmt: skip
    return {"script": "net/train.py", "original": {"stop": None, "steps": 2, "operators": 9, **original}, **held}


def test_figures_of_public_scripts() -> None:
    stops = "stops: the migrated program: train.py:9: RuntimeError: no | such device"
    both = "equal: 3 steps compared with the original's, then both stop: train.py:9: RuntimeError: no"
    rows = [
        _row(stops, "equal: 2 steps compared with the original's; 4 printed results"),
        _row(both, both, stop="train.py:9: RuntimeError: no"),
        _row(stops, stops, steps=0),
        _row(stops, stops, operators=0),
    ]
    assert comparison_table.counted(rows) == rows[:2]
    assert [*comparison_table.public(rows[:2])] == [
        "| of 2 scripts | equal | runs | differs | stops | not run |",
        "|---|---|---|---|---|---|",
        "| transfer_to_npu on the original | 1 | 0 | 0 | 1 | 0 |",
        "| transplt | 2 | 0 | 0 | 0 | 0 |",
        "| with each other | 0 | 2 | 0 | 0 | 0 |",
        "",
        "| script | transfer_to_npu on the original | transplt | with each other |",
        "|---|---|---|---|",
        "| net/train.py | stops: train.py:9: RuntimeError: no / such device | equal, 2 steps | runs |",
        "| net/train.py | equal, 3 steps, then both stop | equal, 3 steps, then both stop | runs |",
    ]


def test_a_stale_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, facts = tmp_path / "comparison.md", tmp_path / "comparison.json"
    document = json.loads(comparison_table.FACTS.read_bytes())
    facts.write_text(json.dumps({**document, "rows": document["rows"][:1]}))
    monkeypatch.setattr(comparison_table, "PAGE", page)
    monkeypatch.setattr(comparison_table, "FACTS", facts)
    monkeypatch.setattr(comparison_table, "SAMPLES", ("quick_start",))
    assert comparison_table.main(["--check"]) == 1
    assert comparison_table.main([]) == 0
    assert comparison_table.main(["--check"]) == 0
    page.write_text(page.read_text() + "more\n")
    assert comparison_table.main(["--check"]) == 1
