"""Dumps of msprobe are read, of all versions, and nothing of them is believed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.precision.recorder import tensor, write_rank
from transplt.precision.dumps import open_dump
from transplt.precision.record import Called, UnusableDump, called, named

RELU = {"Functional.relu.0.forward": {"input_args": [tensor([-1, 2])], "input_kwargs": {}, "output": [tensor([0, 2])]}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Functional.conv2d.0.forward", ("Functional.conv2d", "api", "forward", 0)),
        ("Functional_conv2d_0_forward", ("Functional.conv2d", "api", "forward", 0)),
        ("Torch_relu__9_forward", ("Torch.relu_", "api", "forward", 9)),
        ("Tensor.__mul__.3.backward", ("Tensor.__mul__", "api", "backward", 3)),
        ("67_VF_lstm_backward", ("VF.lstm", "api", "backward", 67)),
        ("Module.layer1.0.Linear.forward.2", ("Module.layer1.0.Linear", "module", "forward", 2)),
        ("Module.layer1.0.Linear.parameters_grad.1", ("Module.layer1.0.Linear", "gradient", "backward", 1)),
        ("Module.layer1.0.Linear.parameters_grad", ("Module.layer1.0.Linear", "gradient", "backward", 0)),
        ("Distributed.all_reduce.4.forward", ("Distributed.all_reduce", "api", "forward", 4)),
        ("whatever", ("whatever", "api", "forward", 0)),
    ],
)
def test_a_name_says_api_kind_phase_and_call(name: str, expected: tuple[str, str, str, int]) -> None:
    assert called(name) == Called(*expected)


@pytest.mark.parametrize("folder", ["step0/rank0", "step0/rank", "step0/proc4711", "step0", "."])
@pytest.mark.parametrize("up", [0, 1])
def test_each_layout_is_found_from_each_of_its_folders(tmp_path: Path, folder: str, up: int) -> None:
    write_rank(tmp_path / "dump" / folder, RELU) if folder != "." else write_rank(tmp_path / "dump", RELU)
    path = tmp_path / "dump" / folder if up == 0 else tmp_path / "dump"
    dump = open_dump(str(path))
    assert (dump.steps, dump.ranks) == ((0,), (0,))
    assert [row.name for row in dump.parts[0, 0].read().rows] == ["Functional.relu.0.forward"]


def test_steps_and_ranks_have_their_numbers(tmp_path: Path) -> None:
    for folder in ("step0/rank0", "step0/rank1", "step10/rank0", "step10/rank1"):
        write_rank(tmp_path / folder, RELU)
    assert [*open_dump(str(tmp_path)).parts] == [(0, 0), (0, 1), (10, 0), (10, 1)]
    assert [*open_dump(str(tmp_path / "step10")).parts] == [(10, 0), (10, 1)]
    assert [*open_dump(str(tmp_path / "step10" / "rank1")).parts] == [(10, 1)]


def test_arguments_are_taken_apart_as_they_were_nested(tmp_path: Path) -> None:
    entry = {
        "input_args": [[tensor([1]), None, tensor([2])], {"type": "int", "value": 3}],
        "input_kwargs": {"mask": tensor([0, 1], dtype="bool"), "eps": {"type": "float", "Max": 1e-5, "Min": 1e-5}},
        "parameters": {"weight": tensor([5])},
        "output": [tensor([math.nan])],
    }
    write_rank(tmp_path / "d", {"Functional.f.0.forward": entry})
    (row,) = open_dump(str(tmp_path / "d")).parts[0, 0].read().rows
    assert [each.name for each in row.inputs] == ["input.0.0", "input.0.2", "input.1", "kwargs.mask", "kwargs.eps"]
    assert [each.is_tensor for each in row.inputs] == [True, True, False, True, False]
    assert [each.max for each in row.inputs] == [1, 2, 3, 1, 1e-5]
    assert [each.name for each in row.parameters] == ["parameters.weight"]
    assert not row.outputs[0].finite


@pytest.mark.parametrize(
    "stack",
    [
        {"0": [["Functional.relu.0.forward"], ["File m.py, line 3, in forward"]]},
        {"Functional.relu.0.forward": ["File m.py, line 3, in forward"]},
    ],
)
def test_stacks_of_old_and_new_versions(tmp_path: Path, stack: object) -> None:
    write_rank(tmp_path / "d", RELU)
    (tmp_path / "d" / "stack.json").write_text(json.dumps(stack))
    stacks = open_dump(str(tmp_path / "d")).parts[0, 0].stacks()
    assert stacks == {"Functional.relu.0.forward": ("File m.py, line 3, in forward",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"data": {"Functional.relu.0.forward": {"input_args": [', "truncated"),
        ("", "truncated"),
        ("hello", "is not JSON"),
        ("[]", "no `data`"),
        ('{"data": ' + "[" * 100_000, "nested too deep"),
        ('{"data": {"a": {"input_args": [{"type": "torch.Tensor", "shape": ["x"]}]}}}', "not what msprobe writes"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, said: str) -> None:
    write_rank(tmp_path / "d", RELU)
    (tmp_path / "d" / "dump.json").write_text(text)
    with pytest.raises(UnusableDump, match=said) as caught:
        open_dump(str(tmp_path / "d")).parts[0, 0].read()
    assert "dump.json" in str(caught.value)


def test_a_folder_without_a_dump_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnusableDump, match="is not a dump: no step"):
        open_dump(str(tmp_path))
    with pytest.raises(UnusableDump, match="does not exist"):
        open_dump(str(tmp_path / "not"))
    (tmp_path / "resnet.OM").write_bytes(b"IMOD")
    with pytest.raises(UnusableDump, match=r"is an offline model of CANN; dumps .* and weights .* are read"):
        open_dump(str(tmp_path / "resnet.OM"))
    (tmp_path / "model.ckpt.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(UnusableDump, match="is part of a checkpoint of TensorFlow; dumps"):
        open_dump(str(tmp_path / "model.ckpt.data-00000-of-00001"))
    (tmp_path / "one.npy").write_bytes(b"")
    with pytest.raises(UnusableDump, match="is one array without a name; name the folder"):
        open_dump(str(tmp_path / "one.npy"))


@pytest.mark.parametrize("meant", ["Functional.relu.0.forward", "Functional_relu_0_forward", "Functional.relu.0"])
def test_a_row_is_found_by_any_form_of_its_name(tmp_path: Path, meant: str) -> None:
    write_rank(tmp_path / "d", RELU | {"Functional.relu.1.forward": {"output": [tensor([1])]}})
    rows = open_dump(str(tmp_path / "d")).parts[0, 0].read().rows
    assert [row.name for row in named(rows, meant)] == ["Functional.relu.0.forward"]
