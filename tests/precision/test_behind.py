"""What runs after the last backward pass is judged as all else, and what was not recorded there is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.precision.recorder import tensor, write_rank
from tests.precision.test_causes import LOSS, W, X, Y, Z, call, module, number
from transplt.faces.cli.compare import compare as command
from transplt.precision.compare import compare
from transplt.precision.dumps import open_dump
from transplt.precision.first_line import sentence

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
CLAMPED = {"Tensor.clamp_.0.forward": call([tensor(Y)], [tensor([1.0, -1.0, 0.5])])}
OTHER_RATE = {"Tensor.add_.0.forward": call([tensor(X), tensor(W)], [tensor(Y)], alpha=number(-0.2))}
#: A norm of gradients, and a loss of all cards, that somebody prints.
SHOWN = {"Torch.norm.0.forward": call([tensor(W)], [tensor([0.7])]),
         "Tensor.sqrt.0.forward": call([tensor([0.7])], [tensor([0.83])])}  # fmt: skip
ADDED_UP = {"Tensor.clone.0.forward": call([tensor([5.0])], [tensor([5.1])]),
            "Distributed.all_reduce.0.forward": call([tensor([5.1])], [tensor([10.2])])}  # fmt: skip
MOVED = {"Tensor.detach.0.forward": call([tensor([5.0])], [tensor([5.0])]),
         "Tensor.cpu.0.forward": call([tensor([5.0])], [tensor([5.0])])}  # fmt: skip
NOT_RECORDED = "; the optimizer was not recorded"


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
        (SGD, ADAM, "Tensor.__iadd__.0.forward is missing on the NPU's side"),
        (ADAM, SGD, "Tensor.__iadd__.0.forward is only on the NPU's side"),
        (SGD, {}, "Tensor.add_.0.forward is only on the NPU's side"),
        ({}, ADAM, "Tensor.__iadd__.0.forward is missing on the NPU's side"),
        # A loss scale that one side undoes, and the other does not.
        (SCALED, SGD, "Tensor.add_.0.forward is given what is scaled by 8, and no recorded operator caused this"),
        (SCALED, UNDONE | SGD, "Tensor.mul_.0.forward is missing on the NPU's side"),
        # Gradients of all cards that one side divides.
        (SGD, DIVIDED | SGD, "Tensor.div_.0.forward is missing on the NPU's side"),
        (SGD | CLAMPED, SGD, "Tensor.clamp_.0.forward is only on the NPU's side"),
        (SGD, OTHER_RATE, "alike in its figures, and its argument kwargs.alpha is -0.1 and not -0.2"),
    ],
)
def test_rows_are_judged_as_all_others(tmp_path: Path, npu: Rows, bench: Rows, told: str) -> None:
    code, output = compared(tmp_path, TRAINED | npu, TRAINED | bench)
    first = output.splitlines()[0]
    assert code == 1 and first.startswith("first divergence: ") and told in first
    assert "All operators agree" not in output and "often needs no change" not in output


@pytest.mark.parametrize("rule", ["auto", "ptdbg"])
def test_all_that_is_written_says_the_same(tmp_path: Path, rule: str) -> None:
    out = tmp_path / "out"
    more = ("-o", str(out), "--format", "csv,html,json,xlsx", "--rule", rule)
    code, output = compared(tmp_path, TRAINED | SGD, TRAINED | ADAM, *more)
    first = next(line for line in output.splitlines() if line.startswith("first divergence"))
    document = json.loads((out / "compare.json").read_text())
    assert (code, document["same"], document["sentence"]) == (1, False, first)
    assert document["advice"][2].endswith("Check gradients, loss scale and optimizer.")
    assert document["advice"] == (out / "advisor_summary.txt").read_text().splitlines()
    assert "after the last backward pass the operators differ" in (out / "compare.html").read_text()
    table = (out / "compare.csv").read_text()
    assert table.count("Unmatched") >= 4
    assert compared_again(tmp_path, "--op", "Functional.linear.0") == 1


def compared_again(tmp_path: Path, *more: str) -> int:
    arguments = [str(tmp_path / "npu"), str(tmp_path / "bench"), *more]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    return int(result.return_value)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("rows", [SGD, ADAM, UNDONE | SGD])
def test_optimizers_that_agree(tmp_path: Path, rows: Rows, steps: int) -> None:
    code, output = compared(tmp_path, TRAINED | rows, TRAINED | rows, steps=steps)
    assert code == 0 and output.startswith("no divergence: forward, backward and gradients agree (")
    assert f"; {steps * len(rows)} operator" in output and "after the last backward pass also agree" in output
    assert output.splitlines()[0].endswith("; the settings of the optimizer were not recorded")


@pytest.mark.parametrize("shown", [SHOWN, ADDED_UP])
def test_what_is_shown_and_goes_into_nothing(tmp_path: Path, shown: Rows) -> None:
    code, output = compared(tmp_path, TRAINED | shown | SGD, TRAINED | SGD)
    assert code == 0 and output.startswith("no divergence: ")


def test_what_only_moves_data_has_no_counterpart_everywhere(tmp_path: Path) -> None:
    code, output = compared(tmp_path, TRAINED | MOVED | SGD, TRAINED | SGD)
    assert code == 0 and output.startswith("no divergence: ")


def test_dumps_without_the_optimizer_say_so(tmp_path: Path) -> None:
    """msprobe has none of an optimizer that takes all parameters at once."""
    code, output = compared(tmp_path, TRAINED, TRAINED)
    assert code == 0 and output.splitlines()[0] == (
        "no divergence: forward, backward and gradients agree (4 operators in 1 step and 1 rank, within the tolerance)"
        "; the optimizer was not recorded"
    )


def test_dumps_without_gradients_say_so(tmp_path: Path) -> None:
    code, output = compared(tmp_path, LOSS | SGD, LOSS | SGD)
    told = "; the gradients of parameters and the settings of the optimizer were not recorded"
    assert code == 0 and output.splitlines()[0].endswith(told)


def test_without_a_backward_pass_there_is_nothing_behind_it(tmp_path: Path) -> None:
    rows = {name: row for name, row in LOSS.items() if name.endswith("forward")}
    code, output = compared(tmp_path, rows, rows)
    assert code == 0
    assert output.splitlines()[0] == "no divergence: 2 operators in 1 step and 1 rank agree within the tolerance"


def test_what_diverges_first_is_told(tmp_path: Path) -> None:
    wrong = {"Tensor.add_.0.forward": call([tensor(X), tensor(W)], [tensor(Z)], alpha=number(-0.1))}
    code, output = compared(tmp_path, TRAINED | wrong, TRAINED | SGD)
    assert code == 1 and output.startswith("first divergence: the optimizer's step: Tensor.add_.0.forward is ")


# --- what torch's own optimizers have on one side alone ---------------------------------------------------------------

IN_TORCH = ["File /lib/site-packages/torch/optim/adam.py, line 3, in step, \n x",
            "File train.py, line 9, in <module>, \n"]  # fmt: skip
BY_LOOP = dict.fromkeys(ADAM, IN_TORCH)


def stepped(folder: Path, weights: list[list[float]], rows: Rows, stacks: Any = None) -> None:
    """Steps that begin with these weights."""
    for at, weight in enumerate(weights):
        net = {"Module.net.Linear.forward.0": module([tensor(X)], [tensor(Y)], weight)}
        write_rank(folder / f"step{at}" / "rank0", net | TRAINED | rows, stacks)


def first_line(tmp_path: Path) -> str:
    return sentence(compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench"))))


MOVED_WEIGHTS = [[1.0, 2.0], [0.9, 2.1], [0.8, 2.2]]


def test_operators_of_torch_that_one_side_has_are_settled_by_the_next_weights(tmp_path: Path) -> None:
    stepped(tmp_path / "npu", MOVED_WEIGHTS, ADAM, BY_LOOP)
    stepped(tmp_path / "bench", MOVED_WEIGHTS, {})
    assert "no divergence" in (said := first_line(tmp_path))
    assert "operators that only one side's optimizers have gave the same weights" in said


def test_in_a_single_step_nothing_settles_them(tmp_path: Path) -> None:
    stepped(tmp_path / "npu", MOVED_WEIGHTS[:1], ADAM, BY_LOOP)
    stepped(tmp_path / "bench", MOVED_WEIGHTS[:1], {})
    assert first_line(tmp_path).startswith("first divergence: after the last backward pass the operators differ")


def test_other_weights_in_the_next_step_do_not_settle_them(tmp_path: Path) -> None:
    stepped(tmp_path / "npu", MOVED_WEIGHTS, ADAM, BY_LOOP)
    stepped(tmp_path / "bench", [[1.0, 2.0], [0.95, 2.05], [0.9, 2.1]], {})
    assert first_line(tmp_path).startswith("first divergence: step 0: after the last backward pass the operators")


def test_the_program_s_own_are_settled_by_nothing(tmp_path: Path) -> None:
    """Adam takes the same step with gradients that are not scaled back."""
    stepped(tmp_path / "npu", MOVED_WEIGHTS, {})
    stepped(tmp_path / "bench", MOVED_WEIGHTS, DIVIDED, {"Tensor.div_.0.forward": ["File train.py, line 8, in f, \n"]})
    assert "Tensor.div_.0.forward is missing on the NPU's side, called at train.py:8" in first_line(tmp_path)


def test_weights_that_are_moved_half_as_far(tmp_path: Path) -> None:
    """Both are the same within the tolerance, and how far they were moved is not."""
    stepped(tmp_path / "npu", [[1.0, 2.0, 0.5], [1.00004, 2.00004, 0.50004]], {})
    stepped(tmp_path / "bench", [[1.0, 2.0, 0.5], [1.00008, 2.00008, 0.50008]], {})
    assert "the optimizer's step: net.weight was moved 0.5 times as far as on the bench" in first_line(tmp_path)


# --- steps of optimizers that both sides recorded ---------------------------------------------------------------------


def optimizer(name: str = "Adam", lr: float = 0.1, made: float = 0.1, **more: Any) -> Any:
    """What a probe copy has of a step: of one parameter."""
    settings = {"lr": number(lr), "betas.0": number(0.9), "foreach": {"type": "NoneType", "value": None}}
    row = {
        "input_kwargs": settings, "made": {"lr": number(made)}, "gradients": {"net.weight": tensor(W)},
        "state": {"net.weight.exp_avg": tensor(W)}, "parameters": {"net.weight": tensor(X)},
        "output": {"net.weight": tensor([each + 0.1 for each in X])},
        "stack": ["File train.py, line 12, in <module>, \n optimizer.step()"],
        "made_stack": ["File train.py, line 3, in <module>, \n optimizer = torch.optim.Adam(p, lr=0.1)"],
    }  # fmt: skip
    return {f"Optimizer.{name}.0.forward": row | more}


def told_of(tmp_path: Path, npu: Any, bench: Any, rows: tuple[Rows, Rows] = ({}, {})) -> str:
    for side, steps, extra in (("npu", npu, rows[0]), ("bench", bench, rows[1])):
        folder = tmp_path / side / "step0" / "rank0"
        stacks = {name: ["File train.py, line 7, in <module>, \n"] for name in extra}
        write_rank(folder, TRAINED | extra, stacks)
        (folder / "optimizer.json").write_text(json.dumps({"data": steps}))
    return first_line(tmp_path)


SCALED_UP = {"gradients": {"net.weight": tensor([8 * each for each in W])}}


@pytest.mark.parametrize(
    ("npu", "bench", "told"),
    [
        (optimizer(lr=0.05), optimizer(), "taken with other settings: lr is 0.05 and not 0.1, called at train.py:12"),
        (optimizer(lr=0.05, made=0.05), optimizer(), "lr is 0.05 and not 0.1, called at train.py:3"),
        (optimizer("SGD"), optimizer(), "Optimizer.SGD.0 is one of SGD and not of Adam, called at train.py:3"),
        (optimizer(**SCALED_UP), optimizer(), "is given gradients that are scaled by 8 (net.weight)"),
        (optimizer(gradients={}), optimizer(), "is given no gradient of net.weight, and the bench's is"),
        (optimizer(state={"net.weight.exp_avg": tensor(Z)}), optimizer(), "is taken with a state that is"),
        (optimizer(output={"net.weight": tensor([each + 0.05 for each in X])}), optimizer(),
         "is given the same and has net.weight moved 0.5 times as far as on the bench"),
        (optimizer(left={"net.weight": tensor(Z)}), optimizer(),
         "followed by a change of net.weight on the NPU's side alone"),
        ({}, optimizer() | {"Optimizer.SGD.1.forward": optimizer()["Optimizer.Adam.0.forward"]},
         "no divergence: forward, backward and gradients agree"),
        (optimizer(), optimizer() | {"Optimizer.SGD.1.forward": optimizer()["Optimizer.Adam.0.forward"]},
         "Optimizer.SGD.1 is missing on the NPU's side"),
    ],
)  # fmt: skip
def test_steps_of_optimizers(tmp_path: Path, npu: Any, bench: Any, told: str) -> None:
    assert told in told_of(tmp_path, npu, bench)


@pytest.mark.parametrize(
    ("npu", "rows"),
    [
        (optimizer(), ({}, {})),
        # As many others as it takes: both took and left the same.
        (optimizer(), (DIVIDED, UNDONE)),
        (optimizer() | {}, (SHOWN, {})),
    ],
)
def test_steps_of_optimizers_that_agree(tmp_path: Path, npu: Any, rows: tuple[Rows, Rows]) -> None:
    said = told_of(tmp_path, npu, optimizer(), rows)
    assert said.startswith("no divergence: forward, backward, gradients and the optimizer's steps agree (")


def test_gradients_that_one_side_cuts_are_named_where_it_does(tmp_path: Path) -> None:
    """Of `_foreach_mul_` msprobe has no row."""
    frames = ["File /lib/site-packages/torch/nn/utils/clip_grad.py, line 3, in f, \n x",
              "File train.py, line 7, in f, \n"]  # fmt: skip
    for side, steps in (("npu", optimizer(**SCALED_UP)), ("bench", optimizer())):
        folder = tmp_path / side / "step0" / "rank0"
        rows = {"Torch._foreach_norm.0.forward": SHOWN["Torch.norm.0.forward"]} if side == "bench" else {}
        write_rank(folder, TRAINED | rows, dict.fromkeys(rows, frames))
        (folder / "optimizer.json").write_text(json.dumps({"data": steps}))
    assert "Torch._foreach_norm.0.forward is missing on the NPU's side, called at train.py:7" in first_line(tmp_path)


def test_parameters_without_names_are_the_same_in_their_order(tmp_path: Path) -> None:
    """A probe that did not see the network has numbers for names."""
    text = json.dumps(optimizer()).replace("net.weight", "group.0.0")
    said = told_of(tmp_path, optimizer(), json.loads(text))
    assert said.startswith("no divergence: forward, backward, gradients and the optimizer's steps agree (")
    (tmp_path / "more").mkdir()
    said = told_of(tmp_path / "more", optimizer(**SCALED_UP), json.loads(text))
    assert "is given gradients that are scaled by 8 (net.weight)" in said


def test_what_changes_gradients_before_an_optimizer_is_named(tmp_path: Path) -> None:
    said = told_of(tmp_path, optimizer(**SCALED_UP), optimizer(), ({}, UNDONE))
    assert "Tensor.mul_.0.forward is missing on the NPU's side, called at train.py:7" in said


def test_the_gradient_of_a_bias_in_front_of_a_norm_is_noise(tmp_path: Path) -> None:
    """It is a sum of what cancels; so is what Adam makes of it, and from the next step on nothing is compared."""
    for side, noise in (("npu", 3e-10), ("bench", -2e-10)):
        rows = TRAINED | {"Module.net.Linear.parameters_grad.0": {"weight": [tensor(W)], "bias": [tensor([noise])]}}
        for number_of, bias in ((0, 0.0), (1, 0.1 if noise > 0 else -0.1)):
            net = module([tensor(X)], [tensor(Y)], [1.0, 2.0])
            net["parameters"]["bias"] = tensor([bias])
            write_rank(tmp_path / side / f"step{number_of}" / "rank0", {"Module.net.Linear.forward.0": net} | rows)
    assert "from step 1 on net.bias differs, and its gradient is only rounding" in first_line(tmp_path)
    assert "no divergence" in first_line(tmp_path)
