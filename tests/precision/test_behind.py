"""What runs behind the last backward pass: what no verdict looks at there is said, and is no success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.precision.recorder import tensor, write_rank
from tests.precision.test_causes import LOSS, W, X, Y, Z, call, number
from transplt.faces.cli.compare import compare as command

Rows = dict[str, Any]
GRADIENTS = {"Module.net.Linear.parameters_grad.0": {"weight": [tensor(W)]}}
TRAINED = LOSS | GRADIENTS
#: What msprobe has of an optimizer that goes from one parameter to the next.
SGD = {"Tensor.add_.0.forward": call([tensor(X), tensor(W)], [tensor(Y)], alpha=number(-0.1))}
ADAM = {
    "Tensor.__iadd__.0.forward": call([tensor([0.0]), number(1)], [tensor([1.0])]),
    "Tensor.lerp_.0.forward": call([tensor([0.0] * 3), tensor(W), number(0.1)], [tensor(Z)]),
    "Tensor.sqrt.0.forward": call([tensor(X)], [tensor(X)]),
    "Tensor.add_.0.forward": call([tensor(Z), number(1e-8)], [tensor(Z)]),
    "Tensor.addcdiv_.0.forward": call([tensor(X), tensor(Z), tensor(X)], [tensor(Y)]),
}
SCALED = {"Tensor.add_.0.forward": call([tensor(X), tensor([8 * each for each in W])], [tensor(Z)], alpha=number(-0.1))}
UNDONE = {"Tensor.mul_.0.forward": call([tensor([8 * each for each in W]), number(0.125)], [tensor(W)])}
DIVIDED = {"Tensor.div_.0.forward": call([tensor([2 * each for each in W]), number(2)], [tensor(W)])}
MOVED = {"Tensor.detach.0.forward": call([tensor([5.0])], [tensor([5.0])]),
         "Tensor.cpu.0.forward": call([tensor([5.0])], [tensor([5.0])])}  # fmt: skip
NOT_RECORDED = "not recorded and not compared: what the optimizers do, and their arguments"


def compared(tmp_path: Path, npu: Rows, bench: Rows, *more: str, steps: int = 1) -> tuple[int, str]:
    for side, rows in (("npu", npu), ("bench", bench)):
        for step in range(steps):
            write_rank(tmp_path / side / f"step{step}" / "rank0", rows)
    arguments = [str(tmp_path / "npu"), str(tmp_path / "bench"), *more]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output


@pytest.mark.parametrize(
    ("npu", "bench", "told"),
    [
        (SGD, ADAM, "4 operators on one side only and 1 operator with inputs that differ and no recorded cause"),
        (ADAM, SGD, "4 operators on one side only and 1 operator with inputs that differ and no recorded cause"),
        (SGD, {}, "1 operator on one side only"),
        ({}, ADAM, "5 operators on one side only"),
        # A loss scale that one side undoes, and the other does not.
        (SCALED, SGD, "1 operator with inputs that differ and no recorded cause"),
        (SCALED, UNDONE | SGD, "1 operator on one side only and 1 operator with inputs that differ"),
        # Gradients of all cards that one side divides.
        (SGD, DIVIDED | SGD, "1 operator on one side only"),
    ],
)
def test_what_is_not_judged_is_no_success(tmp_path: Path, npu: Rows, bench: Rows, told: str) -> None:
    code, output = compared(tmp_path, TRAINED | npu, TRAINED | bench)
    assert code == 1
    assert output.startswith("no divergence in forward and backward: 4 operators in 1 step and 1 rank agree within")
    assert f"; behind the last backward pass {told}" in output
    assert output.splitlines()[0].endswith("what the optimizers do was not compared")
    assert "All operators agree" not in output


@pytest.mark.parametrize("rule", ["auto", "ptdbg"])
def test_all_that_is_written_says_the_same(tmp_path: Path, rule: str) -> None:
    out = tmp_path / "out"
    more = ("-o", str(out), "--format", "csv,html,json,xlsx", "--rule", rule)
    code, output = compared(tmp_path, TRAINED | SGD, TRAINED | ADAM, *more)
    first = next(line for line in output.splitlines() if line.startswith("no divergence"))
    document = json.loads((out / "compare.json").read_text())
    assert (code, document["same"], document["sentence"]) == (1, False, first)
    assert document["behind"]["left"].startswith("4 operators on one side only and 1 operator with inputs")
    assert document["advice"][0] == "Detection Type: Input inconsistent"
    assert document["advice"][2].endswith("behind the last backward pass. Look at gradients, loss scale and optimizer.")
    assert document["advice"] == (out / "advisor_summary.txt").read_text().splitlines()
    page = (out / "compare.html").read_text()
    assert "no divergence in forward and backward" in page and "Behind the last backward pass" in page
    table = (out / "compare.csv").read_text()
    assert table.count("Unmatched") >= 4
    assert rule == "ptdbg" or ",No," in table
    assert compared_again(tmp_path, "--op", "Functional.linear.0") == 1


def compared_again(tmp_path: Path, *more: str) -> int:
    arguments = [str(tmp_path / "npu"), str(tmp_path / "bench"), *more]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    return int(result.return_value)


def test_advice_on_rows_of_one_side(tmp_path: Path) -> None:
    _, output = compared(tmp_path, TRAINED | SGD, TRAINED)
    assert "All operators up to the last backward pass agree. Behind it: 1 operator on one side only." in output


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("rows", [SGD, ADAM, UNDONE | SGD])
def test_optimizers_that_agree(tmp_path: Path, rows: Rows, steps: int) -> None:
    code, output = compared(tmp_path, TRAINED | rows, TRAINED | rows, steps=steps)
    assert code == 0 and output.startswith("no divergence: ")
    assert f"; so do {steps * len(rows)} operator" in output
    assert "; what else the optimizers do, and with which settings, was not recorded" in output


def test_what_only_moves_data_has_no_counterpart_everywhere(tmp_path: Path) -> None:
    code, output = compared(tmp_path, TRAINED | MOVED | SGD, TRAINED | SGD)
    assert code == 0 and output.startswith("no divergence: ")


def test_dumps_without_the_optimizer_say_so(tmp_path: Path) -> None:
    """`transplt run --dump` has none, and msprobe has none of an optimizer that takes all parameters at once."""
    code, output = compared(tmp_path, TRAINED, TRAINED)
    assert code == 0 and output.startswith("no divergence in forward and backward: ")
    assert output.splitlines()[0].endswith(NOT_RECORDED)


def test_dumps_without_gradients_say_so(tmp_path: Path) -> None:
    code, output = compared(tmp_path, LOSS | SGD, LOSS | SGD)
    assert code == 0 and output.splitlines()[0].endswith("not recorded and not compared: the gradients of parameters")


def test_without_a_backward_pass_there_is_nothing_behind_it(tmp_path: Path) -> None:
    rows = {name: row for name, row in LOSS.items() if name.endswith("forward")}
    code, output = compared(tmp_path, rows, rows)
    assert code == 0
    assert output.splitlines()[0] == "no divergence: 2 operators in 1 step and 1 rank agree within the tolerance"


def test_other_arguments_of_operators_that_agree(tmp_path: Path) -> None:
    other = {"Tensor.add_.0.forward": call([tensor(X), tensor(W)], [tensor(Y)], alpha=number(-0.2))}
    code, output = compared(tmp_path, TRAINED | SGD, TRAINED | other)
    assert code == 0 and "; 1 operator behind the last backward pass with other arguments" in output


def test_what_diverges_comes_first(tmp_path: Path) -> None:
    """A verdict is told alone, whatever is left behind the last backward pass."""
    wrong = {"Tensor.add_.0.forward": call([tensor(X), tensor(W)], [tensor(Z)], alpha=number(-0.1))}
    code, output = compared(tmp_path, TRAINED | wrong, TRAINED | UNDONE | SGD)
    assert code == 1 and output.startswith("first divergence: the optimizer's step: Tensor.add_.0.forward")
