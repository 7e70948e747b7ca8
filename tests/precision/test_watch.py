"""Each watch point: a run of two steps that hits it, and the sound run that hits none."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.precision.recorder import tensor, write_rank
from transplt.base.errors import UsageError
from transplt.faces.cli.anomalies import anomalies
from transplt.precision.watch.points import POINTS

NAN, INF = math.nan, math.inf
LINEAR, SIGMOID = "Module.fc.Linear.forward.0", "Functional.sigmoid.0.forward"
BACKWARD, GRADIENT = "Functional.sigmoid.0.backward", "Module.fc.Linear.parameters_grad.0"


def step(number: int, dtype: str = "float32") -> dict[str, Any]:
    """A sound step: a linear layer, a sigmoid, their gradients; weights move by some per cent."""
    drift = 1 + 0.01 * number
    weights = {"weight": tensor([0.5 * drift, -0.25], dtype=dtype), "bias": tensor([0.1 * drift, 0.2], dtype=dtype)}
    return {
        LINEAR: {"input_args": [tensor([drift, 2.0], dtype=dtype)], "input_kwargs": {}, "parameters": weights,
                 "output": [tensor([0.1, 0.3 * drift], dtype=dtype)]},
        SIGMOID: {"input_args": [tensor([0.1, 0.3], dtype=dtype)], "input_kwargs": {},
                  "output": [tensor([0.52, 0.57], dtype=dtype)]},
        BACKWARD: {"input": [tensor([1.0, 1.0])], "output": [tensor([0.2, 0.2])]},
        GRADIENT: {"weight": [tensor([0.01, 0.02])], "bias": [tensor([0.03, 0.02])]},
        "Module.up.Linear.parameters_grad.0": {"weight": [tensor([0.01, 0.02])]},
    }  # fmt: skip


def put(data: dict[str, Any], row: str, group: str, place: int | str, entry: Any) -> None:
    data[row][group][place] = entry


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(anomalies, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def hits(folder: Path, *steps: dict[str, Any], arguments: tuple[str, ...] = ("--checks", "all")) -> dict[str, Any]:
    """The hits by watch point."""
    for number, data in enumerate(steps):
        write_rank(folder / f"step{number}" / "rank", data)
    document = json.loads(call(str(folder), "--format=json", *arguments)[1])
    return {point["name"]: point["hits"] for point in document["points"] if point["hits"]}


def test_a_sound_run_hits_none(tmp_path: Path) -> None:
    assert hits(tmp_path / "a", step(0), step(1), step(2)) == {}
    code, out = call(str(tmp_path / "a"))
    assert code == 0 and out == "transplt anomalies: none of 11 watch points is hit in 3 steps of 1 rank\n"


#: What is put into step 1 of a sound run, the watch point that it is for, and the tensor and figures that are named.
CASES: dict[str, tuple[tuple[str, str, int | str, Any], str, str]] = {
    "operator-overflow": ((SIGMOID, "output", 0, tensor([INF, 0.0])), f"{SIGMOID} output.0", "infinite (0 to inf), and its inputs"),
    "overflow": ((SIGMOID, "input_args", 0, tensor([NAN, 0.0])), f"{SIGMOID} input.0", "nan"),
    "all-zero": ((LINEAR, "output", 0, tensor([0.0, 0.0])), f"{LINEAR} output.0", "all 2 elements are 0"),
    "tensor-range": ((LINEAR, "output", 0, tensor([-7e4, 1.0])), f"{LINEAR} output.0", "outside [-65504, 65504]"),
    "tensor-too-large": ((LINEAR, "output", 0, tensor([7e4, 1.0])), f"{LINEAR} output.0", "up to 70000, above 65504"),
    "tensor-too-small": ((LINEAR, "output", 0, tensor([1e-9, 0.0])), f"{LINEAR} output.0", "up to 1e-9, below"),
    "weight-overflow": ((LINEAR, "parameters", "weight", tensor([NAN, 1.0])), f"{LINEAR} parameters.weight", "nan"),
    "weight-too-large": ((LINEAR, "parameters", "weight", tensor([2e3, 1.0])), f"{LINEAR} parameters.weight", "2000"),
    "weight-too-small": ((LINEAR, "parameters", "bias", tensor([1e-9, 0.0])), f"{LINEAR} parameters.bias", "1e-9"),
    "unchanged-weight": ((LINEAR, "parameters", "bias", step(0)[LINEAR]["parameters"]["bias"]),
                         f"{LINEAR} parameters.bias", "as in the step before"),
    "weight-change-too-large": ((LINEAR, "parameters", "weight", tensor([5.0, -0.25])),
                                f"{LINEAR} parameters.weight", "changed by 9 of it"),
    "weight-change-too-small": ((LINEAR, "parameters", "weight", tensor([0.5 + 1e-8, -0.25])),
                                f"{LINEAR} parameters.weight", "changed by 2e-8 of it"),
    "gradient-exploding": ((GRADIENT, "weight", 0, tensor([5.0, 0.0])), f"{GRADIENT} gradient.weight.0", "times that of"),
    "gradient-vanishing": (("Module.up.Linear.parameters_grad.0", "weight", 0, tensor([1e-12, 0.0])),
                           "Module.up.Linear.parameters_grad.0 gradient.weight.0", "below 1e-9"),
    "gradient-too-large": ((GRADIENT, "weight", 0, tensor([2e3, 0.0])), f"{GRADIENT} gradient.weight.0", "above 1000"),
    "activation-range": ((SIGMOID, "output", 0, tensor([1.5, 0.5])), f"{SIGMOID} output.0", "sigmoid gives [0, 1]"),
}  # fmt: skip


@pytest.mark.parametrize("point", CASES)
def test_each_watch_point(point: str, tmp_path: Path) -> None:
    (row, group, place, entry), where, why = CASES[point]
    bad = deepcopy(step(1))
    put(bad, row, group, place, entry)
    found = hits(tmp_path / "a", step(0), bad)
    first = found[point][0]
    assert f"{first['operator']} {first['tensor']}" == where and why in first["why"] and first["step"] == 1


def test_there_are_sixteen() -> None:
    assert set(CASES) == {point.name for point in POINTS} - OF_DATA and len(CASES) == 16
    out = call("--list")[1]
    assert "* unchanged-weight         检查未变化权重" in out and len(out.splitlines()) == 21


OF_DATA = {"label-range", "constant-data", "repeated-data"}
LOSS, NET = "Functional.cross_entropy.0.forward", "Module.net.Net.forward.0"


def labelled(
    labels: list[float], scores: tuple[int, ...] = (3, 4), dtype: str = "int64", **more: Any
) -> dict[str, Any]:
    """A loss of three samples and four classes."""
    given = [tensor([0.5, 0.25], shape=scores), tensor(labels, dtype=dtype)]
    return {LOSS: {"input_args": given, "input_kwargs": more, "output": [tensor([1.0])]}}


IGNORES = {"ignore_index": {"type": "int", "value": 255, "Max": 255, "Min": 255}}


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (labelled([0, 2, 4]), "labels from 0 to 4, and 4 classes"),
        (labelled([-1, 2, 3]), "labels from -1 to 3, and 4 classes"),
        (labelled([0, 255, 1]), "labels from 0 to 255, and 4 classes"),
        (labelled([0, 21], scores=(1, 21, 8, 8)), "labels from 0 to 21, and 21 classes"),
        (labelled([0, 2, 3]), ""),
        (labelled([-100, 2, 3]), ""),  # what is left out unless another is named
        (labelled([0, 255, 1], **IGNORES), ""),
        (labelled([3], scores=(4,)), ""),
        (labelled([0.5, 7.0, 0.25], dtype="float32"), ""),  # shares of classes
    ],
)
def test_labels_that_are_no_class(loss: dict[str, Any], why: str, tmp_path: Path) -> None:
    found = hits(tmp_path / "a", loss)
    assert [hit["why"] for hit in found.get("label-range", ())] == [why] * bool(why)


@pytest.mark.parametrize(
    ("second", "point"),
    [
        (tensor([0.5, 0.5]), "constant-data"),
        (tensor([0.0, 0.0]), "constant-data"),
        (tensor([1.0, 2.0]), "repeated-data"),
        (tensor([2.0, 1.5]), ""),
        (tensor([7, 7], dtype="int64"), ""),  # first tokens, or a mask
    ],
)
def test_data_of_the_model(second: Any, point: str, tmp_path: Path) -> None:
    for number, entry in enumerate((tensor([1.0, 2.0]), second)):
        rows = {LINEAR: {"input_args": [tensor([0.0, 0.0])], "input_kwargs": {}, "output": [tensor([1.0, 2.0])]},
                NET: {"input_args": [entry], "input_kwargs": {}, "output": [tensor([1.0, 2.0])]}}  # fmt: skip
        write_rank(tmp_path / f"step{number}/rank", rows, parents={LINEAR: NET, NET: None})
    document = json.loads(call(str(tmp_path), "--format=json", "--checks", ",".join(sorted(OF_DATA)))[1])
    found = [(each["name"], hit["operator"], hit["step"]) for each in document["points"] for hit in each["hits"]]
    assert found == ([(point, NET, 1)] if point else [])


def test_the_end_of_float16_is_an_overflow(tmp_path: Path) -> None:
    half = step(0, "float16")
    put(half, SIGMOID, "output", 0, tensor([65504.0, 1.0], dtype="float16"))
    assert "operator-overflow" in hits(tmp_path / "a", half)
    full = step(0)
    put(full, SIGMOID, "output", 0, tensor([65504.0, 1.0]))
    assert "operator-overflow" not in hits(tmp_path / "b", full)


def test_an_operator_that_is_given_nan_is_not_blamed(tmp_path: Path) -> None:
    bad = step(0)
    put(bad, SIGMOID, "input_args", 0, tensor([NAN, 1.0]))
    put(bad, SIGMOID, "output", 0, tensor([NAN, 1.0]))
    found = hits(tmp_path / "a", bad)
    assert "operator-overflow" not in found and len(found["overflow"]) == 2


@pytest.mark.parametrize("place", [("parameters", "weight"), ("output", 0)])
def test_a_module_is_not_blamed_for_what_is_inside(place: tuple[str, int | str], tmp_path: Path) -> None:
    """Its own parameters are without those of its children: a nan among these is none of its doing."""
    net, whole = "Module.net.Net.forward.0", "Module.whole.Whole.forward.0"
    rows = step(0)
    put(rows, LINEAR, *place, tensor([NAN, 1.0]))
    put(rows, LINEAR, "output", 0, tensor([NAN, 1.0]))
    for name in (net, whole):
        rows[name] = {"input_args": [tensor([1.0, 2.0])], "input_kwargs": {}, "output": [tensor([NAN, 1.0])]}
    write_rank(tmp_path / "step0/rank", rows, parents={LINEAR: net, net: whole, whole: None})
    document = json.loads(call(str(tmp_path), "--format=json", "--checks", "operator-overflow")[1])
    assert [hit["operator"] for hit in document["points"][0]["hits"]] == ([LINEAR] if place[0] == "output" else [])


def test_zeros_that_are_asked_for(tmp_path: Path) -> None:
    made = {f"{api}.0.forward": {"input_args": [], "input_kwargs": {}, "output": [tensor([0.0, 0.0])]}
            for api in ("Torch.zeros", "Torch.zeros_like", "Tensor.zero_", "Torch.empty", "Tensor.new_zeros")}  # fmt: skip
    assert hits(tmp_path / "a", made, arguments=()) == {}


MASK = {"type": "float", "value": -INF}
SCORES = tensor([0.5, -INF, 0.25])


def attention(output: Any) -> dict[str, Any]:
    """Scores that a mask hides, their softmax, and the way back."""
    return {
        "Tensor.masked_fill.0.forward": {"input_args": [tensor([0.5, 0.1, 0.25]), tensor([0.0, 1.0, 0.0], dtype="bool"),
                                                        MASK], "output": [SCORES]},
        "Torch.softmax.0.forward": {"input_args": [SCORES], "output": [output]},
        "Torch.softmax.0.backward": {"input": [tensor([1.0, 2.0, 3.0])], "output": [output]},
    }  # fmt: skip


def test_what_is_infinite_on_purpose(tmp_path: Path) -> None:
    assert hits(tmp_path / "a", attention(tensor([0.5, 0.0, 0.5])), arguments=()) == {}


def test_a_softmax_of_a_row_that_is_hidden_as_a_whole(tmp_path: Path) -> None:
    """What goes in is infinite on purpose, and what comes out is not a number; the way back is no operator at fault."""
    found = hits(tmp_path / "a", attention(tensor([NAN, NAN])), arguments=())
    assert [hit["operator"] for hit in found["operator-overflow"]] == ["Torch.softmax.0.forward"]


def test_a_mask_of_both_ends_is_an_overflow(tmp_path: Path) -> None:
    rows = attention(tensor([0.5, 0.0, 0.5]))
    rows["Tensor.masked_fill.0.forward"]["output"] = [tensor([1.0, 2.0], Max=INF, Min=-INF)]
    found = hits(tmp_path / "a", rows, arguments=())
    assert found["operator-overflow"][0]["why"].startswith("infinite (-inf to inf)")


@pytest.mark.parametrize("place", ["forward", "parameters"])
def test_a_backward_row_is_given_what_its_forward_call_was(place: str, tmp_path: Path) -> None:
    rows = step(0)
    bad = tensor([NAN, 1.0])
    if place == "forward":
        put(rows, SIGMOID, "input_args", 0, bad)
    else:
        put(rows, LINEAR, "parameters", "weight", bad)
        put(rows, LINEAR, "output", 0, bad)
    put(rows, SIGMOID, "output", 0, tensor([0.5, 0.5]))
    put(rows, BACKWARD, "output", 0, bad if place == "forward" else tensor([0.2, 0.2]))
    assert "operator-overflow" not in hits(tmp_path / "a", rows, arguments=())


def test_memory_that_nobody_has_written(tmp_path: Path) -> None:
    garbage = tensor([INF, NAN])
    rows = {
        "Torch.empty.0.forward": {"input_args": [], "output": [garbage]},
        "Distributed.recv.0.forward": {"input_args": [garbage], "output": [tensor([1.0, 2.0])]},
        "Torch.empty.1.forward": {"input_args": [], "output": [garbage]},
        "Tensor.copy_.0.forward": {"input_args": [garbage, tensor([1.0, 2.0])], "output": [tensor([1.0, 2.0])]},
    }
    assert hits(tmp_path / "a", rows, arguments=()) == {}


@pytest.mark.parametrize(
    "row",
    [
        {"Tensor.mul_.0.forward": {"input_args": [tensor([0.0, 0.0]), {"type": "float", "value": 0.9}],
                                   "output": [tensor([0.0, 0.0])]}},
        {"Functional.linear.0.forward": {"input_args": [tensor([0.0, 0.0]), tensor([1.0, 2.0])],
                                         "output": [tensor([0.0, 0.0])]}},
        {"Tensor.__getitem__.0.forward": {"input_args": [tensor([0.0, 1.0, 0.0])], "output": [tensor([0.0, 0.0])]}},
    ],
)  # fmt: skip
def test_zeros_that_are_handed_on(row: dict[str, Any], tmp_path: Path) -> None:
    """Adam's first state, the first state of a recurrent network, a part of a tensor."""
    assert hits(tmp_path / "a", row, arguments=()) == {}


def test_zeros_of_what_is_none(tmp_path: Path) -> None:
    row = {"Functional.relu.0.forward": {"input_args": [tensor([-1.0, -2.0])], "output": [tensor([0.0, 0.0])]}}
    assert [*hits(tmp_path / "a", row, arguments=())] == ["all-zero"]


def test_a_bias_that_nothing_depends_on(tmp_path: Path) -> None:
    """That of keys in front of a softmax, or in front of a norm: its gradient is what sums do not cancel."""
    rows = step(0)
    put(rows, GRADIENT, "bias", 0, tensor([1e-12, -1e-12]))
    later = step(1)
    put(later, GRADIENT, "bias", 0, tensor([1e-9, -1e-9]))
    assert hits(tmp_path / "a", rows, later, arguments=()) == {}


def test_a_bias_that_began_at_zero_doubles(tmp_path: Path) -> None:
    steps = [step(0), step(1), step(2)]
    for number, bias in enumerate((0.0, 0.002, 0.004)):
        put(steps[number], LINEAR, "parameters", "bias", tensor([bias, bias]))
    assert hits(tmp_path / "a", *steps, arguments=()) == {}


def test_a_saturated_activation(tmp_path: Path) -> None:
    bad = step(0)
    put(bad, SIGMOID, "output", 0, tensor([0.9999, 1.0]))
    assert "saturated" in hits(tmp_path / "a", bad)["activation-range"][0]["why"]


def test_weights_without_modules(tmp_path: Path) -> None:
    """Level L1 records functions only: their second and third inputs are the weights."""

    def at(bias: float) -> dict[str, Any]:
        entry = {"input_args": [tensor([1.0]), tensor([0.5 + bias]), tensor([bias])], "input_kwargs": {},
                 "output": [tensor([1.0])]}  # fmt: skip
        return {"Functional.linear.0.forward": entry, "Functional.conv2d.0.forward": deepcopy(entry)}

    found = hits(tmp_path / "a", at(0.25), at(0.25), arguments=("--checks", "unchanged-weight"))
    assert [hit["tensor"] for hit in found["unchanged-weight"]] == ["input.1", "input.2"] * 2


def test_a_bias_that_begins_at_zero_may_move(tmp_path: Path) -> None:
    first = step(0)
    put(first, LINEAR, "parameters", "bias", tensor([0.0, 0.0]))
    assert hits(tmp_path / "a", first, step(1), arguments=()) == {}


def test_ranks_stacks_and_bounds(tmp_path: Path) -> None:
    bad = step(0)
    put(bad, SIGMOID, "output", 0, tensor([0.0, 0.0]))
    frames = ["File /lib/python3.11/site-packages/torch/nn/functional.py, line 5, in sigmoid, \n x",
              "File /job/model.py, line 31, in forward, \n y = sigmoid(x)"]  # fmt: skip
    write_rank(tmp_path / "a" / "step0" / "rank0", step(0))
    write_rank(tmp_path / "a" / "step0" / "rank1", bad, {SIGMOID: frames})
    code, out = call(str(tmp_path / "a"), "--checks", "all-zero")
    assert code == 1
    assert out == (
        "transplt anomalies: 1 watch point of 1 hit in 1 step of 2 ranks; the first in step 0\n\n"
        "all-zero (检查张量是否全为0): 1 time\n"
        "  all elements of an operator's output are 0\n"
        f"  step 0, rank 1: {SIGMOID} output.0: all 2 elements are 0, at /job/model.py:31 (forward)\n"
    )
    assert call(str(tmp_path / "a"), "--checks", "tensor-too-large", "--bound", "tensor-too-large=0.4")[0] == 1
    assert call(str(tmp_path / "a"), "--checks", "tensor-range", "--range", "0.2,1")[0] == 1
    assert call(str(tmp_path / "a"), "--checks", "all-zero", "--exit-zero")[0] == 0


def test_one_step_says_that_changes_need_two(tmp_path: Path) -> None:
    write_rank(tmp_path / "a" / "step0" / "rank", step(0))
    assert "has one step: whether weights change needs two" in call(str(tmp_path / "a"))[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("x", "--checks", "all-zeros"), "there is no watch point 'all-zeros'; there are operator-overflow"),
        (("x", "--checks", ","), "names no watch point"),
        (("x", "--bound", "all-zero=3"), "--bound 'all-zero=3': NAME=VALUE with one of"),
        (("x", "--bound", "tensor-too-large=x"), "'x' is not a number"),
        (("x", "--range", "3"), "two numbers"),
        (("x", "--range", "3,1"), "LOW is above HIGH"),
        (("nowhere",), "nowhere does not exist"),
        ((), "give a DUMP"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call(*arguments)


def test_a_gradient_that_is_no_number_does_not_vanish(tmp_path: Path) -> None:
    bad = step(1)
    put(bad, "Module.up.Linear.parameters_grad.0", "weight", 0, tensor([NAN, 0.02]))
    assert "gradient-exploding" in (found := hits(tmp_path, step(0), bad)) and "gradient-vanishing" not in found
