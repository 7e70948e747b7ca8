"""Runs of an original that are kept: what names them, and that a proof makes them once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.planted.planting import prove
from transplt.disk.cache_folder import Cache
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.known import Known
from transplt.proof.prove.projects import find_project

OPTIONS = RunOptions("main.py", ("--epochs", "1"), "python", trace=Trace())
PORTED = {"cuda": "", "npu": "import torch_npu\n"}
RUN = ScriptRun(0, ({"operators": {"add": 1}},), 1.5, "loss nan\n", traces=([{"e": "begin", "x": float("nan")}],))


@pytest.fixture
def known(tmp_path: Path) -> Known:
    (tmp_path / "cache").mkdir()
    return Known(Cache(tmp_path / "cache"), "2.13.0")


def key(known: Known, folder: Path, options: RunOptions = OPTIONS, data: tuple[str, ...] = ()) -> str:
    known._digests.clear()
    return known.key(find_project(folder, "main.py", data), options, "cuda", {"main.py": [3]})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / "main.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "project" / "data" / "one").write_bytes(b"1")
    return tmp_path / "project"


def test_a_run_comes_back_as_it_was(known: Known) -> None:
    assert known.get("0" * 32) is None
    known.put("0" * 32, RUN, Path("/copy"))
    found = known.get("0" * 32)
    assert found is not None
    assert repr(found) == repr((replace(RUN, seconds=0.0), Path("/copy")))
    assert known.used == 1


@pytest.mark.parametrize("text", ["", "x", "e30=", "%%%"])
def test_what_cannot_be_read_was_not_kept(text: str, known: Known) -> None:
    known.cache.write("1" * 32, text)
    assert known.get("1" * 32) is None


def test_the_same_program_asked_for_in_the_same_way(known: Known, project: Path) -> None:
    assert key(known, project) == key(known, project)
    assert key(known, project) == key(known, project, replace(OPTIONS, timeout=3.0, folder="/elsewhere"))


def test_anything_else_is_another_run(known: Known, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        key(known, project),
        key(known, project, replace(OPTIONS, arguments=())),
        key(known, project, data=("data",)),
    }
    keys.add(key(known, project, replace(OPTIONS, trace=Trace(again=1))))
    keys.add(key(known, project, replace(OPTIONS, trace=Trace(seed=1))))
    (project / "data" / "one").write_bytes(b"2")
    keys.add(key(known, project))
    os.utime(project / "data" / "one", (1, 1))
    keys.add(key(known, project, data=("data",)))
    monkeypatch.setenv("HF_HOME", str(project))
    keys.add(key(known, project))
    keys.add(key(Known(known.cache, "2.12.0"), project))
    assert len(keys) == 9


_TRAINING = """
import torch
model = torch.nn.Linear(4, 1).{card}()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(2, 4, device="{card}")).pow(2).mean() * {factor}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_a_proof_makes_the_runs_of_the_original_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRANSPLT_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    told = []
    for factor in (1.0, 1.0, 2.0):
        for name, card, by in (("original", "cuda", 1.0), ("migrated", "npu", factor)):
            (tmp_path / name).mkdir(exist_ok=True)
            text = _TRAINING.format(card=card, factor=by).replace("import torch\n", f"import torch\n{PORTED[card]}", 1)
            (tmp_path / name / "main.py").write_text(text, encoding="utf-8")
        told.append(prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1"))
    assert [each.verdict for each in told] == ["equal", "equal", "differs"]
    assert "made before" not in told[0].output
    assert "1 run of the original made before (--no-cache makes them anew)" in told[1].output
