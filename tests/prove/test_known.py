"""Runs of an original that are kept: what names them, and that a proof makes them once."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.planted.planting import prove
from transplt.base.disk.cache_folder import Cache
from transplt.proof.launch.interpreter import Versions, versions_of
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.known import Known
from transplt.proof.prove.projects import find_project

OPTIONS = RunOptions("main.py", ("--epochs", "1"), "python", trace=Trace())
VERSIONS = Versions("2.13.0", "2.3.1", "3.12.1", ("torch-2.13.0.dist-info",))
PORTED = {"cuda": "", "npu": "import torch_npu\n"}
PORTED_TO = {"original": "cuda", "migrated": "npu"}
RUN = ScriptRun(0, ({"operators": {"add": 1}},), 1.5, "loss nan\n", traces=([{"e": "begin", "x": float("nan")}],))


@pytest.fixture
def known(tmp_path: Path) -> Known:
    (tmp_path / "cache").mkdir()
    return Known(Cache(tmp_path / "cache"), VERSIONS)


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
    assert known.used == 0  # this proof made it itself
    assert Known(known.cache, VERSIONS).get("0" * 32) is not None


def test_runs_that_others_made_are_counted(known: Known) -> None:
    known.put("0" * 32, RUN, Path("/copy"))
    other = Known(known.cache, VERSIONS)
    other.get("0" * 32)
    other.get("1" * 32)
    assert other.used == 1


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
    monkeypatch.setenv("LR", "0.1")
    keys.add(key(known, project))
    monkeypatch.setenv("LR", "0.2")
    keys.add(key(known, project))
    others = [replace(VERSIONS, torch="2.12.0"), replace(VERSIONS, python="3.13.0")]
    for other in (*others, replace(VERSIONS, installed=(*VERSIONS.installed, "x-1.dist-info"))):
        keys.add(key(Known(known.cache, other), project))
    assert len(keys) == 12


@pytest.mark.parametrize("name", ["PWD", "SHLVL", "TERM", "SSH_TTY", "PYTHONHASHSEED", "TRANSPLT_TESTS"])
def test_what_every_shell_and_every_run_has_otherwise(
    name: str, known: Known, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key(known, project)
    monkeypatch.setenv(name, "another")
    assert key(known, project) == before


@pytest.mark.torch
def test_an_interpreter_that_is_asked_says_what_this_one_does() -> None:
    folder, name = os.path.split(sys.executable)
    here, asked = versions_of(sys.executable), versions_of(os.path.join(folder, ".", name))
    assert asked == replace(here, installed=asked.installed)
    assert any(each.startswith(f"click-{metadata.version('click')}") for each in asked.installed)
    assert {*asked.installed} <= {*here.installed}


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


def cache_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept in a folder of this test; all else, and what forks the runs, is that of all tests."""
    folder.mkdir()
    monkeypatch.delenv("TRANSPLT_NO_CACHE")
    monkeypatch.setattr("transplt.proof.prove.known.Cache", SimpleNamespace(of_user=lambda: Cache(folder)))


@pytest.mark.torch
def test_a_proof_makes_the_runs_of_the_original_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_alone(tmp_path / "cache", monkeypatch)
    told = []
    for factor in (1.0, 1.0, 2.0):
        for name, card, by in (("original", "cuda", 1.0), ("migrated", "npu", factor)):
            (tmp_path / name).mkdir(exist_ok=True)
            text = _TRAINING.format(card=card, factor=by).replace("import torch\n", f"import torch\n{PORTED[card]}", 1)
            (tmp_path / name / "main.py").write_text(text, encoding="utf-8")
        told.append(prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1"))
    assert [each.verdict for each in told] == ["equal", "equal", "differs"]
    assert "from the cache" not in told[0].output
    assert "1 run of the original from the cache (--no-cache repeats them)" in told[1].output


#: The first, third, ... run of the original takes the branch.
_TAKES_TURNS = """
from pathlib import Path
count = Path({count!r})
count.write_text(count.read_text() + "x" if count.exists() else "x")
if len(count.read_text()) % 2:
    note = "odd"
"""


@pytest.mark.torch
def test_whether_the_original_repeats_itself_is_seen_in_a_run_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_alone(tmp_path / "cache", monkeypatch)
    for name, card in PORTED_TO.items():
        begin = _TAKES_TURNS.format(count=str(tmp_path / f"{name}.count"))
        begin = begin.replace("if len", "if 0 * len") if card == "npu" else begin
        (tmp_path / name).mkdir()
        text = _TRAINING.format(card=card, factor=1.0).replace("import torch\n", f"import torch\n{PORTED[card]}", 1)
        (tmp_path / name / "main.py").write_text(begin + text, encoding="utf-8")
    told = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1")
    assert told.verdict == "equal", told.output
    assert "from the cache" not in told.output
