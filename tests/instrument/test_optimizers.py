"""What a probe copy keeps of optimizers: settings, gradients, states and weights, figures that no recorder sees."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
from transplt.precision.instrument import transplt_configuration, transplt_optimizers  # noqa: E402

pytestmark = pytest.mark.torch


def rows_of(
    make: Callable[[Any], Any], steps: int = 1, behind: Callable[[Any], None] = lambda net: None
) -> dict[str, Any]:
    """The rows of the last of some steps of a small network."""
    torch.manual_seed(3)
    net = torch.nn.Linear(3, 2)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    optimizer = make(net)
    found = transplt_optimizers.Optimizers(lambda: True, lambda: names)
    rows: dict[str, Any] = {}
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(4, 3)).square().sum().backward()
        found.before(optimizer)
        optimizer.step()
        found.after(optimizer)
        with torch.no_grad():
            behind(net)
        rows = found.take()
    return rows


def test_a_step_of_adam() -> None:
    (name, row), *more = rows_of(lambda net: torch.optim.Adam(net.parameters(), lr=0.25), 2).items()
    assert (name, more) == ("Optimizer.Adam.0.forward", [])
    assert row["input_kwargs"]["lr"] == {"type": "float", "value": 0.25}
    assert row["input_kwargs"]["betas.1"] == {"type": "float", "value": 0.999}
    assert row["state"]["weight.step"]["Max"] == 1.0 and {*row["gradients"]} == {"weight", "bias"}
    assert row["output"]["weight"]["shape"] == [2, 3] and row["output"]["weight"] != row["parameters"]["weight"]
    assert "left" not in row and any("test_optimizers.py" in frame for frame in row["stack"])


def test_groups_and_settings_that_are_tensors() -> None:
    def make(net: Any) -> Any:
        groups = [{"params": [net.weight]}, {"params": [net.bias], "lr": torch.tensor(0.5)}]
        return torch.optim.SGD(groups, lr=0.25, momentum=0.5)

    settings = rows_of(make)["Optimizer.SGD.0.forward"]["input_kwargs"]
    assert settings["lr"]["value"] == 0.25 and settings["group.1.lr"] == {"type": "float", "value": 0.5}


def test_weights_that_are_changed_behind_the_step() -> None:
    rows = rows_of(lambda net: torch.optim.SGD(net.parameters(), lr=0.1), behind=lambda net: net.bias.fill_(3.0))
    row = rows["Optimizer.SGD.0.forward"]
    assert {*row["left"]} == {"bias"} and row["left"]["bias"]["Max"] == 3.0


def test_what_no_figures_can_be_taken_of() -> None:
    found = transplt_optimizers.Optimizers(lambda: True, dict)
    assert found._figures(torch.zeros(0))["Max"] is None
    assert found._figures(torch.eye(2).to_sparse())["Norm"] == pytest.approx(math.sqrt(2))
    assert found._figures(torch.ones(2, dtype=torch.bfloat16))["Mean"] == 1.0


def test_a_step_that_is_not_wanted() -> None:
    found = transplt_optimizers.Optimizers(lambda: False, dict)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    found.before(optimizer)
    found.after(optimizer)
    assert found.take() == {}


def test_how_a_training_is_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_DETERMINISTIC", "true")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", "/usr/local/Ascend")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    settings = [("SGD", transplt_optimizers.settings(optimizer))]
    found = transplt_configuration.configuration(settings, {"w": torch.ones(2, 2)}, 3)
    transplt_configuration.write(str(tmp_path), found)
    read = json.loads((tmp_path / "configuration" / "rank3.json").read_text())
    assert read["environment"]["HCCL_DETERMINISTIC"] == "true" and "ASCEND_TOOLKIT_HOME" not in read["environment"]
    assert read["optimizers"][0]["settings"]["lr"]["value"] == 0.5
    assert read["weights"]["w"]["shape"] == [2, 2] and len(read["weights"]["w"]["checksum"]) == 8


def test_batches_are_known_by_what_is_in_them() -> None:
    one = {"x": torch.arange(6).view(2, 3), "y": [1, "a"]}
    same = {"y": [1, "a"], "x": torch.arange(6).view(2, 3)}
    other = {"x": torch.arange(6).flip(0).view(2, 3), "y": [1, "a"]}
    assert transplt_configuration.checksum(one) == transplt_configuration.checksum(same)
    assert transplt_configuration.checksum(one) != transplt_configuration.checksum(other)
    assert transplt_configuration.checksum({1: 2, None: 3}) and transplt_configuration.checksum(object())
    large = torch.ones(5000)
    assert transplt_configuration.checksum(large) == transplt_configuration.checksum(large.clone())
