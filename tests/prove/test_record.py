"""What a proof records of how it was made: the command, the files and commits of both programs, a hash of it all."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.forked import transplt
from tests.planted.planting import prove
from transplt.base.disk.git_command import commit_of
from transplt.proof.prove.command import prove_command
from transplt.proof.prove.projects import find_project
from transplt.proof.prove.record import Program, Setup, command_line, hash_of, sealed

SETUP = Setup(
    "2026-01-02T03:04:05+00:00", "transplt prove old new -- --epochs 1", "/work",
    {"transplt": "1", "python": "3.11.4", "torch": "2.13.0", "torch_npu": "2.8"},
    {"processes": [1], "npus": 8, "steps": 20, "seed": 1234, "threads": 1, "timeout": 600.0, "stubs": []},
    Program("old", "main.py", "a" * 40, "b" * 64), Program("new", "main.py", "", "c" * 64),
)  # fmt: skip


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`old`, `new` and `-odd`, with a main.py each."""
    for name in ("old", "new", "-odd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text("print('ran')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("old new", "old new"),
        ("old new --nproc 1 --npus 8 --steps 20 --seed 1234 --threads 1 --timeout 600", "old new"),
        ("old new --report p.json --report p.html --exit-zero", "old new"),
        ("--steps 0 old --seed 7 new --main tools/train.py",
         "--main tools/train.py --steps 0 --seed 7 old new"),
        ("old new --nproc 1,2 --npus 4 --threads 2 --torch-version 2.8 --timeout 9.5 --python /opt/python",
         "--nproc 1,2 --npus 4 --threads 2 --torch-version 2.8 --timeout 9.5 --python /opt/python old new"),
        ("old new --stubs torchvision --stubs 'my stub.py' --data data --data more",
         "--stubs torchvision --stubs 'my stub.py' --data data --data more old new"),
        ("old new -- --epochs 1 --name 'a b' --seed 3", "old new -- --epochs 1 --name 'a b' --seed 3"),
        ("old new data --", "old new -- data"),
        ("old new -- a -- b", "old new -- a -- b"),
        ("-- -odd new --lr 0.1", "-- -odd new --lr 0.1"),
    ],
)  # fmt: skip
def test_the_command_is_what_was_typed(typed: str, written: str, folders: Path) -> None:
    told = command_line(prove_command.make_context("prove", shlex.split(typed)))
    assert told == f"transplt prove {written}"
    again = command_line(prove_command.make_context("prove", shlex.split(told)[2:]))
    assert again == told


# --- the programs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "other"),
    [("main.py", True), ("sub/more.py", True), ("-x", True), ("__pycache__/main.pyc", False), (".git/HEAD", False),
     ("data/one.bin", False)],
)  # fmt: skip
def test_the_hash_is_of_the_files_that_a_run_gets(path: str, other: bool, folders: Path) -> None:
    before = hash_of(find_project(folders / "old", "", ("data",)))
    (folders / "old" / path).parent.mkdir(exist_ok=True)
    (folders / "old" / path).write_text("x = 1\n")
    assert (hash_of(find_project(folders / "old", "", ("data",))) != before) == other


def test_the_hash_is_as_it_is_documented(folders: Path) -> None:
    (folders / "old" / "a.py").write_text("x = 1\n")
    lines = [
        f"{name}\0{hashlib.sha256((folders / 'old' / name).read_bytes()).hexdigest()}\n" for name in ("a.py", "main.py")
    ]
    assert hash_of(find_project(folders / "old", "", ())) == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert hash_of(find_project(folders / "old", "a.py", ())) != hash_of(find_project(folders / "new", "", ()))


def test_the_commit_of_a_folder(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e"]
        return subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True).stdout.strip()

    assert commit_of(folders / "old") == ""
    git("init", "-q")
    git("add", "old")
    assert commit_of(folders / "old") == ""  # no commit yet
    git("commit", "-q", "-m", "one")
    commit = git("rev-parse", "HEAD")
    assert [commit_of(folders / name) for name in ("old", "new")] == [commit, ""]
    (folders / "new" / "main.py").write_text("changed\n")
    assert commit_of(folders / "old") == commit  # what changed lies elsewhere
    (folders / "old" / "new.py").write_text("new\n")
    assert commit_of(folders / "old") == f"{commit}+changes"
    monkeypatch.setenv("PATH", "")
    assert commit_of(folders / "old") == ""


# --- the record ------------------------------------------------------------------------------------------------------


def test_the_hash_of_a_record_is_as_it_is_documented() -> None:
    text = b'{"a":[1.5,null],"b":{"c":"\\u00e9","d":2}}'
    record = {"b": {"d": 2, "c": "\u00e9"}, "a": [1.5, None]}
    assert sealed(record) == {**record, "sha256": hashlib.sha256(text).hexdigest()}


def test_a_changed_record_shows() -> None:
    record = sealed({"verdict": "differs", "seconds": 1.5, "texts": ["\u00e9", "\udc80"]})
    kept = json.loads(json.dumps(record, indent=1))
    assert sealed({name: value for name, value in kept.items() if name != "sha256"}) == record
    changed = {**kept, "verdict": "equal"}
    assert sealed({name: value for name, value in changed.items() if name != "sha256"}) != changed


_SCRIPT = """
import argparse
import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--name")
given = parser.parse_args()
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=given.lr)
pictures = torchvision.datasets.MNIST("data")
for step in range(9):
    picture = pictures.data[step % len(pictures), 0, :4].float() / 255
    loss = model(picture.cuda() + torch.randn(2, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(given.name, "loss", loss.item(), torch.initial_seed())
"""


@pytest.mark.torch
def test_the_command_of_the_page_makes_the_proof_again(tmp_path: Path) -> None:
    port = _SCRIPT.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu")
    for name, text in (("original", _SCRIPT), ("migrated", port)):
        (tmp_path / name / "tools").mkdir(parents=True)
        (tmp_path / name / "tools" / "train.py").write_text(text, encoding="utf-8")
    page = tmp_path / "proof.html"
    options = [
        "--seed",
        "7",
        "--steps",
        "3",
        "--stubs",
        "torchvision=5",
        "--report",
        str(page),
        "--",
        "--lr",
        "0.1",
        "--name",
        "a b",
    ]
    first = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1", *options, main="tools/train.py")
    record = json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))
    assert first.sentence.startswith("3 steps compared") and first.verdict == "equal"
    assert record["comparisons"][0]["remarks"] == ["MNIST of torchvision was 5 random pictures"]
    shown = re.findall(r'command"><code>(.*)</code>', page.read_text(encoding="utf-8"))
    command = html.unescape(shown[0])
    assert command == record["command"]
    assert sealed({name: value for name, value in record.items() if name != "sha256"}) == record
    code, again, errors = transplt(shlex.split(command)[1:], Path(record["folder"]))
    assert code == first.code, errors
    assert again.splitlines()[0] == f"transplt prove: {first.verdict}: {first.sentence}"
    assert os.path.samefile(record["folder"], tmp_path) and record["settings"]["seed"] == 7
