"""`check --diff` numbers the edits, `check --fix --pick NUMBERS` makes these."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checking.conftest import FIXED, TRAIN, Call, commit_all, git

THREE = """import torch

device = torch.device("cuda")
x = torch.ones(1).cuda()
n = torch.cuda.device_count()
"""
IMPORT = "import torch_npu  # noqa: F401\n"


@pytest.fixture
def three(project: Path) -> Path:
    (project / "train.py").write_text(THREE)
    (project / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    return project


def pick(call: Call, numbers: str, *more: str) -> tuple[int, str]:
    code, _, err = call("check", "--fix", "--style", "npu", "--pick", numbers, *more)
    return code, err


def test_the_patch_names_its_edits_and_git_passes_by_them(three: Path, call: Call) -> None:
    commit_all(three)
    _, patch, _ = call("check", "--diff")
    assert [line for line in patch.splitlines() if line.startswith("#")] == [
        "# 1: run.sh:1:1 NPU810 environment variable CUDA_VISIBLE_DEVICES -> ASCEND_RT_VISIBLE_DEVICES",
        "# 2: train.py:2:1 NPU403 import torch_npu is missing; the edits of this file need it",
        "# 3: train.py:3:24 NPU201 device string 'cuda' -> string 'npu'",
        "# 4: train.py:4:19 NPU210 .cuda() -> .npu()",
        "# 5: train.py:5:11 NPU101 torch.cuda.device_count -> torch.npu.device_count",
    ]
    assert call("check", "--diff")[1] == patch
    (three / "../p.diff").write_text(patch)
    git(three, "apply", "../p.diff")
    assert 'torch.device("npu")' in (three / "train.py").read_text()


def test_only_these_edits_and_what_they_need(three: Path, call: Call) -> None:
    code, err = pick(call, "4")
    assert code == 1 and "also made, because a picked edit needs it: 2\nfixed 2 edits in 1 file\n" in err
    expected = THREE.replace("import torch\n", f"import torch\n{IMPORT}").replace(".cuda()", ".npu()")
    assert (three / "train.py").read_text() == expected
    assert (three / "run.sh").read_text() == "CUDA_VISIBLE_DEVICES=0 python train.py\n"


def test_a_range_and_files_that_are_not_python(three: Path, call: Call) -> None:
    pick(call, "1, 3-4")
    text = (three / "train.py").read_text()
    assert 'device("npu")' in text and "ones(1).npu()" in text and "torch.cuda.device_count" in text
    assert (three / "run.sh").read_text().startswith("ASCEND_RT_VISIBLE_DEVICES=0 ")


def test_what_is_not_picked_is_left_and_counts(three: Path, call: Call) -> None:
    _, out, _ = call("check", "--fix", "--style", "npu", "--pick", "1", "--format", "concise")
    assert [line.split()[1] for line in out.splitlines()] == ["NPU201", "NPU210", "NPU101"]
    assert (three / "train.py").read_text() == THREE


def test_all_of_them_are_what_fix_does(project: Path, call: Call) -> None:
    pick(call, "1-2")
    assert (project / "train.py").read_text() == FIXED


def test_a_line_that_goes_only_with_another_edit(three: Path, call: Call) -> None:
    _, err = pick(call, "2")
    assert "not made, because it needs another edit: 2\n" in err and (three / "train.py").read_text() == THREE


def test_a_renamed_import_is_all_of_a_file(project: Path, call: Call) -> None:
    (project / "train.py").write_text("from torch import cuda\n\ncuda.synchronize()\nx.cuda()\n")
    patch = call("check", "--diff")[1]
    last = [line for line in patch.splitlines() if line.startswith("#")][-1].split(":")[0].strip("# ")
    _, err = pick(call, last)
    assert "also made, because a picked edit needs it: " in err and "cuda" not in (project / "train.py").read_text()


def test_a_file_that_python_reads_only_with_its_edits_is_all_or_nothing(project: Path, call: Call) -> None:
    old = "import torch\n\nx = torch.ones(1).cuda(async=True)\n"
    (project / "old.py").write_text(old)
    pick(call, "4-5")  # those of train.py
    assert (project / "old.py").read_text() == old and (project / "train.py").read_text() == FIXED
    pick(call, "2")
    text = (project / "old.py").read_text()
    assert "cuda" not in text and "async" not in text


def test_an_unused_comment_is_an_edit_as_any_other(project: Path, call: Call) -> None:
    (project / "train.py").write_text(f"n = 1  # transplt: ignore[NPU201]\n{TRAIN}")
    numbers = {line.split()[3]: line[2] for line in call("check", "--diff")[1].splitlines() if line.startswith("# ")}
    pick(call, numbers["NPU201"])
    assert (project / "train.py").read_text().startswith("n = 1  # transplt: ignore[NPU201]\n")
    pick(call, "1")
    assert (project / "train.py").read_text().startswith("n = 1\n")


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ("x", "--pick takes the numbers that `check --diff` prints, such as 1,3-5, not x"),
        ("3", "there is no edit 3; there are edits 1 to 2"),
        ("2-1", "there is no edit 2-1"),
        ("0", "there is no edit 0"),
        ("", "--pick takes the numbers"),
    ],
)
def test_numbers_that_are_none(numbers: str, said: str, project: Path, call: Call) -> None:
    code, err = pick(call, numbers)
    assert code == 2 and said in err and (project / "train.py").read_text() == TRAIN


@pytest.mark.parametrize("more", [("--diff",), ("--fix", "--diff"), ("--fix", "-"), ("--fix", "--watch")])
def test_what_it_does_not_go_with(more: tuple[str, ...], project: Path, call: Call) -> None:
    code, _, err = call("check", "--pick", "1", *more)
    assert code == 2 and "--pick cannot be combined" in err


def test_without_fix_it_says_what_is_missing(project: Path, call: Call) -> None:
    code, _, err = call("check", "--pick", "1")
    assert code == 2 and err.endswith("Error: --pick needs --fix\n")
    assert (project / "train.py").read_text() == TRAIN
