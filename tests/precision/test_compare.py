"""Planted faults are named, equal runs are not accused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.precision.network import KINDS, Fault, record, record_ranks
from tests.precision.recorder import tensor, write_rank
from transplt.faces.cli.compare import compare as command
from transplt.precision.compare import Comparison, compare
from transplt.precision.dumps import open_dump
from transplt.precision.first_line import sentence
from transplt.precision.record import UnusableDump

#: (model, fault, what the verdict names)
FAULTS = [
    ("convolution", Fault("sign", 3), "Functional.conv2d.1.forward"),
    ("convolution", Fault("scale:1.02", 2), "Functional.relu.0.forward"),
    ("convolution", Fault("scale:1.5", 5), "Functional.max_pool2d.0.forward"),
    ("convolution", Fault("bf16", 0), "Functional.conv2d.0.forward"),
    ("convolution", Fault("eps", 1), "Functional.batch_norm.0.forward"),
    ("convolution", Fault("nan", 4), "Functional.relu.1.forward"),
    ("convolution", Fault("reduction"), "Functional.mse_loss.0.forward"),
    ("convolution", Fault("drop", 4), "Functional.relu.1.forward"),
    ("convolution", Fault("extra", 4), "Functional.hardswish.0.forward"),
    ("convolution", Fault("weights", 3), "conv2d1.weight"),
    ("convolution", Fault("batch"), "Functional.conv2d.0.forward input.0"),
    ("convolution", Fault("shape"), "Functional.conv2d.0.forward input.0"),
    ("convolution", Fault("sign", 3, backward=True), "Functional.conv2d.1.backward"),
    ("convolution", Fault("missing", 3, backward=True), "Functional.conv2d.1.backward"),
    ("convolution", Fault("optimizer"), "Tensor.add_.0.forward"),
    ("transformer", Fault("tanh", 5), "Functional.gelu.0.forward"),
    ("transformer", Fault("sign", 2), "Functional.softmax.0.forward"),
    ("transformer", Fault("scale:1.02", 7), "Functional.layer_norm.1.forward"),
    ("transformer", Fault("bf16", 3), "Functional.linear.1.forward"),
    ("transformer", Fault("eps", 4), "Functional.layer_norm.0.forward"),
    ("transformer", Fault("dtype", 3), "Functional.linear.1.forward"),
    ("transformer", Fault("nan", 2), "Functional.softmax.0.forward"),
    ("transformer", Fault("weights", 6), "linear2.weight"),
    ("transformer", Fault("extra", 5), "Functional.hardswish.0.forward"),
    ("transformer", Fault("other", 5), "Functional.hardswish.0.forward"),
    ("transformer", Fault("scale:1.5", 4, backward=True), "Functional.layer_norm.0.backward"),
    ("recurrent", Fault("sign", 5), "Functional.tanh.1.forward"),
    ("recurrent", Fault("scale:1.02", 1), "Functional.tanh.0.forward"),
    ("recurrent", Fault("bf16", 3), "Functional.sigmoid.0.forward"),
    ("recurrent", Fault("drop", 5), "Functional.tanh.1.forward"),
    ("recurrent", Fault("weights", 0), "linear0.weight"),
    ("recurrent", Fault("nan", 6, backward=True), "Functional.linear.3.backward"),
    ("recurrent", Fault("batch"), "Functional.linear.0.forward input.0"),
    ("gan", Fault("sign", 1), "Functional.leaky_relu.0.forward"),
    ("gan", Fault("scale:1.5", 3), "Functional.tanh.0.forward"),
    ("gan", Fault("bf16", 4), "Functional.linear.2.forward"),
    ("gan", Fault("reduction"), "Functional.mse_loss.0.forward"),
    ("gan", Fault("optimizer"), "Tensor.add_.0.forward"),
    ("gan", Fault("scale:1.02", 5, backward=True), "Functional.leaky_relu.1.backward"),
]


def compared(tmp_path: Path) -> Comparison:
    return compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench")))


def named(found: Comparison) -> str | None:
    return found.first.verdict.name if found.first is not None and found.first.verdict is not None else None


@pytest.mark.parametrize(("model", "fault", "expected"), FAULTS, ids=lambda value: getattr(value, "kind", None))
def test_a_planted_fault_is_named(tmp_path: Path, model: str, fault: Fault, expected: str) -> None:
    record(tmp_path / "npu", model, fault)
    record(tmp_path / "bench", model)
    assert named(compared(tmp_path)) == expected


@pytest.mark.parametrize("fault", [Fault("sign", 2), Fault("extra", 2), Fault("nan", 3), Fault("bf16", 0)])
def test_weights_that_differ_come_before_what_ran_earlier(tmp_path: Path, fault: Fault) -> None:
    record(tmp_path / "npu", "convolution", fault)
    record(tmp_path / "bench", "convolution")
    path = tmp_path / "npu" / "step0" / "proc7" / "dump.json"
    document = json.loads(path.read_text())
    document["data"]["Module.linear0.Layer.forward.0"]["parameters"]["weight"] = tensor([3.0] * 16)
    path.write_text(json.dumps(document))
    found = compared(tmp_path)
    assert named(found) == "linear0.weight" and "initial weights differ" in sentence(found)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(Fault("extra", 2), "structure differs"), (Fault("sign", 2), "numeric divergence"), (Fault("nan", 2), "overflow")],
)
def test_what_ran_first_comes_before_a_later_divergence(tmp_path: Path, fault: Fault, kind: str) -> None:
    record(tmp_path / "npu", "convolution", fault)
    record(tmp_path / "bench", "convolution")
    path = tmp_path / "npu" / "step0" / "proc7" / "dump.json"
    document = json.loads(path.read_text())
    document["data"]["Functional.max_pool2d.0.forward"]["output"] = [tensor([float("inf"), 1.0], [2, 8])]
    path.write_text(json.dumps(document))
    verdict = compared(tmp_path).first
    assert verdict is not None and verdict.verdict is not None and verdict.verdict.kind == kind


def passed_on(tmp_path: Path, api: str, side: str, factor: float = 1.0, recorder: str = "") -> str:
    """Linear and relu on both sides; one has `api` between them. The name in the verdict, or nothing."""
    values = [1.0, -2.0, 3.0, 0.5]
    for name in ("npu", "bench"):
        fed = [value * factor for value in values] if name == side else values
        passed = {"input_args": [tensor(values)], "output": [tensor(fed)]}
        data = {
            "Functional.linear.0.forward": {"input_args": [tensor([1.0, 1.0])], "output": [tensor(values)]},
            **({f"{api}.0.forward": passed} if name == side else {}),
            "Functional.relu.0.forward": {"input_args": [tensor(fed)], "output": [tensor([max(0.0, v) for v in fed])]},
        }
        write_rank(tmp_path / name / "step0" / "rank0", data)
        path = tmp_path / name / "step0" / "rank0" / "dump.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "recorder": recorder}))
    found = compared(tmp_path)
    return "" if found.same else named(found)


@pytest.mark.parametrize("side", ["npu", "bench"])
@pytest.mark.parametrize("api", ["Torch.flatten", "Tensor.unsqueeze", "Torch.positive", "Module.flat.Flatten"])
def test_an_operator_that_one_recorder_does_not_know_is_no_divergence(tmp_path: Path, side: str, api: str) -> None:
    assert passed_on(tmp_path, api, side) == ""


@pytest.mark.parametrize("side", ["npu", "bench"])
def test_it_is_one_where_what_takes_its_results_differs(tmp_path: Path, side: str) -> None:
    assert passed_on(tmp_path, "Torch.mul", side, 1.5) == "Torch.mul.0.forward"


@pytest.mark.parametrize("api", ["Torch.positive", "Functional.relu6"])
def test_dumps_of_one_recorder_know_the_same_operators(tmp_path: Path, api: str) -> None:
    assert passed_on(tmp_path, api, "npu", recorder="transplt") == f"{api}.0.forward"


def test_one_bad_rank_is_named(tmp_path: Path) -> None:
    record_ranks(tmp_path / "npu", "convolution", [None, Fault("sign", 3)])
    record_ranks(tmp_path / "bench", "convolution", [None, None])
    found = compared(tmp_path)
    assert (found.first and found.first.rank, named(found)) == (1, "Functional.conv2d.1.forward")
    assert "rank 1 alone: Functional.conv2d.1.forward" in sentence(found)


@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("rank", [None, 0])
def test_equal_runs_are_the_same(tmp_path: Path, model: str, rank: int | None) -> None:
    record(tmp_path / "npu", model, rank=rank)
    record(tmp_path / "bench", model, rank=rank)
    assert compared(tmp_path).same


@pytest.mark.parametrize("change", ["moves", "wrapped", "no modules"])
def test_what_a_port_changes_is_no_divergence(tmp_path: Path, change: str) -> None:
    """Operators that only move data, a model that DDP wraps, a lower level."""
    record(tmp_path / "npu", "convolution")
    record(tmp_path / "bench", "convolution")
    path = tmp_path / "npu" / "step0" / "proc7" / "dump.json"
    document = json.loads(path.read_text())
    data = document["data"]
    if change == "moves":
        data = {"Tensor.to.0.forward": {"output": [tensor([1.0])]}, **data}
    elif change == "wrapped":
        data = {name.replace("Module.", "Module.module."): entry for name, entry in data.items()}
    else:
        data = {name: entry for name, entry in data.items() if not name.startswith("Module.")}
    path.write_text(json.dumps({**document, "data": data}))
    assert compared(tmp_path).same


@pytest.mark.parametrize(
    ("fault", "how"),
    [
        (Fault("sign", 3), "of the other sign"),
        (Fault("scale:1.02", 3), "scaled by 1.02"),
        (Fault("bf16", 3), "rounded to bfloat16"),
        (Fault("nan", 3), "its inputs are finite and its output is nan"),
        (Fault("dtype", 3), "in float16 and not in float32"),
        (Fault("shape"), "of shape [1, 8] and not [2, 8]"),
        (Fault("extra", 3), "only on the NPU's side"),
        (Fault("drop", 4), "missing on the NPU's side"),
        (Fault("other", 4), "where the other side has Functional.relu.1.forward"),
        (Fault("reduction"), "its argument kwargs.reduction is sum and not mean"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_the_first_line_says_how(tmp_path: Path, fault: Fault, how: str) -> None:
    record(tmp_path / "npu", "convolution", fault)
    record(tmp_path / "bench", "convolution")
    assert how in sentence(compared(tmp_path))


def test_a_noisy_gradient_beside_a_large_one_is_rounding(tmp_path: Path) -> None:
    """The bias in front of a norm has a gradient of zero; two devices round it to other values."""
    for side, noise in (("npu", 3.6e-9), ("bench", 9.2e-9)):
        outputs = [tensor([0.009, -0.01]), tensor([noise, -noise])]
        entry = {"input": [tensor([7e-4, -6e-4])], "output": outputs}
        write_rank(tmp_path / side, {"Functional.conv2d.0.backward": entry})
    assert compared(tmp_path).same


@pytest.mark.parametrize(("npu", "bench"), [(2, 1), (1, 2)])
def test_an_unequal_number_of_ranks_cannot_be_compared(tmp_path: Path, npu: int, bench: int) -> None:
    record_ranks(tmp_path / "npu", "gan", [None] * npu)
    record_ranks(tmp_path / "bench", "gan", [None] * bench)
    with pytest.raises(UnusableDump, match="different ranks"):
        compared(tmp_path)


def test_steps_that_one_side_lacks_are_said(tmp_path: Path) -> None:
    record(tmp_path / "npu", "gan")
    record(tmp_path / "bench", "gan")
    (tmp_path / "bench" / "step0").rename(tmp_path / "bench" / "step1")
    with pytest.raises(UnusableDump, match="no step in common"):
        compared(tmp_path)
    record(tmp_path / "bench", "gan")
    found = compared(tmp_path)
    assert not found.same and sentence(found).startswith("steps differ: NPU 0, bench 0-1; of the common steps: no div")


def invoke(tmp_path: Path, *more: str) -> tuple[int, str]:
    arguments = [str(tmp_path / "npu"), str(tmp_path / "bench"), *more]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output


def test_the_command_tells_writes_and_exits(tmp_path: Path) -> None:
    record(tmp_path / "npu", "convolution", Fault("scale:1.02"))
    record(tmp_path / "bench", "convolution")
    for _ in range(2):  # what a comparison wrote is written anew
        code, output = invoke(tmp_path, "-o", str(tmp_path / "out"), "--format", "csv,xlsx,html,json")
    assert code == 1
    assert output.splitlines()[0] == (
        "first divergence: Functional.relu.0.forward: its inputs agree and its output is scaled by 1.02 "
        "(200 times the tolerance), called at model.py:12 (forward)"
    )
    made = {path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")}
    assert made == {"compare.csv", "compare.xlsx", "compare.html", "compare.json", "advisor_summary.txt"}
    with open(tmp_path / "out" / "compare.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    first = next(row for row in rows if row["Accuracy Reached or Not"] == "No")
    assert first["NPU Name"] == first["Bench Name"] == "Functional.relu.0.forward.output.0"
    document = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert (document["same"], document["compared"][0]["verdict"]["name"]) == (False, "Functional.relu.0.forward")
    advice = (tmp_path / "out" / "advisor_summary.txt").read_text().splitlines()
    assert [line.partition(":")[0] for line in advice] == ["Detection Type", "Operator Index", "Expert Advice"]
    assert advice[1] == f"Operator Index: {first['Index']}"


def test_equal_dumps_exit_with_0(tmp_path: Path) -> None:
    record(tmp_path / "npu", "gan")
    record(tmp_path / "bench", "gan")
    code, output = invoke(tmp_path, "--no-advice")
    assert code == 0 and output.startswith("no divergence: ")
    assert invoke(tmp_path, "--op", "Functional.tanh.0")[1].startswith("Functional.tanh.0.forward beside ")


def test_an_overflow_of_float16_at_row_228_gives_the_three_lines_of_the_guide(tmp_path: Path) -> None:
    for side, last in (("npu", 65504.0), ("bench", 60000.0)):
        data = {
            f"Functional.relu.{number}.forward": {"output": [tensor([0.5], dtype="float16")]} for number in range(228)
        }
        data["Functional.linear.0.forward"] = {"output": [tensor([last], dtype="float16")]}
        write_rank(tmp_path / side, data)
    assert invoke(tmp_path, "-o", str(tmp_path / "out"))[0] == 1
    assert (tmp_path / "out" / "advisor_summary.txt").read_text().splitlines()[:2] == [
        "Detection Type: FP16 overflow",
        "Operator Index: 228",
    ]
    assert "as large as float16 can be" in sentence(compared(tmp_path))


def test_a_folder_of_others_is_not_written_into(tmp_path: Path) -> None:
    record(tmp_path / "npu", "gan")
    record(tmp_path / "bench", "gan")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("")
    result = CliRunner().invoke(
        command, [str(tmp_path / "npu"), str(tmp_path / "bench"), "-o", str(tmp_path / "out")], standalone_mode=False
    )
    assert "thesis.txt" in str(result.exception)


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "same"),
    [
        ("Torch.empty.0.forward", [], [1.0], True),
        ("Torch.empty_like.0.forward", [1.0], [1e30], True),
        ("Tensor.new_empty.0.forward", [1.0], [float("nan")], True),
        # What it writes over means nothing, what it writes does.
        ("Tensor.zero_.0.forward", [5.0], [0.0], True),
        ("Tensor.normal_.0.forward", [5.0], [7.0], False),
        ("Torch.ones.0.forward", [], [5.0], False),
        ("Tensor.add_.0.forward", [5.0], [5.0], False),
    ],
)
def test_memory_that_nobody_has_written_is_not_compared(
    operator: str, inputs: list[float], outputs: list[float], same: bool, tmp_path: Path
) -> None:
    for name, given, made in (("npu", inputs, outputs), ("bench", [3.0] * len(inputs), [0.0])):
        row = {"input_args": [tensor([each]) for each in given], "input_kwargs": {}, "output": [tensor(made)]}
        write_rank(tmp_path / name / "step0" / "rank0", {operator: row})
    found = compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench")))
    assert found.same == same


def test_what_an_output_held_before_is_not_compared(tmp_path: Path) -> None:
    for name, held, made in (("npu", 5.0, 1.0), ("bench", 3.0, 1.0), ("other", 5.0, 2.0)):
        row = {"input_args": [tensor([1.0])], "input_kwargs": {"out": tensor([held])}, "output": [tensor([made])]}
        write_rank(tmp_path / name / "step0" / "rank0", {"Torch.mm.0.forward": row})
    dumps = {name: open_dump(str(tmp_path / name)) for name in ("npu", "bench", "other")}
    assert compare(dumps["npu"], dumps["bench"]).same
    assert not compare(dumps["other"], dumps["bench"]).same


def test_a_dump_in_folders_below_is_found(tmp_path: Path) -> None:
    for side in ("npu", "bench"):
        record(tmp_path / side / "logs" / "run1", "gan")
    found = compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench")))
    assert found.same
    record(tmp_path / "npu" / "logs" / "run2", "gan")
    with pytest.raises(UnusableDump, match=r"holds several dumps .*run1.*run2"):
        open_dump(str(tmp_path / "npu"))
