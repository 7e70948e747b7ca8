"""What holds together is made together or not at all: no edit of a group vanishes without its group and a word."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from tests.harness import codes, migrate
from transplt.base.finding import FileResult
from transplt.edits.work import Work
from transplt.edits.writer import Writer

PROGRAM = """
    import os

    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from tqdm import tqdm

    from project import dataset

    os.makedirs("out")
    loader = DataLoader(dataset, batch_size=8, num_workers=2, pin_memory=True, shuffle=True)
    model = nn.DataParallel(nn.Linear(4, 1)).cuda(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        total = 0.0
        for x in tqdm(loader):
            loss = model(x.to("cuda:0")).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(total / len(dataset))
    torch.save(model.module.state_dict(), "m.pt")
"""
LOADER = "loader = DataLoader(dataset, batch_size=8, num_workers=2, pin_memory=True, shuffle=True)"
SHARED = "\nloader = shard(loader)\n"
WRITTEN = ("shard(", "init_process_group", "DistributedDataParallel", "own_draws(", "get_rank")


def distributed(source: str = PROGRAM, *rules: dict[str, Any], version: str = "2.6", **settings: Any) -> FileResult:
    given = tuple((f"rules{n}.json", json.dumps({"rules": rule})) for n, rule in enumerate(rules))
    return migrate(source, entry="train.py", torch_version=version, user_rules=given, **settings)


def line_with(result: FileResult, word: str) -> str:
    return next(line.strip() for line in result.data.decode().splitlines() if word in line)


def taken_back(result: FileResult) -> list[str]:
    """Why everything of a group was taken back; that nothing of it is there any more is looked at, too."""
    found = [each.message for each in result.findings if each.code == "NPU992" and not each.applied]
    assert not found or not any(word in result.data.decode() for word in WRITTEN)
    return found


# --- two edits of one call --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.1", "2.4", "2.6", "2.7"])
def test_the_share_and_the_pinned_memory_of_one_loader(version: str) -> None:
    result = distributed(version=version)
    pinned = "" if version == "2.7" else ', pin_memory_device="npu"'
    assert line_with(result, "DataLoader(dataset") == (
        f"loader = DataLoader(dataset, batch_size=8, num_workers=2, pin_memory=True, shuffle=True{pinned})"
    )
    assert SHARED in result.data.decode()
    assert not taken_back(result)


def test_tunings_of_the_loader_beside_both() -> None:
    source = PROGRAM.replace("total / len(dataset)", "total")
    result = distributed(source, tune=(("data-loader", ""), ("drop-last", "")))
    text = result.data.decode()
    for word in (SHARED, "pin_memory_device=", "persistent_workers", "drop_last=True"):
        assert text.count(word) == 1, word
    assert not taken_back(result)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"func_name": "DataLoader", "arg_idx": 1, "arg_keyword": "batch_size", "arg_new": "4"}, "batch_size=4"),
        ({"func_name": "DataLoader", "arg_idx": 2, "arg_keyword": "shuffle", "arg_new": "mixed"}, "shuffle=mixed"),
        ({"func_name": "DataLoader", "arg_idx": 5, "arg_keyword": "num_workers", "arg_new": "8"}, "num_workers=8"),
    ],
)
def test_other_arguments_of_the_loader_are_the_users(rule: dict[str, Any], expected: str) -> None:
    result = distributed(PROGRAM, {"ArgsModifyRule": [rule]})
    assert expected in line_with(result, "DataLoader(dataset")
    assert SHARED in result.data.decode()
    assert not taken_back(result)


def test_another_name_for_the_loader_is_the_users() -> None:
    rule = {"old_name": "torch.utils.data.DataLoader", "new_name": "mine.Loader"}
    result = distributed(PROGRAM, {"FuncNameModifyRule": [rule]})
    assert line_with(result, "Loader(dataset").startswith("loader = Loader(dataset, batch_size=8, num_workers=2")
    assert not taken_back(result)
    assert SHARED in result.data.decode()


# --- where both cannot be -------------------------------------------------------------------------------------------


def test_a_rule_for_the_wrapper_overrules_the_one_that_goes_in_its_place() -> None:
    rule = {"old_name": "torch.nn.DataParallel", "new_name": "mine.Parallel"}
    (why,) = taken_back(distributed(PROGRAM, {"FuncNameModifyRule": [rule]}))
    assert "in line 12 a rule of yours changes torch.nn.DataParallel to mine.Parallel" in why


def test_a_rule_for_the_wrapper_comes_before_our_own() -> None:
    rule = {"old_name": "torch.nn.DataParallel", "new_name": "mine.Parallel"}
    text = migrate(PROGRAM, user_rules=(("r.json", json.dumps({"rules": {"FuncNameModifyRule": [rule]}})),)).data
    assert b"model = mine.Parallel(nn.Linear(4, 1)).npu(0)" in text and b"OneCardDataParallel" not in text


def test_a_comment_that_switches_the_share_off() -> None:
    (why,) = taken_back(distributed(PROGRAM.replace(LOADER, f"{LOADER}  # transplt: ignore[NPU339]")))
    assert why.endswith("in line 11: it is turned off there)")


def test_a_comment_for_another_edit_of_the_loader_takes_nothing_back() -> None:
    result = distributed(PROGRAM.replace(LOADER, f"{LOADER}  # transplt: ignore[NPU124]"))
    assert not taken_back(result)
    assert "pin_memory_device" not in result.data.decode()


# --- whichever edit it is -------------------------------------------------------------------------------------------


def losing(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Let the edit of that number lose its node to somebody else; what the edits of groups are, in their order."""
    made: list[str] = []
    change = Writer.change

    def counted(writer: Writer, node: ast.expr, code: str, message: str, *args: Any, **more: Any) -> None:
        if len(made) == number:
            writer.work.taken.add(id(node))
            writer.work.shared.discard(id(node))
        made.append(f"{code} {message}")
        change(writer, node, code, message, *args, **more)

    monkeypatch.setattr(Writer, "change", counted)
    return made


SETTINGS: list[dict[str, Any]] = [{}, {"amp": "native"}, {"tune": (("fused-optimizer", ""), ("drop-last", ""))}]


@pytest.mark.parametrize("settings", SETTINGS, ids=["alone", "amp", "tune"])
def test_no_edit_is_lost_without_its_group(settings: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        made = losing(patch, -1)
        assert not taken_back(distributed(**settings))
        every = list(made)
    assert len({each.split()[0] for each in every}) >= 4, every
    for number, each in enumerate(every):
        with pytest.MonkeyPatch.context() as patch:
            losing(patch, number)
            result = distributed(**settings)
        said = [each.message for each in result.findings if each.code == "NPU992"]
        message = each.partition(" ")[2]
        assert any(message in why and "another edit changes the same code" in why for why in said), each


def test_an_edit_that_stands_alone_says_that_it_was_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        import torch

        def attend(scores, mask):
            scores = scores.masked_fill(mask, float("-inf"))
            return torch.softmax(scores.cuda(), -1)
    """
    tune = {"tune": (("finite-masks", ""),)}
    assert b"finfo" in migrate(source, **tune).data
    take = Work.take
    monkeypatch.setattr(Work, "take", lambda work, node: "inf" not in ast.dump(node) and take(work, node))
    result = migrate(source, **tune)
    assert b"finfo" not in result.data and "NPU764" in codes(result, applied=False)
