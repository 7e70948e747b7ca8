"""Work orders: what is written for each, and when one is done; a port that talks round it is told."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent
ORIGINAL = """\
import torch


def put(batch):
    scale = batch.max()
    return batch.cuda() / scale


def save(model):
    torch.cuda.synchronize()
    torch.save(model, "last.pt")


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        loss = model(put(batch)).mean()
        loss.backward()
        optimizer.step()
    save(model)
"""
HALF = ORIGINAL.replace("import torch\n", "import torch\nimport torch_npu\n", 1)
DONE = HALF.replace("batch.cuda()", "batch.npu()")
PUT = "NPU210:train.py:put"


def judge(folder: Path, port: str, *options: str) -> tuple[int, str]:
    for side, text in (("original", ORIGINAL), ("port", port)):
        (folder / side).mkdir(exist_ok=True)
        (folder / side / "train.py").write_text(text, encoding="utf-8")
    words = ["judge", "-q", str(folder / "original"), str(folder / "port"), *options]
    done = CliRunner().invoke(main, words, standalone_mode=False)
    if done.exception is not None:
        return getattr(done.exception, "exit_code", 3), str(done.exception)
    return done.return_value, done.output


def test_each_action_is_a_file_for_people_and_programs(tmp_path: Path) -> None:
    code, text = judge(tmp_path, HALF, "--work-orders", str(tmp_path / "orders"))
    assert code == 1 and "by code and function: 2 work orders" in text and f"    {PUT}\n" in text
    names = sorted(each.name for each in (tmp_path / "orders").iterdir())
    assert names == ["NPU101-train.py-save.md", "NPU210-train.py-put.md"]
    page = (tmp_path / "orders" / names[1]).read_text(encoding="utf-8")
    assert page.startswith(f"# {PUT}\n")
    for title in ("Place", "The code around it", "The original", "Why", "What is accepted", "What is not"):
        assert f"\n## {title}\n\n" in page
    assert ">    7     return batch.cuda() / scale" in page
    block = json.loads(page.split("```json\n")[1].split("\n```")[0])
    assert (block["action"], block["function"], block["findings"][0]["line"]) == (PUT, "put", 7)
    assert block["check"][-2:] == ["--action", PUT]


def test_an_action_is_done_whatever_else_is_left(tmp_path: Path) -> None:
    assert judge(tmp_path, HALF, "--action", PUT)[1].startswith(f"transplt judge: not done: {PUT}: still there\n")
    code, text = judge(tmp_path, DONE, "--action", PUT)
    assert (code, text.splitlines()[0]) == (0, f"transplt judge: done: {PUT}: nothing of it is left")
    assert judge(tmp_path, DONE, "--action", "NPU101:train.py:save")[0] == 1


RIGHT = {
    "with lines above": DONE.replace("def put", "import os\n\n\ndef put"),
    "with a helper": DONE.replace("batch.npu()", 'batch.to(torch.device("npu"))'),
    "in other words": DONE.replace("    scale = batch.max()\n", "").replace("/ scale", "/ batch.max()"),
    "where it is called": HALF.replace(
        "def put(batch):\n    scale = batch.max()\n    return batch.cuda() / scale\n\n\n", "",
    ).replace("put(batch)", "batch.npu() / batch.max()"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_work_is_done(name: str, tmp_path: Path) -> None:
    assert judge(tmp_path, RIGHT[name], "--action", PUT)[0] == 0


ROUND = {
    "a comment": ("still there", HALF.replace("/ scale", "/ scale  # transplt: ignore")),
    "on the CPU": ("it misleads the check", DONE.replace("batch.npu()", "batch.cpu()")),
    "errors that pass": (
        "it misleads the check", DONE.replace(
            "    return batch.npu() / scale",
            "    try:\n        return batch.npu() / scale\n    except Exception:\n        return batch / scale",
        ),
    ),
    "nothing is done": (
        "put no longer does anything",
        DONE.replace("    scale = batch.max()\n    return batch.npu() / scale", "    pass"),
    ),
    "taken out": (
        "put is gone, and nothing replaces it", DONE.replace(
            "def put(batch):\n    scale = batch.max()\n    return batch.npu() / scale\n\n\n", "",
        ).replace("        loss = model(put(batch)).mean()\n", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUND)
def test_an_action_cannot_be_talked_round(name: str, tmp_path: Path) -> None:
    reason, port = ROUND[name]
    code, text = judge(tmp_path, port, "--action", PUT)
    assert code == 1 and reason in text.splitlines()[0]


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    judge(tmp_path, DONE)
    (tmp_path / "port" / "train.py").rename(tmp_path / "port" / "train.txt")
    words = ["judge", "-q", str(tmp_path / "original"), str(tmp_path / "port"), "--action", PUT]
    done = CliRunner().invoke(main, words, standalone_mode=False)
    assert done.return_value == 1 and "train.py is gone" in done.output


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--action", "NPU210:nowhere.py:put"), "names no file"),
        (("--action", "NPU210:train.py:other"), "names no function"),
        (("--action", "ABC:train.py"), "is not a code"),
        (("--action", PUT, "--prove", "train.py"), "cannot be combined"),
        (("--work-orders", "."), "is not empty"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], why: str, tmp_path: Path) -> None:
    code, text = judge(tmp_path, HALF, *options)
    assert code == 2 and why in text


@pytest.mark.parametrize("options", [(), ("--action", PUT)])
def test_the_json_has_its_schema_and_the_badge_its_own_format(options: tuple[str, ...], tmp_path: Path) -> None:
    schema = json.loads((ROOT / "docs" / "judge.schema.json").read_text(encoding="utf-8"))
    table = json.loads(judge(tmp_path, HALF, *options, "--format", "json")[1])
    jsonschema.Draft202012Validator(schema).validate(table)
    assert [each["id"] for each in table["actions"]] == ["NPU210:train.py:put", "NPU101:train.py:save"]
    assert json.loads(judge(tmp_path, HALF, *options, "--format", "badge")[1]) == table["badge"]
    assert table["badge"]["message"] == ("not done" if options else "refused")
