"""One operator of a dump: as the guide prints it, beside another one, and as a test that runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.precision.recorder import tensor, write_rank
from transplt.base.errors import UsageError
from transplt.faces.cli.show import show
from transplt.precision.dumps import open_dump
from transplt.precision.show.case import case_text
from transplt.precision.show.operator import find

RELU = "Functional.relu.0.forward"


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(show, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    """A dump of ptdbg with the figures that the guide on dumps prints."""
    def line(name: str, shape: list[int], *figures: float) -> list[Any]:
        return [f"67_VF_lstm_backward_{name}", 1, [], "torch.float32", shape, [*figures]]

    lines = [
        line("input.0", [1, 3, 244, 244], 4.149261951446533, -4.198638916015625, 0.002332142787054181),
        line("input.1", [64, 3, 7, 7], 0.1047200858592987, -0.10305210202932358, 0.0004971990711055696),
        line("output", [1, 64, 122, 122], 1.4602006673812866, -1.434123158454895, -9.677638445282355e-05),
        ["67_VF_lstm_backward_stack_info", [
            ["/usr/lib/python3.7/site-packages/torch/nn/modules/module.py", 1110, "_call_impl", "return forward_call()"],
            ["npu_jd.py", 35, "<module>", "output = model_npu(inputs)"]]],
    ]  # fmt: skip
    (tmp_path / "npu_dump.pkl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return tmp_path / "npu_dump.pkl"


def test_what_the_guide_prints(guide: Path) -> None:
    code, out = call(str(guide), "67_VF_lstm_backward")
    assert code == 0
    lines = out.splitlines()
    assert lines[lines.index("Statistic Info:") :] == [
        "Statistic Info:",
        "  [67_VF_lstm_backward_input.0][dtype: torch.float32][shape: [1, 3, 244, 244]][max: 4.149261951446533]"
        "[min: -4.198638916015625][mean: 0.002332142787054181]",
        "  [67_VF_lstm_backward_input.1][dtype: torch.float32][shape: [64, 3, 7, 7]][max: 0.1047200858592987]"
        "[min: -0.10305210202932358][mean: 0.0004971990711055696]",
        "  [67_VF_lstm_backward_output][dtype: torch.float32][shape: [1, 64, 122, 122]][max: 1.4602006673812866]"
        "[min: -1.434123158454895][mean: -9.677638445282355e-05]",
        "Trace back(67_VF_lstm_backward):",
        "  File npu_jd.py, line 35, in <module>",
        "    output = model_npu(inputs)",
        "  File /usr/lib/python3.7/site-packages/torch/nn/modules/module.py, line 1110, in _call_impl",
        "    return forward_call()",
        "Called at npu_jd.py:35 (<module>)",
    ]


def relu(folder: Path, output: list[float], **more: Any) -> str:
    entry = {"input_args": [tensor([-1.0, 2.0, 3.0, -4.0], (2, 2)), {"type": "bool", "value": False}],
             "input_kwargs": {}, "output": [tensor(output, (2, 2))], **more}  # fmt: skip
    write_rank(folder / "step0" / "rank", {"Functional.conv2d.0.forward": entry, RELU: entry})
    return str(folder)


def with_elements(folder: Path, array: Any) -> None:
    """The dump of `relu` with the elements of its output, as .npy."""
    np = pytest.importorskip("numpy")
    path = folder / "step0" / "rank"
    document = json.loads((path / "dump.json").read_text())
    document["data"][RELU]["output"][0]["data_name"] = "out.npy"
    (path / "dump.json").write_text(json.dumps(document))
    (path / "dump_tensor_data").mkdir()
    np.save(path / "dump_tensor_data" / "out.npy", np.array(array, "f4").reshape(2, 2))


def test_figures_beside_those_of_another_dump(tmp_path: Path) -> None:
    one, other = relu(tmp_path / "a", [0.0, 2.0, 3.0, 0.0]), relu(tmp_path / "b", [0.0, 4.0, 6.0, 0.0])
    code, out = call(one, RELU, "--bench", other)
    assert code == 1 and "\ninput.0: the same figures\n" in out and "\noutput.0: scaled by 0.5" in out
    assert call(one, RELU, "--bench", one)[0] == 0


@pytest.mark.extra
def test_elements_beside_those_of_another_dump(tmp_path: Path) -> None:
    one, other = relu(tmp_path / "a", [0.0, 2.0, 3.0, 0.0]), relu(tmp_path / "b", [0.0, 2.0, 3.0, 0.0])
    with_elements(tmp_path / "a", [0.0, 2.0, 3.5, 0.5])
    with_elements(tmp_path / "b", [0.0, 2.0, 3.0, 0.25])
    code, out = call(one, RELU, "--bench", other, "--top", "1")
    assert code == 1 and "largest absolute errors of 4 elements, 2 of them differ:" in out
    rows = [line.split() for line in out.splitlines() if "[1," in line]
    assert rows == [["2", "[1,", "0]", "3.5", "3", "0.5", "0.1667"], ["3", "[1,", "1]", "0.5", "0.25", "0.25", "1"]]
    document = json.loads(call(one, RELU, "--bench", other, "--format=json")[1])
    beside = document["operators"][0]["beside"][1]
    assert beside["apart"] == 2 and beside["elements"][0] == [2, [1, 0], 3.5, 3.0, 0.5, pytest.approx(1 / 6)]


def test_arguments_that_are_no_tensors_stand_beside_each_other(tmp_path: Path) -> None:
    for side, causal in (("a", True), ("b", False)):
        row = entry(tensor([1.0]), is_causal={"type": "bool", "value": causal}, scale={"type": "float", "value": 0.5})
        write_rank(tmp_path / side / "step0" / "rank", {"Functional.attention.0.forward": row})
    code, text = call(str(tmp_path / "a"), "Functional.attention.0.forward", "--bench", str(tmp_path / "b"))
    assert code == 1 and "kwargs.is_causal: 1 and not 0" in text and "kwargs.scale: the same" in text


@pytest.mark.extra
def test_the_largest_elements(tmp_path: Path) -> None:
    dump = relu(tmp_path / "a", [0.0, 2.0, 3.0, 0.0])
    with_elements(tmp_path / "a", [0.0, -7.0, math.nan, 2.0])
    lines = call(dump, RELU, "--top", "2")[1].splitlines()
    at = lines.index(f"Elements of {RELU}.output.0: 4, of which 1 nan, 1 zero")
    assert lines[at + 1 : at + 3] == ["  [1, 0]: nan", "  [0, 1]: -7"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("Functional.reku.0.forward",), r"has no operator Functional.reku.0.forward; did you mean Functional.relu"),
        ((RELU, "--step", "3"), "no such step and rank: its steps are 0, its ranks 0"),
    ],
)
def test_what_is_not_there(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        call(relu(tmp_path / "a", [0.0, 2.0, 3.0, 0.0]), *arguments)


def case(folder: Path, data: dict[str, Any], name: str) -> str:
    write_rank(folder / "step0" / "rank", data, parents={"Functional.relu.9.forward": "Module.net.Net.forward.0"})
    found = find(open_dump(str(folder)), name, None, None)
    return case_text(found, found.rows[0])


def entry(*inputs: Any, output: Any = None, **kwargs: Any) -> dict[str, Any]:
    return {"input_args": list(inputs), "input_kwargs": kwargs, "output": [output or tensor([1.0])]}


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("Module.net.Net.forward.0", entry(tensor([1.0])), "is a module; a test needs a function in it: Functional.relu.9"),
        ("Functional.dropout.0.forward", entry(tensor([1.0])), "draws random numbers"),
        ("Torch.randn.0.forward", entry(), "draws random numbers"),
        ("Tensor.__getitem__.0.forward", entry(tensor([1.0])), "computes nothing"),
        ("Torch.zeros.0.forward", entry(tensor([1.0])), "computes nothing"),
        ("Tensor.to.0.forward", entry(tensor([1.0]), {"type": "device", "value": "npu:0"}), "moves data"),
        ("Torch.arange.0.forward", entry(device={"type": "str", "value": "npu:0"}), "kwargs.device is a device"),
        ("Torch.load.0.forward", entry({"type": "str", "value": "/etc/passwd"}), "is not a function that a test can call"),
        ("Torch.hub.0.forward", entry(tensor([1.0])), "is not a function that a test can call"),
        ("Aten.from_file.0.forward", entry({"type": "str", "value": "x"}), "is not a function that a test can call"),
        ("Functional.relu.0.forward", entry({"type": "Generator"}), "has no value of the argument input.0, of type Generator"),
        ("Functional.relu.0.forward", entry(tensor([1.0], data_name="../../../x.pt")), "lies outside"),
        ("Distributed.all_reduce.0.forward", entry(tensor([1.0])), "is not a function that a test can call"),
        ("Functional.x(1);y.0.forward", entry(tensor([1.0])), "is not a function that a test can call"),
        ("Functional.relu.0.backward", {"input": [tensor([1.0])], "output": [tensor([1.0])]}, "no forward pass of"),
        ("Functional.relu.0.forward", entry(tensor([1.0], dtype="float8_e4m3fn")), "which a test cannot draw"),
        ("Functional.relu.0.forward", entry({"type": "function", "value": "<lambda>"}), "has no value of the argument"),
    ],
)  # fmt: skip
def test_no_test_of_these(name: str, data: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        case(tmp_path, {name: data}, name)


def test_a_dump_writes_no_code(tmp_path: Path) -> None:
    evil = 'x"""\nimport os; os.system("id")\n"""'
    text = case(tmp_path, {RELU: entry(tensor([1.0]), {"type": "str", "value": evil}, **{"a') or evil(": {"type": "int", "value": 3}})}, RELU)
    compile(text, "case.py", "exec")
    assert "\nimport os" not in text and repr(evil) in text


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Runs the test of an operator and names the functions in it that passed."""
    pytest.importorskip("torch")

    def runs(data: dict[str, Any], name: str) -> list[str]:
        space: dict[str, Any] = {"__name__": "case"}
        exec(compile(case(tmp_path / "dump", data, name), "case.py", "exec"), space)
        tests = [each for each in space if each.startswith("test_")]
        for each in tests:
            space[each]()
        return tests

    return runs


def number(value: float, kind: str = "int") -> dict[str, Any]:
    return {"type": kind, "value": value}


def large(*shape: int, dtype: str = "float32") -> Any:
    return {**tensor([-1.0, 1.0], shape, dtype), "Mean": 0.0}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a function": ("Functional.conv2d.0.forward", entry(large(1, 3, 8, 8), large(4, 3, 3, 3), None, [number(1), number(1)])),
    "a method": ("Tensor.add_.0.forward", entry(large(2, 3), large(2, 3), alpha=number(0.5, "float"))),
    "of torch": ("Torch.cat.0.forward", entry([large(2, 3), large(2, 3)], dim=number(1))),
    "half": ("Functional.linear.0.forward", entry(large(4, 64, dtype="float16"), large(8, 64, dtype="float16"))),
    "bfloat16": ("Functional.softmax.0.forward", entry(large(4, 64, dtype="bfloat16"), dim=number(-1))),
    "integers": ("Functional.embedding.0.forward",
                 entry(tensor([0.0, 9.0], (5,), "int64"), large(10, 4), padding_idx=number(0))),
    "a string": ("Functional.cross_entropy.0.forward",
                 entry(large(4, 10), tensor([0.0, 9.0], (4,), "int64"), reduction={"type": "str", "value": "sum"})),
    "a dtype": ("Functional.log_softmax.0.forward",
                entry(large(4, 4), dim=number(0), dtype={"type": "dtype", "value": "torch.float64"})),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("kind", CASES)
def test_cases_run(kind: str, run: Any) -> None:
    name, data = CASES[kind]
    assert run({name: data}, name) == ["test_forward"]


@pytest.mark.torch
@pytest.mark.parametrize("api", ["Functional.relu", "Functional.relu_", "Tensor.mul"])
def test_a_backward_pass_runs(api: str, run: Any) -> None:
    inputs = [large(2, 3), large(2, 3)][: 2 if api == "Tensor.mul" else 1]
    data = {
        f"{api}.0.forward": entry(*inputs, output=large(2, 3)),
        f"{api}.0.backward": {"input": [large(2, 3)], "output": [large(2, 3)]},
    }
    assert run(data, f"{api}.0.backward") == ["test_forward", "test_backward"]


@pytest.mark.torch
def test_recorded_elements_are_used(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = tmp_path / "step0" / "rank"
    data = {RELU: entry(tensor([-1.0, 2.0], data_name="i.pt"), output=tensor([0.0, 2.0], data_name="o.pt"))}
    write_rank(folder, data, task="tensor")
    (folder / "dump_tensor_data").mkdir()
    torch.save(torch.tensor([-1.0, 2.0]), folder / "dump_tensor_data" / "i.pt")
    torch.save(torch.tensor([0.0, 2.5]), folder / "dump_tensor_data" / "o.pt")
    assert "written: python " in call(str(tmp_path), RELU, "--case", str(tmp_path / "case.py"))[1]
    space: dict[str, Any] = {"__name__": "case"}
    exec(compile((tmp_path / "case.py").read_text(), "case.py", "exec"), space)
    space["test_forward"]()
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        space["test_as_recorded"]()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gelu", "Functional.gelu.0.forward"), ("gleu", "Functional.gelu.0.forward"), ("nothing", "")],
)
def test_a_part_of_a_name_is_what_is_meant(name: str, meant: str, tmp_path: Path) -> None:
    rows = {row: {"input_args": [tensor([1.0])], "output": [tensor([1.0])]}
            for row in ("Module.act.GELUActivation.forward.0", "Functional.gelu.0.forward", "Tensor.exp.0.forward")}  # fmt: skip
    write_rank(tmp_path / "step0" / "rank0", rows)
    with pytest.raises(UsageError) as error:
        call(str(tmp_path), name)
    assert (f"did you mean {meant}" if meant else f"no operator {name}") in str(error.value)
