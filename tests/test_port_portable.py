"""`transplt port --style portable`: a branch that reads like a maintainer's, and goes on after upstream has moved."""

from __future__ import annotations

import ast
import json
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.finding import Effort, Finding, Level, Operation, Replacement, Span
from transplt.base.language import Sentence
from transplt.base.text.source import read_source
from transplt.edits.helper_file import helper_text
from transplt.engine.actions.action import Action, Place
from transplt.faces.cli.main import main
from transplt.project.port.body import MOST, _items, body
from transplt.project.port.decisions import decision_of, decisions
from transplt.project.port.port import _lists
from transplt.project.port.steps import Changed, _without_unused, steps_of

TRAIN = """\
import torch
import torch.distributed as dist

from pkg.model import make

dist.init_process_group("nccl")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.cuda.manual_seed(1)
state = torch.load("a.pt", map_location="cuda:0")
with torch.cuda.amp.autocast():
    print(make()(torch.ones(2, 4, device=device)))
torch.cuda.synchronize()
"""
MODEL = """\
import torch


def make():
    return torch.nn.Linear(4, 2).cuda()
"""
MORE = """\
import torch
from torch.cuda.amp import GradScaler


def more(x):
    torch.cuda.empty_cache()
    scaler = GradScaler(enabled=torch.cuda.is_available())
    return scaler.scale(x.sum()).cuda()
"""


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True).stdout.decode()


def commit(folder: Path, message: str, **files: str) -> None:
    """Writes files (`pkg__more` is pkg/more.py) and commits all that is there."""
    for name, text in files.items():
        (folder / f"{name.replace('__', '/')}.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    folder = tmp_path / "project"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").touch()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "begin", train=TRAIN, pkg__model=MODEL)
    return folder


def port(folder: Path, *arguments: str) -> tuple[str, str]:
    """The text of the pull request, and what was said beside it."""
    asked = ["port", str(folder), "--style", "portable", "--torch-version", "2.6", "--exit-zero", *arguments]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def at(folder: Path, path: str, commit: str = "npu-port") -> str:
    return git(folder, "show", f"{commit}:{path}")


def subjects(folder: Path, since: str = "main") -> list[str]:
    return git(folder, "log", "--reverse", "--no-merges", "--format=%s", f"{since}..npu-port").splitlines()


def test_the_module_comes_first_and_each_theme_is_a_commit(project: Path) -> None:
    port(project)
    assert subjects(project) == [
        "Choose the accelerator in pkg/device.py",
        "Take the device from the accelerator in use",
        "Make calls of torch.cuda device-agnostic",
        "Make mixed precision device-agnostic",
        "Load checkpoints that were saved on another device",
        "Choose the communication backend by accelerator",
    ]
    assert git(project, "show", "--format=", "--name-only", "npu-port~5").split() == ["pkg/device.py"]
    assert "edits in" not in git(project, "log", "--format=%B", "main..npu-port")


def test_each_commit_takes_what_it_uses_and_no_more(project: Path) -> None:
    port(project)
    lines = [at(project, "train.py", f"npu-port~{back}").splitlines()[3] for back in range(4, -1, -1)]
    assert lines == [
        "from pkg.device import DEVICE_TYPE, device_module",
        "from pkg.device import DEVICE_TYPE, device_module",
        "from pkg.device import DEVICE_TYPE, autocast, device_module",
        "from pkg.device import DEVICE_TYPE, autocast, device_module",
        "from pkg.device import DEVICE_TYPE, DIST_BACKEND, autocast, device_module",
    ]
    for name in git(project, "rev-list", "main..npu-port").split():
        ast.parse(at(project, "train.py", name))


def test_the_module_begins_with_what_the_project_uses() -> None:
    lines = helper_text({"DIST_BACKEND", "device_module", "grad_scaler"}, portable=True).splitlines()
    names = [line.partition(" = ")[0] for line in lines if " = " in line and line[0] != " "]
    assert names == ["_has_npu", "DEVICE_TYPE", "device_module", "DIST_BACKEND", "_amp"]


def test_no_file_of_ours_is_on_the_branch(project: Path) -> None:
    port(project)
    changed = git(project, "diff", "--name-only", "main", "npu-port").split()
    assert changed == ["pkg/device.py", "pkg/model.py", "train.py"]


def test_the_text_of_the_pull_request(project: Path) -> None:
    text, said = port(project)
    assert "The accelerator is chosen in `pkg/device.py`: an NPU if" in text
    assert "- Nothing was run, and no card was used.\n" in text
    assert "## What is left\n\nNothing is known that stops it on an NPU.\n" in text
    assert "## What" not in said and len(text.split()) < 100
    assert port(project)[0] == text  # nothing new: it says the same of the branch


def test_what_is_left_stands_in_it_with_its_places(project: Path) -> None:
    commit(project, "graph", pkg__graph="import torch\n\n\ndef capture(f):\n    return torch.cuda.CUDAGraph()\n")
    text, _ = port(project)
    assert "`pkg/graph.py:5`" in text.partition("## What is left")[2]


def test_what_is_left_speaks_neither_of_the_tool_nor_of_what_the_branch_settles(project: Path) -> None:
    (project / "requirements.txt").write_text("torch==2.1.0\n")
    commit(project, "more", pkg__many="import torch\n\nnet = torch.nn.DataParallel(torch.nn.Linear(1, 1).cuda())\n")
    left = port(project)[0].partition("## What is left")[2]
    several = "- Use DistributedDataParallel for several NPUs: DataParallel fails with more than one"
    assert f"{several} (`pkg/many.py:5`)\n" in left
    assert not [word for word in ("transplt", "requirements") if word in left]
    assert port(project)[0].partition("## What is left")[2] == left


def test_what_packages_gave_up_is_measured_by_what_the_branch_asks_for(project: Path) -> None:
    """Trainer is of transformers 4.32 here: AdamW is gone since 4.50 alone, the models lie in folders since 4.0."""
    (project / "requirements.txt").write_text("torch==2.1.0\ntransformers==3.4.0\n")
    uses = "from transformers import AdamW, Trainer\nfrom transformers.modeling_bert import BertModel\n"
    commit(project, "more", train=f"{uses}{TRAIN}")
    text, said = port(project, "--torch-version", "2.14")
    assert "transformers>=4.32.0,<4.33" in at(project, "requirements-npu.txt")
    assert "**Not ready**: on an NPU no program trains until" in text and "not ready for a pull request" in said
    assert "(at import with transformers >= 4.0 on every device; `train.py:2`)" in text
    assert "AdamW" not in text


@pytest.mark.parametrize(
    ("of", "ready"),
    [({}, False), ({"code": "NPU103"}, True), ({"code": "NPU152"}, True), ({"api": "--opt fused"}, True)],
)
def test_what_a_program_goes_on_after_keeps_none_from_training(of: dict[str, Any], ready: bool) -> None:
    """Mixed precision of CUDA that does nothing, a file that may come from a GPU, and what an option asks for."""
    part = action("Mend it", "a.py:1", blocks="first step", **of)
    text = body(["device.py"], ["Choose it"], "torch 2.6", None, None, [], [part])
    assert ("Not ready" not in text) is ready and "- Mend it (`a.py:1`)" in text


def test_what_is_in_lists_and_documents_is_left_to_the_reports(project: Path) -> None:
    (project / "setup.cfg").write_text("[metadata]\nname = p\n\n[options]\ninstall_requires =\n    torch\n")
    (project / "Dockerfile").write_text("FROM nvidia/cuda:11.8.0-devel-ubuntu22.04\n")
    commit(project, "install", pkg__graph="import torch\n\n\ndef capture(f):\n    return torch.cuda.CUDAGraph()\n")
    text, said = port(project)
    left = text.partition("## What is left\n\n")[2].splitlines()
    assert [line.partition(" (")[0] for line in left] == ["- Decide what an NPU does instead of torch.cuda.CUDAGraph"]
    assert "left to do by hand: 3 actions" in said
    assert "lists all of them, the text below those in code that stop programs on NPUs" in said


def test_the_npu_style_has_no_such_text(project: Path) -> None:
    done = CliRunner().invoke(main, ["port", str(project), "--exit-zero"])
    assert done.exit_code == 0 and "## What" not in done.stdout and "npu-port has" in done.stdout
    assert "NPU_PORT.md" in git(project, "diff", "--name-only", "main", "npu-port")


def action(title: str, *places: str, blocks: str = "later", code: str = "NPU510", **of: Any) -> Action:
    """An action with a finding at each place (`a.py:3`)."""
    at = [(path, int(line)) for path, _, line in (each.partition(":") for each in places)]
    found = [Finding(path, Span(line, 1, line, 1, 0, 0), code, Level.MANUAL, "m", **of) for path, line in at]  # type: ignore[arg-type]
    where = tuple(Place(path, (line,), 1) for path, line in at)
    return Action(Sentence(title, name=of.get("api", "")), blocks, Effort.LOW, 1.0, "how", (code,), where, tuple(found))


def left_of(*left: Action, **more: object) -> list[str]:
    """The lines of what is left."""
    text = body(["device.py"], ["Choose it"], "torch 2.6", None, None, [], left, **more)  # type: ignore[arg-type]
    return [line for line in text.partition("## What is left")[2].splitlines() if line.startswith("- ")]


def test_a_long_text_is_cut() -> None:
    lines = left_of(*(action(f"Move x{number}", f"a{number}.py:1", code="NPU137") for number in range(80)))
    assert len(lines) == MOST and lines[-1] == f"- and {81 - MOST} more, met later"
    assert left_of(action("Do it", *[f"a{number}.py:1" for number in range(5)])) == []
    far = [action(f"Move{' far' * 150}", "a.py:1", code="NPU137"), action("Move", "b.py:1", code="NPU137")]
    assert left_of(*far) == [f"- Move{' far' * 150} (`a.py:1`)", "- and 1 more, met later"]
    (line,) = left_of(action("Move it", *[f"a{number}.py:1" for number in range(5)]))
    assert line == "- Move it (`a0.py:1`, `a1.py:1`, `a2.py:1` and 2 more)"


@pytest.mark.parametrize(
    ("title", "of"),
    [
        ("Replace x", {"blocks": "first step", "option": "--x"}),
        ("Replace x", {}),  # a package that NPUs lack
        ("Update x: y imports it, and is gone", {"code": "NPU293"}),
    ],
)
def test_what_stops_a_program_is_named_however_long_the_text_is(title: str, of: dict[str, Any]) -> None:
    others = [action(f"Move x{number}", f"a{number}.py:1", code="NPU137") for number in range(80)]
    (first, *_, last) = left_of(*others, action(title, "net.py:1", **of))
    assert "`net.py:1`" in first and last == f"- and {82 - MOST} more, met later"
    names = [action("Move {name} there", f"{name}.py:1", api=name) for name in ("k0", "k1", "k2", "k3", "k4")]
    said = "- Move k0 and k1 and k2 and k3 and k4 there (`k0.py:1`, `k1.py:1`, `k2.py:1` and 2 more)"
    assert left_of(*names) == [said]
    text = body([], ["x"], "", None, None, [], [], stopped={f"{name}.py": f"stop at import {name}" for name in "abc"})
    assert "on an NPU stop at import a, or stop at import b, or stop at import c.\n" in text


@pytest.mark.parametrize(
    ("title", "code", "api", "said"),
    [
        # CUDA's users keep what they have.
        ("Replace {name}: no NPU support", "NPU510", "x", "Add code for NPUs beside x: no NPU support (`a.py:3`)"),
        (
            "Replace the CUDA kernel {name}, or rewrite it for the NPU", "NPU553", "x",
            "Add code for NPUs beside the CUDA kernel x (`a.py:3`)",
        ),
        (
            "Replace {name}: removed", "NPU514", "torch.x",
            "Replace torch.x: removed (with newer releases on every device; `a.py:3`)",
        ),
        (
            "Replace {name}: removed", "NPU514", "pandas.x",
            "Replace pandas.x: removed (with newer releases on every device; `a.py:3`)",
        ),
        # What may stop nothing.
        ("Check {name}", "NPU602", "x", ""),
        ("Decide which of these strings are devices", "NPU203", "", ""),
    ],
)
def test_what_stops_an_npu_for_sure_is_left(title: str, code: str, api: str, said: str) -> None:
    assert left_of(action(title, "a.py:3", code=code, api=api)) == [f"- {said}"] * bool(said)


def test_what_programs_do_not_come_to_is_not_left() -> None:
    several = ("tests/test_a.py:3", "setup.py:3", "requirements.txt:3", "old.py:3")
    assert left_of(action("Replace {name}", *several, api="x"), stopped={"old.py": "stop at import x (old.py)"}) == []
    assert left_of(action("Replace {name}", "a.py:3", api="x", late="branch")) == []
    lines = left_of(action("Replace {name}", "a.py:3", api="x", late="branch", option="--x"))
    assert lines == ["- Add code for NPUs beside x (only with --x; `a.py:3`)"]
    # Whether a script trains is not said.
    assert left_of(action("Move it", "a.py:3", late="other")) == ["- Move it (`a.py:3`)"]


def test_what_a_function_does_is_in_the_program_all_the_same() -> None:
    assert left_of(action("Move it", "a.py:3", details=(("function", "plan()"),))) == ["- Move it (`a.py:3`)"]


def test_a_device_that_a_configuration_names_is_left() -> None:
    title = "Set npu or hccl on NPU hosts where scripts and configurations name a device or backend"
    device = {"code": "NPU821", "details": (("key", "train.device"),)}
    lines = left_of(action(title, "config.yaml:2", api="cuda:0", **device))
    assert lines == ["- On hosts with NPUs set `train.device: npu:0` (`config.yaml:2`)"]
    lines = left_of(action(title, "config.yaml:2", code="NPU821", api="nccl", details=(("key", "backend"),)))
    assert lines == ["- With several NPUs set `backend: hccl` (`config.yaml:2`)"]
    about = "On CUDA and on a CPU the program does what it did.{}\n".format
    decides = " But `c.yaml` names the device: on an NPU start the program with `train.device=npu`, or set that there."
    for api, said in (("cuda", decides), ("nccl", "")):
        text = body(["device.py"], ["x"], "torch 2.6", None, None, [], [action(title, "c.yaml:2", api=api, **device)])
        assert about(said) in text
    assert left_of(action(title, "a.yaml:2", code="NPU821", api="cuda", blocks="tidy")) == []  # nobody reads it


def test_what_differs_in_its_name_is_one() -> None:
    parts = [action("Move {name} there", f"{name}.py:1", api=name) for name in ("a", "b")]
    assert left_of(*parts, action("Move {name} there", "c.py:1", api="c", option="--c")) == [
        "- Move a and b there (`a.py:1`, `b.py:1`)", "- Move c there (only with --c; `c.py:1`)"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({}, True), ({"timm": "<0.9"}, False), ({"timm": "==0.6.13"}, False), ({"timm": ">=0.9"}, True),
        ({"timm": ">=0.4,<1"}, True), ({"torchvision": "<0.9"}, True), ({"timm": "<0.9,>=0.4"}, False),
    ],
)  # fmt: skip
def test_what_newer_releases_refuse_is_left_where_a_list_lets_them_in(asked: dict[str, str], left: bool) -> None:
    """An older one is an answer: what stops with newer ones alone is no reason that nothing trains."""
    older = (("gone", "timm >= 0.9"), ("back", "timm<0.9"))
    part = action("Update the uses of {name}", "a.py:1", code="NPU293", api="timm.x", blocks="import", details=older)
    said = "- Update the uses of timm.x (with timm >= 0.9 on every device; `a.py:1`)"
    assert left_of(part, older=asked) == [said] * left


def test_a_name_that_each_release_of_torch_settles_is_left() -> None:
    text = action("Replace x of torchtext: gone since 0.12", "a.py:1", code="NPU514", api="torchtext.x")
    assert len(left_of(text)) == 1


@pytest.mark.parametrize(
    ("message", "of", "said"),
    [
        ("torch.load refuses this checkpoint since torch 2.6: it contains args", {}, "with torch >= 2.6"),
        ("timm has its models in folders since 4.0, and Python 3.10 has only newer ones", {}, "with timm >= 4.0"),
        ("timm has no x since some release after 4.9", {}, "with timm > 4.9"),
        ("timm no longer has this name", {"details": (("gone", "timm > 0.9"),)}, "with timm > 0.9"),
        # An upper bound is no first release: the last one that is known to have it is named.
        ("timm no longer has x (removed after 4.3, in 4.8 at the latest)", {"details": (("gone", "timm >= 4.8"),)},
         "with timm > 4.3"),
        ("timm no longer has this name", {"blocks": "import"}, "at import with newer releases"),
    ],
)  # fmt: skip
def test_what_newer_releases_refuse_has_its_release(message: str, of: dict[str, Any], said: str) -> None:
    """Who runs on CUDA wants to know whether it is about them."""
    (found,) = (part := action("Update it", "a.py:1", code="NPU293", api="timm.x")).findings
    first, last = (replace(found, message=message, **of), replace(found, message=message.replace("4.", "5."), **of))
    both = replace(part, findings=(last, first))
    assert [*_items([both])] == [f"- Update it ({said} on every device; `a.py:1`)"]


def test_a_text_says_once_what_an_npu_needs() -> None:
    lists = ["requirements-npu.txt"]
    text = body(["device.py"], ["Choose it"], "torch 2.6 with torch_npu 2.6.0", None, None, [], [], lists)
    needs = "needs CANN and torch-npu; it is written for torch 2.6 with torch_npu 2.6.0."
    assert f"{needs} Packages: `requirements-npu.txt`.\n" in text and text.count("torch_npu 2.6.0") == 1
    text = body(["device.py"], ["Choose it"], "torch 2.6 with torch_npu 2.6.0", None, None, [], [])
    assert f"{needs} Packages: `pip install torch==2.6 torch-npu==2.6.0`.\n" in text


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        (["device.py"], "in `device.py`"),
        (["a/device.py", "net.ipynb"], "in `a/device.py`, `net.ipynb`"),
        (["a", "b", "c", "d"], "in 4 files"),
    ],
)
def test_where_the_accelerator_is_chosen(modules: list[str], said: str) -> None:
    text = body(modules, ["Choose it"], "torch 2.6", None, None, [], [])
    assert f"The accelerator is chosen {said}: an NPU if torch_npu is installed" in text


def test_commits_that_are_not_for_npus_are_named() -> None:
    text = body(["device.py"], ["Choose it", "Use names and calls of current NumPy"], "torch 2.6", None, None, [], [])
    assert "“Use names and calls of current NumPy”: not for NPUs, and can be merged alone.\n" in text


@pytest.mark.parametrize(
    ("blocks", "path", "of", "said"),
    [
        ("import", "net.py", {}, True),
        ("import", "old.py", {}, True),
        ("first step", "net.py", {}, True),
        ("import", "net.py", {"option": "--x"}, False),
        ("import", "net.py", {"late": "called"}, False),
        ("import", "net.py", {"details": (("function", "plan()"),)}, False),
        ("first step", "net.py", {"code": "NPU293", "api": "torch.x"}, False),  # on every device
        ("import", "net.py", {"code": "NPU293", "api": "torch.x"}, True),  # with the releases that NPUs need
        # which may stay as old as it is
        ("import", "net.py", {"code": "NPU293", "api": "pandas.x", "details": (("back", "pandas<2"),)}, False),
        ("import", ".gitmodules", {"code": "NPU601"}, True),
        ("import", "requirements.txt", {}, False),
        ("later", "net.py", {}, False),
    ],
)
def test_what_stops_all_training_is_said_first(blocks: str, path: str, of: dict[str, Any], said: bool) -> None:
    (found,) = (part := action("Replace x", f"{path}:3", blocks=blocks)).findings
    found = replace(found, **of)
    left = [replace(part, findings=(found,), codes=(found.code,))]
    stopped = {"old.py": "stop at import x (old.py)", "more.py": "stop at import x (more.py)"}
    text = body(["device.py"], ["Choose it"], "torch 2.6", None, None, [], left, [], stopped)
    assert text.splitlines()[2].startswith("**Not ready**: on an NPU no program trains until this is done:") == said
    assert text.count("- Replace x") <= 1
    assert "Programs that come to them on an NPU stop at import x." in text


@pytest.mark.parametrize(
    ("reached", "said"),
    [
        ({}, "Not ready"),
        ({"train.py": ["train.py", "net.py"]}, "Not ready"),
        ({"train.py": ["net.py"], "tune.py": ["net.py", "old.py"]}, "Not ready"),
        ({"train.py": ["train.py"]}, "Not ready"),  # it may be loaded by its name
        ({"train.py": ["net.py"], "tune.py": ["old.py"]}, "`train.py` stops"),
        ({"train.py": ["net.py"], "tune.py": ["net.py"], "a/run.py": []}, "`train.py`, `tune.py` stop"),
    ],
)
def test_programs_that_do_not_train_are_named_where_others_do(reached: dict[str, list[str]], said: str) -> None:
    left = [action("Replace x", "net.py:3", blocks="import")]
    text = body(["device.py"], ["Choose it"], "torch 2.6", None, None, [], left, programs=reached)
    start = f"**In part**: on an NPU {said}" if "stop" in said else "**Not ready**: on an NPU no program trains"
    assert text.splitlines()[2] == f"{start} until this is done:"


def test_kernels_of_a_branch_are_left_and_named_together() -> None:
    title = "Replace the CUDA kernel {name}, or rewrite it for the NPU"
    parts = [action(title, f"{name}/grid.py:3", api=name, late="branch", code="NPU553") for name in ("hash", "net")]
    both = "the CUDA kernels hash and net (`hash/grid.py:3`, `net/grid.py:3`)"
    assert left_of(*parts) == [f"- Add code for NPUs beside {both}"]
    assert left_of(action("Do not pass verbose to {name}", "a.py:3", api="x")) == [
        "- Do not pass verbose to x (`a.py:3`)"
    ]


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ([], []),
        (["requirements-npu.txt", "README.md"], ["requirements-npu.txt"]),
        (["examples/a/requirements-npu.txt"], ["examples/a/requirements-npu.txt"]),
        (["examples/a/requirements-npu.txt", "environment-npu.yml"], ["environment-npu.yml"]),
    ],
)
def test_the_list_of_an_example_does_not_stand_for_the_project(own: list[str], named: list[str]) -> None:
    assert _lists([], own) == named
    extra = Finding("pyproject.toml", Span(1, 1, 1, 1, 0, 0), "NPU841", Level.SAFE, "m")
    assert _lists([replace(extra, path="requirements-npu.txt")], own) == named
    assert _lists([extra], own) == sorted([".[npu]", *(each for each in named if "/" not in each)])


def test_a_bound_that_setup_py_takes_from_a_list_is_left_to_do(project: Path) -> None:
    (project / "requirements.txt").write_text("torch>=1.8\ntorchaudio>=0.8,<2.1\n", encoding="ascii")
    commit(project, "list", net="import torch\nx = torch.ones(1).cuda()\n")
    assert "torchaudio" not in port(project)[0].partition("## What is left")[2]
    commit(project, "setup", setup="install(open('requirements.txt'))\n")
    assert "- Raise the pinned version of torchaudio (`requirements.txt:2`)" in port(project, "--branch", "again")[0]


def test_code_of_others_and_of_other_hosts_stays_as_it_is(project: Path) -> None:
    """A notebook that was opened on Colab, and a project that was copied whole; what the program imports does not."""
    (project / "lab.ipynb").write_text(json.dumps({
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"colab": {}}, "cells": [{"cell_type": "code", "id": "a",
        "metadata": {}, "outputs": [], "execution_count": None, "source": "import torch\nx = torch.ones(1).cuda()\n"}],
    }), encoding="ascii")  # fmt: skip
    code = "import torch\n\nx = torch.ones(1).cuda()\ny = x.cuda()\nz = y.cuda()\n"
    copied = {"setup": "import setuptools\n", "quant__main": code}
    (folder := project / "third_party/quant/quant").mkdir(parents=True)
    (folder / "__init__.py").write_text("from . import main\n", encoding="ascii")
    own = {"net": f"import third_party.used\n{code}", "third_party__used": code}
    commit(project, "more", **own, **{f"third_party__quant__{each}": text for each, text in copied.items()})
    text, _ = port(project)
    assert "**Not ported**: `lab.ipynb`: for Colab, which has no NPUs.\n" in text
    stays = "third_party/quant/quant/main.py"
    assert f"**Not ported**: `{stays}`: old or copied code, which no training uses.\n" in text
    changed = {*git(project, "diff", "--name-only", "main", "npu-port").split()}
    assert {"net.py", "third_party/used.py"} <= changed and changed.isdisjoint(["lab.ipynb", stays])


def test_old_code_stays_as_it_is(project: Path) -> None:
    old = "import numpy as np\nimport torch\n\nx = torch.zeros(1, dtype=np.int).cuda()\ny = np.int(1)\n"
    commit(project, "old", net="import torch\n\nx = torch.ones(1).cuda()\n", train_old=old)
    text = port(project)[0]
    assert "**Not ported**: `train_old.py`: old or copied code, which no training uses.\n" in text
    assert "Nothing is known that stops it on an NPU." in text
    assert "train_old.py" not in git(project, "diff", "--name-only", "main", "npu-port")


def test_what_is_not_ported_is_said_first(project: Path) -> None:
    flash = "import torch\nfrom flash_attn import flash_attn_func\n\nx = torch.ones(1).cuda()\n"
    commit(project, "flash", net=flash, train_net="import net\n\nprint(net.x.cuda())\n")
    text = port(project)[0]
    assert text.splitlines()[2:5] == [
        "**Not ready**: on an NPU no program trains until this is done:", "",
        "- Add code for NPUs beside flash_attn: no NPU support (`net.py:2`)",
    ]  # fmt: skip
    why = "`train_net.py`, `net.py`. Programs that come to them on an NPU stop at import flash_attn."
    assert f"**Not ported**: {why}\n" in text
    assert "Add the NPU case" not in text and "net.py" not in git(project, "diff", "--name-only", "main", "npu-port")


@pytest.mark.parametrize(
    ("setup", "stays"),
    [("import setuptools\n", True), ("from torch.utils.cpp_extension import CUDAExtension\n", False)],
)
def test_a_copy_of_operators_that_nothing_compiles_stays(project: Path, setup: str, stays: bool) -> None:
    """What a copy of mmcv loads as it is imported is a module that only its own build makes."""
    ops = "import torch\nfrom .loader import load_ext\next = load_ext('_ext', ['knn'])\n\nx = torch.ones(1).cuda()\n"
    more = {"lib__ops": ops, "lib__more": ops, "lib__loader": "import importlib\n"}
    (project / "lib").mkdir()
    (project / "lib/__init__.py").touch()
    commit(project, "ops", lib__net="import torch\nx = torch.ones(1).cuda()\n", setup=setup, **more)
    text = port(project)[0]
    why = "`lib/more.py`, `lib/ops.py`. Programs that come to them on an NPU stop at import mmcv._ext."
    assert (f"**Not ported**: {why}\n" in text) == stays
    changed = git(project, "diff", "--name-only", "main", "npu-port").split()
    assert "lib/net.py" in changed and ("lib/ops.py" in changed) != stays


@pytest.mark.parametrize("other", ["import megablocks", "from flash_attn.losses.cross_entropy import CrossEntropyLoss"])
def test_an_adaptor_of_one_package_ports_no_file_that_stops_at_another(project: Path, other: str) -> None:
    flash = "import torch\nfrom flash_attn import flash_attn_func\n{}\nx = torch.ones(1).cuda()\n"
    both = "import both\n\nprint(both.x.cuda())\n"
    commit(project, "flash", net=flash.format(""), both=flash.format(f"{other}\n"), train_both=both)
    text = port(project, "--adapt", "attention")[0]
    assert "**Not ported**: `train_both.py`, `both.py`. Programs that come to them on an NPU stop at import" in text
    changed = git(project, "diff", "--name-only", "main", "npu-port").split()
    assert "net.py" in changed and "train_both.py" not in changed


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("from device import A, b\n", "from device import b\n"),
        ("from device import (\n    A,\n    b,\n    c as d,\n)\n", "from device import (\n    b,\n    c as d,\n)\n"),
        ('    "from device import A, b\\n",\n', '    "from device import b\\n",\n'),
        ('\\n",\n    "from device import A, b"', '\\n",\n    "from device import b"'),
    ],
)
def test_an_import_brings_what_a_commit_uses(written: str, left: str) -> None:
    span, used = Span(1, 1, 1, 1, 0, 0), Replacement(Operation.MODIFY, "x", "b(d)")
    edits = [Finding("a.py", span, code, Level.SAFE, "m", edit=edit, applied=True) for code, edit in
             (("NPU156", Replacement(Operation.INSERT, "", written)), ("NPU260", used))]  # fmt: skip
    (taken, _) = _without_unused(edits, read_source(b"x\n"))
    assert taken.edit is not None and taken.edit.after == left


def test_a_place_says_when_it_is_met_and_is_listed_once(project: Path) -> None:
    many = """\
        import torch
        from absl import flags
        flags.DEFINE_boolean("parallel", False, "on several cards")
        FLAGS = flags.FLAGS
        if FLAGS.parallel:
            net = torch.nn.DataParallel(torch.nn.Linear(1, 1).cuda())
        from transformers.modeling_bert import BertModel
        if torch.__version__ < "1.6":
            from apex import amp
        else:
            from torch.cuda.amp import autocast
            kind = autocast
        """
    commit(project, "more", many=textwrap.dedent(many))
    done = CliRunner().invoke(main, ["port", str(project), "--style", "portable", "--exit-zero"])
    left = [line for line in done.stdout.splitlines() if "many.py" in line]
    several = "- Use DistributedDataParallel for several NPUs: DataParallel fails with more than one"
    assert f"{several} (only with --parallel; `many.py:9`)" in left
    assert sum("transformers >= 4.0 on every device" in line for line in left) == 1  # its list keeps no older release
    assert sum("mixed precision" in line or "CUDA-only code" in line for line in left) == 1


def test_two_places_of_one_sentence_keep_what_is_known_of_each(project: Path) -> None:
    several = """\
        import argparse, torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--eval", action="store_true")
        args = parser.parse_args()
        def train(net):
            return torch.nn.DataParallel(net.cuda())
        def test(net):
            return torch.nn.DataParallel(net.cuda())
        if args.eval:
            test(torch.nn.Linear(1, 1))
        else:
            train(torch.nn.Linear(1, 1))
        """
    commit(project, "more", several=textwrap.dedent(several))
    done = CliRunner().invoke(main, ["port", str(project), "--style", "portable", "--exit-zero"])
    (line,) = (line for line in done.stdout.splitlines() if "several.py" in line and "DataParallel" in line)
    assert "--eval" not in line


# --- going on --------------------------------------------------------------------------------------------------------


def go_on(folder: Path, **files: str) -> tuple[str, str]:
    """Upstream commits files, they are merged into the branch, which is ported again; its last tip and what is said."""
    commit(folder, "upstream", **files)
    git(folder, "switch", "-q", "npu-port")
    git(folder, "merge", "-q", "-m", "merge", "main")
    git(folder, "switch", "-q", "main")
    tip = git(folder, "rev-parse", "npu-port").strip()
    return tip, port(folder)[0]


def edit(folder: Path, path: str, old: str, new: str) -> None:
    """A person's commit on the branch."""
    git(folder, "switch", "-q", "npu-port")
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new))
    commit(folder, "mine")
    git(folder, "switch", "-q", "main")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("device_module = getattr(torch, DEVICE_TYPE)\n", "device_module = getattr(torch, DEVICE_TYPE)\nMINE = 1\n"),
        ('else "cuda"\n', 'else "xpu" if torch.xpu.is_available() else "cuda"\n'),
        ('"npu"', "'npu'"),
    ],
    ids=["a constant more", "a device more", "other quotes"],
)
def test_what_people_change_in_the_module_stays(project: Path, old: str, new: str) -> None:
    port(project)
    edit(project, "pkg/device.py", old, new)
    mine = at(project, "pkg/device.py")
    tip, text = go_on(project, pkg__more=MORE)
    assert subjects(project, tip) == [
        "Add to pkg/device.py what is called now",
        "Take the device from the accelerator in use",
        "Make calls of torch.cuda device-agnostic",
        "Make mixed precision device-agnostic",
    ]
    now = at(project, "pkg/device.py")
    assert [line for line in mine.splitlines() if line not in now.splitlines()] == []
    assert "def grad_scaler(" in now and now.count("from typing import Any\n") == 1
    more = at(project, "pkg/more.py")
    assert "GradScaler" not in more and "from .device import DEVICE_TYPE, device_module, grad_scaler\n" in more
    assert "Nothing is known that stops it on an NPU." in text


FLASH = """\
import torch
from typing_extensions import Self
from flash_attn import flash_attn_func
from pkg.model import make


def attend(self: Self, q, k, v):
    return flash_attn_func(q.cuda(), k, v, causal=True)
"""


def test_an_import_above_one_that_is_guarded_is_replayed_above_it(project: Path) -> None:
    """Both go in at one place."""
    commit(project, "Attend", pkg__attend=FLASH)
    port(project, "--adapt", "attention")
    text = at(project, "pkg/attend.py")
    ast.parse(text)
    assert 0 < text.index("import DEVICE_TYPE") < text.index("if DEVICE_TYPE ==") < text.index("import flash_attn_func")


def test_what_people_change_in_an_edited_line_stays(project: Path) -> None:
    port(project)
    edit(project, "train.py", 'map_location=f"{DEVICE_TYPE}:0"', 'map_location="cpu"')
    go_on(project, pkg__more=MORE)
    assert 'map_location="cpu"' in at(project, "train.py")
    assert "device_module.empty_cache()" in at(project, "pkg/more.py")


def test_a_migration_of_the_branch_keeps_the_module(project: Path, tmp_path: Path) -> None:
    port(project)
    edit(project, "pkg/device.py", 'else "cuda"\n', 'else "xpu" if torch.xpu.is_available() else "cuda"\n')
    git(project, "switch", "-q", "npu-port")
    commit(project, "more", pkg__more=MORE)
    asked = ["-i", str(project), "-o", str(tmp_path / "out"), "--style", "portable", "--exit-zero", "--no-html"]
    assert CliRunner().invoke(main, asked).exit_code == 0
    module = (tmp_path / "out" / "project_msft" / "pkg" / "device.py").read_text()
    assert '"xpu" if torch.xpu.is_available()' in module and "def grad_scaler(" in module
    assert CliRunner().invoke(main, [*asked, "--force"]).exit_code == 0
    assert (tmp_path / "out" / "project_msft" / "pkg" / "device.py").read_text() == module


# --- decisions and steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "api", "name"),
    [
        ("NPU156", "", "helper"),
        ("NPU260", "torch.cuda.is_available", "device"),
        ("NPU260", "torch.cuda", "device"),
        ("NPU261", "device string 'cuda'", "device"),
        ("NPU261", "map_location", "checkpoints"),
        ("NPU260", "torch.cuda.manual_seed_all", "runtime"),
        ("NPU260", "torch.cuda.set_device", "runtime"),
        ("NPU260", "torch.cuda.max_memory_allocated", "runtime"),
        ("NPU104", "torch.cuda.OutOfMemoryError", "runtime"),
        ("NPU103", "torch.cuda.amp.autocast", "autocast"),
        ("NPU260", "torch.cuda.amp.custom_fwd", "autocast"),
        ("NPU260", "torch.profiler.profile", "profiler"),
        ("NPU301", "backend 'nccl'", "collectives"),
        ("NPU810", "CUDA_VISIBLE_DEVICES", "environment"),
        ("NPU817", "", "shell"),
        ("NPU841", "torch-npu", "dependencies"),
        ("NPU740", "", "mixed-precision"),
        ("NPU153", "numpy.int", "numpy-names"),
        ("NPU153", "collections.Mapping", "python-names"),
        ("NPU153", "torch.symeig", "moved-names"),
        ("NPU159", "torch.Tensor.view", "newer-versions"),
        ("NPU313", "--local_rank", "launch-flags"),
    ],
)
def test_the_theme_of_an_edit(code: str, api: str, name: str) -> None:
    assert decision_of(code, api, "portable").name == name


def test_all_themes_say_why() -> None:
    every = decisions("portable")
    assert all(each.subject and each.why and len(each.subject) <= 72 for each in every)
    assert {each.name for each in decisions()} <= {each.name for each in every}


def replaced(before: str, *edits: tuple[str, str, str, str]) -> list[dict[str, bytes]]:
    """The files of each step, for edits (old, new, code, API)."""
    source = read_source(before.encode())
    found = []
    for old, new, code, api in edits:
        start = before.index(old)
        span = source.span(start, start + len(old))
        how = Replacement(Operation.MODIFY, old, new)
        found.append(Finding("a.py", span, code, Level.SAFE, "", api=api, edit=how, applied=True))
    after = before
    for old, new, _, _ in edits:
        after = after.replace(old, new, 1)
    files = [Changed("a.py", before.encode(), after.encode(), tuple(found))]
    return [dict(step.files) for step in steps_of(files, (), "portable")]


def test_a_call_and_what_it_is_given_are_one_theme() -> None:
    steps = replaced(
        "torch.cuda.reset(device='cuda')\nx = 'cuda:0'\n",
        ("torch.cuda", "device_module", "NPU260", "torch.cuda.reset"),
        ("'cuda'", "DEVICE_TYPE", "NPU261", ""),
        ("'cuda:0'", "str", "NPU261", ""),
    )
    assert {step["a.py"].decode().splitlines()[0] for step in steps} == {
        "torch.cuda.reset(device='cuda')", "device_module.reset(device=DEVICE_TYPE)"
    }  # fmt: skip


def test_an_import_goes_when_nothing_uses_it_any_more() -> None:
    """It has the code of the first theme, and a use of the name waits for a later one."""
    steps = replaced(
        "from torch.cuda import amp\nx = 'cuda'\namp.f()\n",
        ("from torch.cuda import amp\n", "", "NPU260", ""),
        ("'cuda'", "str", "NPU261", ""),
        ("amp.f()", "print()", "NPU260", "torch.cuda.amp.f"),
    )
    assert [step["a.py"].decode() for step in steps] == [
        "from torch.cuda import amp\nx = str\namp.f()\n",
        "x = str\nprint()\n",
    ]


def test_what_needs_a_newer_python_than_the_file_did_is_no_state_of_it() -> None:
    steps = replaced(
        "x = 'cuda'\nprint(f())\n", ("'cuda'", "(x := 1)", "NPU261", ""), ("f()", "1", "NPU260", "torch.cuda.amp")
    )
    assert len(steps) == 1
    steps = replaced(
        "x = 'cuda'\nprint(f())\n", ("'cuda'", "1", "NPU261", ""), ("f()", "1", "NPU260", "torch.cuda.amp")
    )
    assert len(steps) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The name that is called stands behind what goes, or the import alone says whose it is.
        ("import torch\n\nx = torch.device('cuda')\nwith torch.cuda.amp.autocast():\n    pass\n", "with autocast():"),
        (
            "import torch\nfrom torch.cuda.amp import autocast\n\nx = torch.device('cuda')\n"
            "with autocast():\n    pass\n",
            "from pkg.device import DEVICE_TYPE, autocast",
        ),
    ],
)
def test_an_import_goes_with_what_uses_it(project: Path, before: str, after: str) -> None:
    (project / "requirements.txt").write_text("torch>=1.6\n")
    commit(project, "more", amp=before)
    port(project)
    place = subjects(project).index("Make mixed precision device-agnostic")
    back = len(subjects(project)) - 1 - place
    assert after in at(project, "amp.py", f"npu-port~{back}").splitlines()
    assert "amp.autocast" not in at(project, "amp.py", f"npu-port~{back}")
    assert git(project, "show", "--format=", "--name-only", "npu-port").split() == ["requirements-npu.txt"]


_RUNTIME, _DEVICE = "Make calls of torch.cuda device-agnostic", "Take the device from the accelerator in use"
_BACKEND = "Choose the communication backend by accelerator"


@pytest.mark.parametrize(
    ("source", "themes"),
    [
        ("if torch.cuda.is_available():\n    torch.cuda.synchronize()\n", [_RUNTIME]),
        ("n = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0\n", [_RUNTIME]),
        ("has = torch.cuda.is_available()\nif has:\n    torch.cuda.manual_seed_all(1)\n", [_RUNTIME]),
        (
            'b = "gloo" if not torch.cuda.is_available() else "nccl"\ntorch.distributed.init_process_group(b)\n',
            [_BACKEND],
        ),
        # A function takes its card and its backend in one.
        (
            'def f(r, b="nccl"):\n    torch.cuda.set_device(r)\n    torch.distributed.init_process_group(b)\n',
            [_BACKEND],
        ),
        (
            'def f(r):\n    torch.cuda.set_device(r)\n\n\ndef g():\n    torch.distributed.init_process_group("nccl")\n',
            [_RUNTIME, _BACKEND],
        ),
        # What is done is of two themes: the first.
        ("if torch.cuda.is_available():\n    torch.cuda.synchronize()\n    x = torch.ones(1).cuda()\n", [_DEVICE]),
        # No question, or another's, or of a variable of another function.
        (
            "def f(at):\n    at = at or torch.cuda.is_available()\n    return at\n\n\n"
            "def g(at):\n    if at:\n        torch.cuda.synchronize()\n",
            [_DEVICE, _RUNTIME],
        ),
        (
            "if torch.cuda.is_available():\n    x = torch.ones(1).cuda()\ntorch.cuda.synchronize()\n",
            [_DEVICE, _RUNTIME],
        ),
        ("n = torch.cuda.is_available()\ntorch.cuda.synchronize()\n", [_DEVICE, _RUNTIME]),
        ("if n:\n    torch.cuda.synchronize()\nx = torch.ones(1).cuda()\n", [_DEVICE, _RUNTIME]),
    ],
)
def test_a_guard_and_what_it_guards_are_one_commit(project: Path, source: str, themes: list[str]) -> None:
    commit(project, "begin anew", train=f"import torch\n\n{source}", pkg__model="")
    port(project)
    assert subjects(project)[1:] == themes


def test_names_that_moved_are_a_commit_apart(project: Path) -> None:
    commit(project, "old names", pkg__old="import torch\nimport numpy as np\n\nx = torch.ones(1) * np.Inf\n")
    port(project, "--torch-version", "2.14")
    assert subjects(project)[-1] == "Use names and calls of current NumPy"
    assert git(project, "show", "--format=", "--name-only", "npu-port").split() == ["pkg/old.py"]


def test_an_import_that_new_names_need_goes_with_them(project: Path) -> None:
    source = "import torch\nimport collections\n\nx = torch.ones(1)\nok = isinstance(x, collections.Iterable)\n"
    commit(project, "old names", pkg__old=source)
    port(project, "--torch-version", "2.14")
    assert subjects(project)[-1] == "Use the names of current Python"
    assert "import collections.abc" in git(project, "show", "--format=", "npu-port")


@pytest.mark.torch
def test_the_last_commit_is_proven_on_the_npu_and_on_cuda(project: Path) -> None:
    script = """\
        import torch

        torch.cuda.manual_seed(0)
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(8, 4).cuda()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
        print(loss.item())
        """
    commit(project, "a script that trains", train=textwrap.dedent(script))
    text, said = port(project, "--prove", "train.py")
    assert said.count("[equal: ") == 1 and said.count("proving: ") == 1
    assert "- `train.py`, on an emulated NPU and on a stand-in for CUDA: equal: 3 steps" in text
    assert git(project, "log", "--format=%B", "main..npu-port").count("transplt prove") == 1


_TRIED = 'import torch\n\n\ndef net():\n    return 1\n\n\nif __name__ == "__main__":\n    torch.cuda.CUDAGraph()\n'


@pytest.mark.parametrize(
    ("name", "more", "imports", "stops"),
    [
        ("net", "", "import net\n", False),
        ("net", "    net().backward()\n", "import net\n", True),
        ("train_net", "", "import train_net\n", True),
    ],
)
def test_what_only_tries_a_module_out_stops_no_training(
    project: Path, tmp_path: Path, name: str, more: str, imports: str, stops: bool
) -> None:
    start = f"{imports}import torch\n\nx = torch.ones(1).cuda()\nx.sum().backward()\n"
    commit(project, "a module with a try", **{"train": start, name: _TRIED + more})
    asked = ["-i", str(project), "-o", str(tmp_path / "out"), "--style", "portable", "--exit-zero", "--no-html"]
    said = CliRunner().invoke(main, asked).stderr
    assert f"{name}.py:9" in said and ("stops at the first step" in said) == stops
    text, said = port(project)
    assert f"`{name}.py:9`" in text and ("**Not ready**" in text) == stops == ("not ready for a pull" in said)


def test_a_branch_without_commits_says_of_nothing_that_it_does_it() -> None:
    text = body([], [], "torch 2.6", None, None, [], [])
    assert "No change: there is nothing in this project to convert." in text
    assert "chosen" not in text and "commit" not in text and "Nothing is known that stops it" in text
