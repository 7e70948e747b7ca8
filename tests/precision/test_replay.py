"""Recorded operators computed again: which are, which are not and why, and what is said of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.precision.recorder import tensor, write_rank
from transplt.base.errors import UsageError
from transplt.faces.cli.replay import replay
from transplt.precision.dumps import open_dump
from transplt.precision.replay.plan import plan
from transplt.precision.replay.script import script_text

RELU = "Functional.relu.0.forward"
LINEAR = "Functional.linear.0.forward"


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(replay, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def write(folder: Path, data: Mapping[str, Any], elements: Mapping[str, Any] = {}, **more: Any) -> str:
    """A dump whose tensors say `data_name`; the files of those that are not in `elements` are empty."""
    rank = folder / "step0" / "rank0"
    write_rank(rank, data, {RELU: ['File "model.py", line 12, in forward, \n x = F.relu(x)']}, task="tensor")
    (rank / "dump_tensor_data").mkdir()
    for name in (part.split('"')[0] for part in json.dumps(data).split('"data_name": "')[1:]):
        path = rank / "dump_tensor_data" / name
        if not name.startswith(("..", "/")):
            path.write_bytes(b"")
    if elements:
        numpy = pytest.importorskip("numpy")
        for name, values in elements.items():
            numpy.save(rank / "dump_tensor_data" / name, numpy.array(values, "f4"))
    if more:
        document = json.loads((rank / "dump.json").read_text())
        (rank / "dump.json").write_text(json.dumps({**document, **more}))
    return str(folder)


def kept(name: str, values: tuple[float, ...] = (-1.0, 2.0), **more: Any) -> Any:
    return tensor(values, data_name=f"{name}.npy", **more)


def row(*inputs: Any, output: Any = None, **kwargs: Any) -> dict[str, Any]:
    return {"input_args": list(inputs), "input_kwargs": kwargs, "output": [output or kept("o", (0.0, 2.0))]}


@pytest.mark.parametrize(
    ("name", "entry", "why"),
    [
        ("Functional.dropout.0.forward", row(kept("i")), "draws random numbers"),
        ("Functional.scaled_dot_product_attention.0.forward",
         row(kept("i"), kept("i"), kept("i"), None, {"type": "float", "value": 0.1}), "draws random numbers"),
        ("Tensor.normal_.0.forward", row(kept("i")), "draws random numbers"),
        ("Distributed.all_reduce.0.forward", row(kept("i")), "is not a function that a test can call"),
        ("Torch.load.0.forward", row({"type": "str", "value": "evil.pt"}), "is not a function that a test can call"),
        ("Functional.assert_int_or_pair.0.forward", row(kept("i")), "is not a function that a test can call"),
        ("Torch.__import__('os').0.forward", row(kept("i")), "is not a function that a test can call"),
        ("Tensor.to.0.forward", row(kept("i"), {"type": "device", "value": "npu:0"}), "moves data"),
        ("Torch.zeros.0.forward", row({"type": "int", "value": 2}), "computes nothing"),
        ("Functional.relu.0.forward", row(tensor([1.0])), "has a tensor without elements in the dump"),
        ("Functional.relu.0.forward", row(kept("i"), output=tensor([1.0])), "has a tensor without elements"),
        ("Functional.relu.0.forward", row({"type": "function"}), "has an argument that is not in the dump"),
        ("Functional.relu.0.backward", {"input": [kept("i")], "output": [kept("o")]}, "has no forward call"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_again(name: str, entry: Any, why: str, tmp_path: Path) -> None:
    dump = write(tmp_path / "dump", {name: entry})
    with pytest.raises(UsageError, match=r"no operator of .* can be computed again") as error:
        call(dump)
    assert why in str(error.value) and name[:30] in str(error.value)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("Functional.relu.0.forward", row(kept("i"))),
        ("Functional.relu.0.forward", row(kept("i"), inplace={"type": "bool", "value": True})),
        ("Tensor.add_.0.forward", row(kept("i"), kept("i"))),
        ("Torch.linalg_norm.0.forward", row(kept("i"))),
        ("Torch.cat.0.forward", row([kept("i"), kept("i")], dim={"type": "int", "value": 0})),
        ("Torch.arange.0.forward", row({"type": "int", "value": 2}, device={"type": "torch.device", "value": "npu:0"})),
        ("VF.lstm.0.forward", row(kept("i"), None, None, None, None, {"type": "float", "value": 0.5},
                                  {"type": "bool", "value": False})),
        ("Functional.scaled_dot_product_attention.0.forward",
         row(kept("i"), dropout_p={"type": "float", "value": 0.0})),
        ("NPU.npu_rms_norm.0.forward", row(kept("i"), kept("i"))),
    ],
)  # fmt: skip
def test_what_can_be_computed_again(name: str, entry: Any, tmp_path: Path) -> None:
    (part,) = open_dump(write(tmp_path / "dump", {name: entry})).parts.values()
    found = plan(part.read())
    assert ([each.row.name for each in found.calls], found.left) == ([name], [])
    text = script_text(found, 0, 0)
    compile(text, "replay.py", "exec")
    assert "transplt." not in text.replace("`transplt", "")


def test_nothing_of_a_dump_becomes_code(tmp_path: Path) -> None:
    evil = '"""\')\nimport os; os.system("id")\n"""'
    entry = row(kept("i"), {"type": "str", "value": evil}, **{evil: {"type": "int", "value": 1}})
    script = tmp_path / "replay.py"
    code, said = call(write(tmp_path / "dump", {RELU: entry}), "--script", str(script))
    assert code == 0 and "1 operator: python" in said
    text = script.read_text()
    compile(text, "replay.py", "exec")
    assert "\nimport os;" not in text and repr(evil) in text


def test_a_file_outside_the_dump_is_refused(tmp_path: Path) -> None:
    dump = write(tmp_path / "dump", {RELU: row(tensor([1.0], data_name="../../../secret.pt"))})
    with pytest.raises(UsageError, match="lies outside it"):
        call(dump, "--script", str(tmp_path / "replay.py"))


def judged(tmp_path: Path, values: tuple[float, ...], *more: str, **said: Any) -> tuple[int, str]:
    """A replay of a relu and a linear whose relu gives `values`."""
    data = {
        RELU: row(kept("i"), output=kept("o", (0.0, 2.0))),
        LINEAR: row(kept("o", (0.0, 2.0)), kept("w", (1.0, 1.0)), output=kept("l", (2.0, 2.0))),
    }
    files = {"i.npy": [-1.0, 2.0], "o.npy": [0.0, 2.0], "w.npy": [1.0, 1.0], "l.npy": [2.0, 2.0]}
    dump = write(tmp_path / "dump", data, files)
    replayed = {RELU: {"output": [kept("o", values)]}, LINEAR: {"output": [kept("l", (2.0, 2.0))]}}
    told = {"device": "cpu", "step": 0, "rank": 0, "failed": {}, **said}
    for name in told["failed"]:
        del replayed[name]
    again = write(tmp_path / "again", replayed, {"o.npy": values, "l.npy": [2.0, 2.0]}, replay=told)
    return call(dump, "--read", again, *more)


@pytest.mark.extra
def test_the_operator_that_is_wrong_is_told_from_those_that_inherit(tmp_path: Path) -> None:
    assert judged(tmp_path / "same", (0.0, 2.0)) == (
        0,
        "no operator differs: 2 operators computed again on the CPU from recorded inputs, 2 rows agree\n",
    )
    code, said = judged(tmp_path / "cpu", (0.0, 1.0))
    assert (code, said) == (
        1,
        "1 of 2 operators computed again on the CPU from recorded inputs gives different results: "
        "Functional.relu.0.forward: the recorded result is scaled by 2 (10000 times the tolerance), "
        "called at model.py:12 (forward)\n",
    )
    # On the NPU it is the other side that is wrong.
    assert "the NPU's result is scaled by 0.5 (5000 times" in judged(tmp_path / "npu", (0.0, 1.0), device="npu:0")[1]
    assert judged(tmp_path / "tolerant", (0.0, 1.0), "--tol", "2")[0] == 0
    assert judged(tmp_path / "one", (0.0, 1.0), "--op", "Functional.linear.0")[0] == 0


@pytest.mark.extra
def test_an_operator_that_fails_is_said(tmp_path: Path) -> None:
    code, said = judged(tmp_path, (0.0, 2.0), device="npu:0", failed={LINEAR: "RuntimeError: no \x1b kernel"})
    assert code == 1
    assert said.splitlines() == [
        "no operator differs: 1 operator computed again on the NPU from recorded inputs, 1 row agrees",
        "failed on the NPU: 1",
        "  Functional.linear.0.forward: RuntimeError: no \\x1b kernel",
    ]


@pytest.mark.extra
def test_the_table_is_that_of_a_comparison(tmp_path: Path) -> None:
    code, said = judged(tmp_path, (0.0, 1.0), "-o", str(tmp_path / "out"))
    assert code == 1 and said.splitlines()[-1].endswith("out")
    lines = (tmp_path / "out" / "replay.csv").read_text().splitlines()
    assert lines[0].startswith("Index,NPU Name,Bench Name,NPU Dtype") and len(lines) == 3
    assert lines[1].startswith("0,Functional.relu.0.forward.output.0,Functional.relu.0.forward.output.0,float32")
    document = json.loads((tmp_path / "out" / "replay.json").read_text())
    assert [each["name"] for each in document["differing"]] == [RELU]
    assert (document["same"], document["differing"][0]["place"]) == (False, "model.py:12 (forward)")


def test_what_is_no_replay(tmp_path: Path) -> None:
    data = {RELU: row(kept("i"))}
    dump, other = write(tmp_path / "dump", data), write(tmp_path / "other", data)
    with pytest.raises(UsageError, match="other is no replay: the script"):
        call(dump, "--read", other)
    with pytest.raises(UsageError, match="cannot be combined"):
        call(dump, "--read", other, "--script", "x.py")
    with pytest.raises(UsageError, match="no such step and rank: its steps are 0"):
        call(dump, "--step", "3")
    with pytest.raises(UsageError, match=r"has no operator Functional\.reku; did you mean"):
        call(dump, "--op", "Functional.reku")


def executed(dump: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[int, str]:
    """The script, run in this process, and what is said of its results."""
    call(dump, "--script", str(tmp_path / "replay.py"), *more)
    space: dict[str, Any] = {"__name__": "replay"}
    exec(compile((tmp_path / "replay.py").read_text(), "replay.py", "exec"), space)
    monkeypatch.setattr(sys, "argv", ["replay.py", "-o", str(tmp_path / "again"), "--device", "cpu"])
    space["main"]()
    return call(dump, "--read", str(tmp_path / "again"), *more)


class Recorder:
    """Writes a dump of task tensor, of calls with torch's tensors."""

    def __init__(self, folder: Path) -> None:
        self.torch = pytest.importorskip("torch")
        self.rank, self.data, self.files = folder / "step0" / "rank0", dict[str, Any](), 0
        (self.rank / "dump_tensor_data").mkdir(parents=True)

    def told(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.told(each) for each in value]
        if not isinstance(value, self.torch.Tensor):
            return None if value is None else {"type": type(value).__name__, "value": value}
        name, self.files = f"{self.files}.pt", self.files + 1
        self.torch.save(value.detach().clone(), self.rank / "dump_tensor_data" / name)
        figures = [float(value.double().max()), float(value.double().min())]
        return {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": [*value.shape], "Max": figures[0],
                "Min": figures[1], "Mean": None, "Norm": None, "data_name": name}  # fmt: skip

    def note(self, name: str, inputs: Any, outputs: Any, gradients: Any = None, **kwargs: Any) -> None:
        named = {key: self.told(each) for key, each in kwargs.items()}
        entry = {"input_args": self.told(inputs), "input_kwargs": named, "output": self.told(outputs)}
        self.data[f"{name}.forward"] = entry
        if gradients is not None:
            self.data[f"{name}.backward"] = {"input": self.told(gradients[0]), "output": self.told(gradients[1])}
        (self.rank / "dump.json").write_text(json.dumps({"task": "tensor", "data": self.data}))


@pytest.mark.torch
def test_calls_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place, lists, several results, float16 by autocast, gradients; one whose record is wrong, one that fails."""
    recorder = Recorder(tmp_path / "dump")
    torch, note = recorder.torch, recorder.note
    torch.manual_seed(1)
    x, w, up = torch.randn(3, 4), torch.randn(5, 4), torch.randn(3, 5)
    note("Tensor.add_.0", [x, 1.5], [x + 1.5])
    note("Tensor.add_.1", [x + 1.5, 1.5], [x + 1.5])  # its recorder has looked too late
    note("Torch.cat.0", [[x, x]], [torch.cat([x, x], 1)], dim=1)
    note("Tensor.max.0", [x, 1], [*x.max(1)])
    note("Functional.linear.0", [x, w], [(x.half() @ w.half().T)])
    note("Torch.arange.0", [4], [torch.arange(4)], device="npu:0")
    note("Functional.linear.1", [x, w, None], [x @ w.T], ([up], [up @ w, up.T @ x]))
    note("Functional.gelu.0", [x], [torch.nn.functional.gelu(x, approximate="tanh") + 0.01], approximate="none")
    note("Functional.relu.0", [x], [x.relu()], ([torch.ones(3, 4)], [torch.ones(3, 4)]))
    note("Torch.matmul.0", [x, x], [x])
    code, said = executed(str(tmp_path / "dump"), tmp_path, monkeypatch)
    lines = said.splitlines()
    assert code == 1 and lines[0].startswith(
        "2 of 8 operators computed again on the CPU from recorded inputs give different results: "
        "Functional.gelu.0.forward: "
    )
    assert lines[1].startswith("  Functional.relu.0.backward: the recorded result is of ")
    assert lines[2].startswith("known of gelu on NPUs: GELU is computed with tanh, whatever approximate says: ")
    assert lines[3:] == [
        "failed on the CPU: 1",
        "  Torch.matmul.0.forward: RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 3x4)",
        "not computed again: 1 row",
        "  1: writes into its input, which the dump has only as it was afterwards (Tensor.add_.1.forward)",
    ]


@pytest.mark.torch
@pytest.mark.parametrize("wrong", [False, True])
def test_backward_rows_of_the_last_node(wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As msprobe 26 records them: a linear layer's are those of addmm, the bias first and the weight turned."""
    recorder = Recorder(tmp_path / "dump")
    torch, note = recorder.torch, recorder.note
    torch.manual_seed(1)
    x, w, b, up = torch.randn(3, 4), torch.randn(4, 4), torch.randn(4), torch.randn(3, 4)
    turned = x.T @ up if not wrong else up.T @ x
    note("Functional.linear.0", [x, w, b], [x @ w.T + b], ([up], [up.sum(0), up @ w, turned]))
    note("Functional.relu.0", [x], [x.relu()], ([up], [up]), inplace=True)
    code, said = executed(str(tmp_path / "dump"), tmp_path, monkeypatch)
    lines = said.splitlines()
    assert (code, "Functional.linear.0.backward" in lines[0]) == (int(wrong), wrong), said
    clause = "writes into its input, and the dump has only the last node of its backward pass"
    assert lines[1:] == ["not computed again: 1 row", f"  1: {clause} (Functional.relu.0.backward)"]


@pytest.mark.parametrize(("other", "left"), [((-1.0, 2.0), True), ((-1.0, 3.0), False)])
def test_one_tensor_in_two_places_has_one_gradient(tmp_path: Path, other: tuple[float, ...], left: bool) -> None:
    q, k = kept("q", requires_grad=True), kept("k", other, requires_grad=True)
    gradients = {"input": [kept("g")], "output": [kept("a"), kept("b")]}
    name = "Functional.scaled_dot_product_attention.0"
    data = {f"{name}.forward": row(q, k, k), f"{name}.backward": gradients}
    data[f"{name}.forward"]["input_args"][2] = kept("v", (5.0, 6.0))
    found = plan(open_dump(write(tmp_path, data)).parts[0, 0].read())
    why = [why for name, why, _ in found.left]
    assert [each.row.api for each in found.calls] == ["Functional.scaled_dot_product_attention"]
    assert (why == ["is given one tensor in several places, of which the dump has one gradient"]) == left, why
