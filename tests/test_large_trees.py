"""A large tree keeps less from its first pass and shares the facts among its workers: the output is the same."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import transplt.project.worker
from tests import standin_engine
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts
from transplt.flow.packed_facts import packed, sharing
from transplt.project import file_passes as passes
from transplt.project.options import Options, make_plan
from transplt.project.report.migration_record import RunResult
from transplt.project.tree import migrate_tree

FILES = {
    "pkg/__init__.py": "from .devices import pick\n",
    "pkg/devices.py": "import torch\n\ndef pick(name):\n    return torch.device(name)\n\n"
    "HAS = torch.cuda.is_available()\n",
    "pkg/ops.py": "import torch\nimport nms_cuda\n\n"
    "def nms(x):\n    if x.is_cuda:\n        return nms_cuda.run(x)\n    return x\n",
    "train.py": "from pkg import pick\nfrom pkg.devices import HAS\nfrom pkg.ops import nms\n\nDEVICE = 'cuda'\n\n"
    "def main(model, name=DEVICE):\n    model.to(pick('cuda:0'))\n    return nms(model) if HAS else model\n",
    "conf.yaml": "device: cuda\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(source: Path, output: Path, jobs: int) -> RunResult:
    return migrate_tree(make_plan(Options(source, out=output, jobs=jobs)))


def tree(folder: Path) -> dict[str, bytes]:
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    there = {str(path.relative_to(folder)): path.read_bytes().replace(str(folder).encode(), b"") for path in names}
    return {name: data for name, data in there.items() if not name.startswith((".transplt", "msFmk", "report.html"))}


def test_the_output_is_that_of_a_small_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "proj", FILES)
    small = run(source, tmp_path / "small", 1)
    monkeypatch.setattr(passes, "LARGE_TREE_BYTES", 0)
    large = [run(source, tmp_path / f"large{jobs}", jobs) for jobs in (0, 1, 2)]
    assert any(finding.applied for finding in small.findings)
    assert [each.findings for each in large] == [small.findings] * 3
    assert [tree(tmp_path / f"large{jobs}") for jobs in (0, 1, 2)] == [tree(tmp_path / "small")] * 3


def test_a_worker_that_dies_costs_its_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transplt.engine, "engine", standin_engine)
    monkeypatch.setattr(passes, "LARGE_TREE_BYTES", 0)
    files = {f"m{number}.py": "torch.cuda\n" for number in range(6)} | {"m2.py": "# dies\ntorch.cuda\n"}
    result = run(write(tmp_path / "proj", files), tmp_path / "out", 2)
    assert [record.path for record in result.failed] == ["m2.py"]
    assert (result.output / "m5.py").read_text() == "torch.npu\n"


def test_packed_facts_sum_up_to_the_same() -> None:
    settings = Settings(analysis=True, helper_file=True)
    facts = [index_source(text.encode(), path, settings) for path, text in FILES.items() if path.endswith(".py")]
    sent = [sharing(pickle.loads(pickle.dumps(packed(each))), {}) for each in facts]
    plain, summed = join_facts(facts, settings), join_facts(sent, settings)
    assert plain.reach.needs and plain.slots
    assert summed == plain


def test_slots_without_marks_are_not_kept() -> None:
    text = b"import torch\n\ndef f(a, b):\n    return a\n\nx = f(1, 'cuda')\ny = f(x, 2)\nz = torch.device(y)\n"
    project = join_facts([index_source(text, "m.py", Settings())], Settings())
    assert set(project.slots.values()) <= set(project.marks)
