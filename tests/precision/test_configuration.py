"""How two trainings are set up: what differs before they train, and what only says on which device they do."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.faces.cli.compare import compare
from transplt.precision.record import UnusableDump

ADAM = {"lr": {"type": "float", "value": 0.001}, "foreach": {"type": "NoneType", "value": None}}
SET_UP: dict[str, Any] = {
    "format": 1, "rank": 0,
    "versions": {"python": "3.11.2", "torch": "2.6.0+cu124", "cuda": "12.4", "transformers": "4.50.0"},
    "environment": {"CUDA_VISIBLE_DEVICES": "0", "PYTHONHASHSEED": "1234"},
    "arguments": ["--data", "/data/a"],
    "settings": {"processes": 1, "seed": 7, "threads": 8, "deterministic algorithms": False},
    "optimizers": [{"class": "Adam", "settings": ADAM}],
    "loaders": [{"dataset": "Words", "samples": 100, "batch size": 8, "drop last": False, "sampler": "RandomSampler"}],
    "weights": {
        "net.weight": {"dtype": "torch.float32", "shape": [2], "checksum": "0a", "max": 1.0, "min": 0.5, "norm": 1.1},
        "net.bias": {"dtype": "torch.float32", "shape": [1], "checksum": "0b", "max": 1.0, "min": 1.0, "norm": 1.0},
    },
    "batches": ["aa", "bb"],
}  # fmt: skip


def changed(*path: Any, to: Any) -> dict[str, Any]:
    found = deepcopy(SET_UP)
    inner: Any = found
    for each in path[:-1]:
        inner = inner[each]
    inner[path[-1]] = to
    return found


def told(tmp_path: Path, ours: dict[str, Any], theirs: dict[str, Any] | None = None) -> tuple[int, str]:
    for side, found in (("a", ours), ("b", SET_UP if theirs is None else theirs)):
        (tmp_path / side / "configuration").mkdir(parents=True)
        (tmp_path / side / "configuration" / "rank0.json").write_text(json.dumps(found))
    arguments = ["--config", str(tmp_path / "a"), str(tmp_path / "b")]
    result = CliRunner().invoke(compare, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        (changed("versions", "transformers", to="4.51.0"), "versions    transformers: 4.51.0  |  4.50.0"),
        (changed("environment", "PYTHONHASHSEED", to="1"), "environment PYTHONHASHSEED: 1  |  1234"),
        (changed("settings", "seed", to=8), "settings    seed: 8  |  7"),
        (changed("settings", "processes", to=2), "settings    processes: 2  |  1"),
        (changed("optimizers", 0, "settings", "lr", to={"type": "float", "value": 0.002}),
         "optimizers  optimizer 0 (Adam): lr: 0.002  |  0.001"),
        (changed("optimizers", 0, "class", to="SGD"), "optimizer 0 (SGD): SGD  |  Adam"),
        (changed("optimizers", to=[]), "optimizers  number: 0  |  1"),
        (changed("loaders", 0, "batch size", to=4), "loader 0 (Words): batch size: 4  |  8"),
        (changed("batches", 1, to="cc"), "data        batch 1: checksum cc  |  checksum bb"),
        (changed("weights", "net.bias", to=SET_UP["weights"]["net.bias"] | {"checksum": "0c", "max": 2.0}),
         "weights     net.bias: float32 [1] max 2, min 1, norm 1"),
        (changed("weights", "net.more", to=SET_UP["weights"]["net.bias"]), "weights     net.more: there  |  none"),
    ],
)  # fmt: skip
def test_what_differs_before_training(ours: dict[str, Any], says: str, tmp_path: Path) -> None:
    code, output = told(tmp_path, ours)
    assert code == 1 and says in output
    assert output.startswith("transplt compare --config: 1 difference before training\n")


@pytest.mark.parametrize(
    "ours",
    [
        SET_UP,
        changed("versions", to={"python": "3.11.2", "torch": "2.6.0", "torch_npu": "2.6.0", "transformers": "4.50.0"}),
        changed("environment", to={"ASCEND_RT_VISIBLE_DEVICES": "0", "PYTHONHASHSEED": "1234"}),
        changed("arguments", to=["--data", "/home/b"]),
        changed("settings", "threads", to=4),
        changed("optimizers", 0, "settings", "foreach", to={"type": "bool", "value": True}),
        changed("batches", to=[]),
    ],
)
def test_what_says_on_which_device(ours: dict[str, Any], tmp_path: Path) -> None:
    code, output = told(tmp_path, ours)
    assert code == 0 and output.startswith("transplt compare --config: the same setup\n")


def test_a_folder_without_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UnusableDump, match=r"has no configuration/rank0\.json"):
        arguments = ["--config", str(tmp_path / "a"), str(tmp_path / "a")]
        CliRunner().invoke(compare, arguments, standalone_mode=False, catch_exceptions=False)


@pytest.mark.parametrize("text", ["[]", '{"weights": 3}', '{"weights": {"a": 3}}'])
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(json.dumps(changed("weights", to={"a": {"shape": []}})))
    with pytest.raises(UnusableDump):
        arguments = ["--config", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
        CliRunner().invoke(compare, arguments, standalone_mode=False, catch_exceptions=False)
