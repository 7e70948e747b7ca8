"""The comparison with ports by hand says nothing that a run does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import expert_table
from transplt.rules.pages import all_codes

MODEL = {"folder": "net", "port": "a/Net", "original": "b/net", "commit": "123"}
SOURCE = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\nresult = torch.symeig(model.weight)\n\n\nx = 1\n"


def edit(**more: Any) -> dict[str, Any]:
    return {"model": "Net", "kind": "rename", "what": "to the NPU", "port": "t.py:1", "count": 1, **more}


def problems(edits: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a check says of a list of edits for a project of one file."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "t.py").write_text(SOURCE, encoding="utf-8")
    data = tmp_path / "ports.json"
    data.write_text(json.dumps({"models": {"Net": MODEL}, "edits": edits}), encoding="utf-8")
    monkeypatch.setattr(expert_table, "DATA", data)
    return expert_table.untrue(tmp_path)


def test_the_list_is_sound_and_its_codes_exist() -> None:
    models, rows = expert_table.read()
    assert expert_table.mistakes(models, rows) == []
    assert sorted({code for row in rows for code in row.codes} - set(all_codes())) == []
    assert {row.model for row in rows} == set(models)


def test_claims_that_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = [
        edit(outcome="done", codes=["NPU210"], at=["t.py:3"]),
        edit(outcome="otherwise", codes=["NPU210"], at=["t.py:3"], why="another way", torch="2.6"),
        edit(outcome="reported", codes=["NPU514"], at=["t.py:4"]),
        edit(outcome="missed", at=["t.py:7"]),
        edit(outcome="not applicable", why="a path"),
    ]
    assert problems(edits, tmp_path, monkeypatch) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (edit(outcome="done", codes=["NPU210"], at=["t.py:4"]), "has NPU514, not NPU210"),
        (edit(outcome="done", codes=["NPU210"], at=["t.py:3"], count=2), "1 edits, not 2"),
        (edit(outcome="done", codes=["NPU210"], at=["other.py:3"]), "has nothing, not NPU210"),
        (edit(outcome="done", codes=["NPU514"], at=["t.py:4"]), "has NPU514, not NPU514"),
        (edit(outcome="reported", codes=["NPU210"], at=["t.py:3"]), "not NPU210"),
        (edit(outcome="missed", at=["t.py:4"]), "has NPU514"),
        (edit(outcome="missed", at=["t.py:7"], codes=["NPU514"]), "other rows have no codes"),
        (edit(outcome="done", at=["t.py:3"]), "a claim needs codes"),
        (edit(outcome="done", codes=["NPU210"]), "a claim needs codes and places"),
        (edit(outcome="perhaps"), "no such model, outcome"),
        (edit(outcome="missed", model="Nets"), "no such model, outcome"),
        (edit(outcome="not applicable"), "needs a reason"),
    ],
)
def test_claims_that_do_not(row: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = problems([row], tmp_path, monkeypatch)
    assert found
    assert any(said in problem for problem in found), found


def test_files_that_could_not_be_migrated_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.SOURCE", "def f(:\n    x.cuda()\n")
    edits = [edit(outcome="not applicable", why="a path")]
    assert problems(edits, tmp_path, monkeypatch) == ["Net: t.py could not be migrated"]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert expert_table.main([]) == 0
    assert capsys.readouterr().out.count("\n### ") == 5
    assert expert_table.main(["--what"]) == 2
    problems([], tmp_path, monkeypatch)
    assert expert_table.main(["--check", str(tmp_path)]) == 0
    assert "every claim holds" in capsys.readouterr().out
