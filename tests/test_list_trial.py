"""A second opinion on the list of actions (benchmarks/list_trial.py): a stop that is right, one that is none, and one
that nothing names."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.list_trial import Said, listed_still, migrated, page, trial
from transplt.proof.launch.warm import Warm

TRAINING = """\
import sys
import torch

model = torch.nn.Conv2d(1, 2, 3).cuda()
images = torch.ones(2, 1, 5, 5).cuda()
if len(sys.argv) > 1:
    images = images.flip(2)
{layout}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(images).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CHANNELS_LAST = "images = images.to(memory_format=torch.channels_last)"


def try_it(
    place: Path, warm: Warm, layout: str, *, kept: bool = True, more: dict[str, str] | None = None
) -> dict[str, str]:
    """The verdict on each action of the list, of which those of transplt are `kept`, and on each stop without one.
    `more`: APIs of lines that an action more says to stop, by a part of the line."""
    source = place / "project"
    source.mkdir()
    (source / "train.py").write_text(TRAINING.format(layout=layout), encoding="utf-8")
    if not layout:
        (source / "Dockerfile").write_text("FROM nvcr.io/nvidia/pytorch:22.11-py3\n", encoding="utf-8")
    folder, found = migrated(source, place / "out")
    lines = (folder / "train.py").read_text(encoding="utf-8").splitlines()
    said = found if kept else []
    for part, api in (more or {}).items():
        line = next(number for number, text in enumerate(lines, 1) if part in text)
        said.append(Said(api, "first step", ("NPU520",), {"train.py": [(line, line)]}))
    told = trial(source, folder, "train.py", (), said, warm)
    assert "| train.py | " in page([{"script": "train.py", "listed_still": [], **told}])
    verdicts = {row["title"]: row["verdict"] for row in told["actions"]}
    return {**verdicts, **dict.fromkeys(told["missing"], "missing")}


@pytest.mark.torch
def test_a_stop_is_right_where_its_mend_takes_the_program_further(tmp_path: Path, warm: Warm) -> None:
    told = try_it(tmp_path, warm, CHANNELS_LAST, more={"loss.backward()": "backward"})
    assert told == {
        "Remove the memory format channels_last, which NPUs do not have": "right",
        "backward": "false",  # behind the other, whose mend shows it
    }


@pytest.mark.torch
def test_a_stop_is_false_where_its_lines_run_and_not_where_they_do_not(tmp_path: Path, warm: Warm) -> None:
    told = try_it(tmp_path, warm, "", more={"mean()": "mean", "flip": "flip"})
    image = {"Build container images from an Ascend CANN image": "no run"}
    assert told == {**image, "mean": "false", "flip": "not reached"}


@pytest.mark.torch
@pytest.mark.slow
def test_a_stop_is_missing_where_no_action_has_its_line(tmp_path: Path, warm: Warm) -> None:
    told = try_it(tmp_path, warm, CHANNELS_LAST, kept=False)
    assert [*told.values()] == ["missing"]
    assert "train.py:9: RuntimeError: Only contiguous_format or preserve_format" in "".join(told)


@pytest.mark.torch
@pytest.mark.slow
def test_a_stop_of_the_original_too_is_none_of_the_list(tmp_path: Path, warm: Warm) -> None:
    assert try_it(tmp_path, warm, "open('data.bin')") == {}


@pytest.mark.parametrize(
    ("code", "file", "before", "after"),
    [
        ("NPU723", "a.py", "x.to(memory_format=torch.channels_last)", "x.to(memory_format=torch.contiguous_format)"),
        ("NPU526", "a.py", "y = torch.spmm(a, x)", "y = torch.matmul(a.to_dense(), x)"),
        ("NPU526", "a.py", "y = a @ x", "y = a.to_dense() @ x"),
        ("NPU507", "a.py", "net = nn.DataParallel(net, device_ids=[0])", "net = net"),
        (
            "NPU134",
            "a.py",
            "x = DataLoader(d, 4,\n  shuffle=True,)",
            'x = DataLoader(d, 4,\n  shuffle=True, generator=torch.Generator("npu"))',
        ),
        ("NPU154", "a.py", "net = torch.load(f)", "net = torch.load(f, weights_only=False)"),
        ("NPU293", "a.py", "print(loss.data[0])", "print(loss.item())"),
        ("NPU510", "a.py", "    from warp import Loss", "    pass"),
        ("NPU844", "requirements.txt", "torch", "torch-npu\ntorch"),
        ("NPU845", "environment.yml", "- python=3.6", "- python=3.11"),
        ("NPU844", "a.py", "import torch", "import torch"),
        ("NPU520", "a.py", "x.to(memory_format=torch.channels_last)", "x.to(memory_format=torch.channels_last)"),
    ],
)
def test_a_mend_changes_the_lines_of_its_action_only(
    tmp_path: Path, code: str, file: str, before: str, after: str
) -> None:
    rest = "" if file != "a.py" else "\nx.to(memory_format=torch.channels_last)\n"
    (tmp_path / file).write_text(before + rest, encoding="utf-8")
    changed = Said("", "import", (code,), {file: [(1, 1 + before.count("\n"))]}).mend(tmp_path)
    assert changed == ([] if before == after else [file])
    assert (tmp_path / file).read_text(encoding="utf-8") == after + rest


_RAISE = "Raise pins that do not install with torch_npu's Python versions: "


@pytest.mark.parametrize(
    ("pins", "named", "left"),
    [
        ("numpy==1.15.1", "numpy", []),
        ("numpy==1.15.1\nscikit-learn<=0.21.3", "numpy and scikit-learn", ["scikit-learn"]),
    ],
)
def test_what_a_mend_does_not_settle_is_listed_still(tmp_path: Path, pins: str, named: str, left: list[str]) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text("import torch\nx = torch.ones(2).cuda()\n", encoding="utf-8")
    (tmp_path / "project/requirements.txt").write_text(f"{pins}\ntorch==2.1.0\n", encoding="utf-8")
    folder, said = migrated(tmp_path / "project", tmp_path / "out")
    assert {_RAISE + named} <= {each.title for each in said}
    assert listed_still(folder, said, tmp_path / "listed") == [_RAISE + each for each in left]
