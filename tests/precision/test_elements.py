"""Elements and figures: ptdbg, .npy, .pt and .h5; the metrics of msaccucmp."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.errors import UsageError
from transplt.faces.cli.compare import compare as command
from transplt.faces.cli.show import show
from transplt.precision.dumps import open_dump
from transplt.precision.record import UnusableDump

LSTM = [
    (
        "67_VF_lstm_backward_input.0", "torch.float32", [1, 3, 244, 244],
        [4.149261951446533, -4.198638916015625, 0.002332142787054181],
    ),
    ("67_VF_lstm_backward_output", "torch.float32", [1, 64, 122, 122], [1.46, -1.43, -9.67e-05]),
]  # fmt: skip


def write_pkl(path: Path, tensors: Any = LSTM, stacks: Any = ()) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [[f"{name}_stack_info", frames] for name, frames in stacks]
    lines += [[name, 1, [], dtype, shape, figures] for name, dtype, shape, figures in tensors]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("opened", [".", "all_v1.0", "all_v1.0/rank1", "all_v1.0/rank1/api_stack_npu_dump.pkl"])
def test_a_dump_of_ptdbg_is_read_from_each_of_its_folders(tmp_path: Path, opened: str) -> None:
    frames = [["train.py", 35, "<module>", "output = model(x)"]]
    pkl = tmp_path / "all_v1.0" / "rank1" / "api_stack_npu_dump.pkl"
    write_pkl(pkl, stacks=[("67_VF_lstm_backward", frames)])
    (part,) = open_dump(str(tmp_path / opened)).parts.values()
    (row,) = part.read().rows
    assert (row.name, row.api, row.phase, row.index) == ("67_VF_lstm_backward", "VF.lstm", "backward", 67)
    assert row.inputs[0][2:6] == ((1, 3, 244, 244), 4.149261951446533, -4.198638916015625, 0.002332142787054181)
    assert part.stacks()[row.name] == ("File train.py, line 35, in <module>, \n output = model(x)",)


@pytest.mark.parametrize(
    "names", [("Functional_conv2d_0_forward", "_"), ("Functional.conv2d.0.forward", "."), ("67_VF_lstm_backward", "_")]
)
def test_all_forms_of_names_are_rows(tmp_path: Path, names: tuple[str, str]) -> None:
    row, mark = names
    tensors = [(f"{row}{mark}{place}", "torch.float32", [2], [1, 0, 0.5]) for place in ("input.0", "input.1", "output")]
    write_pkl(tmp_path / "d.pkl", tensors)
    (found,) = open_dump(str(tmp_path / "d.pkl")).parts[0, 0].read().rows
    assert [tensor.name for tensor in found.tensors] == ["input.0", "input.1", "output.0"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\x80\x04cposix\nsystem\n", "UTF-8|no JSON"),
        (b'["a_input.0", 1, [], "torch.float32", [1', "truncated"),
        (b'{"a": 1}', "no record"),
    ],
)
def test_a_pkl_that_is_something_else_is_refused_with_its_line(tmp_path: Path, line: bytes, said: str) -> None:
    (tmp_path / "d.pkl").write_bytes(b'["a_input.0", 1, [], "torch.float32", [1], [1, 1, 1]]\n' + line)
    with pytest.raises(UnusableDump, match=said) as caught:
        open_dump(str(tmp_path / "d.pkl")).parts[0, 0].read()
    assert "d.pkl:2" in str(caught.value)


@pytest.mark.torch
def test_the_rule_of_the_guide_names_its_first_row(tmp_path: Path) -> None:
    """A row with 0.985 and 0.0005 is good; the first below 0.99 and above 0.001 is 67_VF_lstm_backward."""
    import numpy as np

    b = np.array([1.0, 0.0] * 8, dtype="f4")
    angle = math.acos(0.985)
    turned = np.array([math.cos(angle), math.sin(angle)] * 8, dtype="f4")
    sides = {"gpu": (b * 1e-3, b), "npu": (turned * 1e-3, turned)}
    for side, (small, large) in sides.items():
        folder = tmp_path / side / "all_v1.0" / "rank1"
        data = {"66_Torch_relu_forward_output": small, "67_VF_lstm_backward_output": large}
        write_pkl(folder / "dump.pkl", [(name, "torch.float32", [16], [1, 0, 0]) for name in data])
        (folder / "dump").mkdir()
        for name, values in data.items():
            np.save(folder / "dump" / f"{name}.npy", values)
    arguments = [str(tmp_path / "npu"), str(tmp_path / "gpu"), "--rule", "ptdbg", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert result.return_value == 1, result.exception
    assert result.output.startswith("first at 67_VF_lstm_backward.output.0 (row 1): Cosine 0.985")
    head, small, *_ = (tmp_path / "out" / "compare.csv").read_text().splitlines()
    assert head.split(",")[7:9] == ["Cosine", "MaxAbsError"] and ",Yes," in small


@pytest.mark.torch
def test_files_of_a_device_are_rows_in_the_order_of_their_times(tmp_path: Path) -> None:
    import numpy as np

    for name in (
        "Pooling.pool1.1147.1589195081588018.output.0.npy",
        "Conv2D.conv1.1146.1589195081588010.output.0.npy",
        "Conv2D.conv1.1146.1589195081588010.input.0.npy",
    ):
        np.save(tmp_path / name, np.ones((2, 3), dtype="f2"))
    rows = open_dump(str(tmp_path)).parts[0, 0].read().rows
    assert [(row.name, len(row.inputs), len(row.outputs)) for row in rows] == [("conv1", 1, 1), ("pool1", 0, 1)]


@pytest.mark.torch
def test_a_pt_file_is_read_as_torch_reads_it_and_runs_nothing(tmp_path: Path) -> None:
    import numpy as np
    import torch

    from transplt.precision.elements import read_array

    path = str(tmp_path / "x.pt")
    values = torch.arange(12.0).reshape(3, 4)
    for value in (
        values, values.t(), values[1:, ::2], values.bfloat16(), values.half(), values.long(), values > 3,
        torch.tensor(2.0), torch.nn.Parameter(values), torch.zeros(0, 3),
    ):  # fmt: skip
        torch.save(value, path)
        expected = value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
        assert np.array_equal(read_array(path), expected.numpy())

    class Runs:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    for bad in (Runs(), {"a": values}, [Runs(), values]):
        torch.save(bad, path)
        with pytest.raises(UnusableDump, match=r"x\.pt"):
            read_array(path)
    torch.save(values, path)
    data = Path(path).read_bytes()
    for size in (0, 3, len(data) // 2, len(data) - 30):
        Path(path).write_bytes(data[:size])
        with pytest.raises(UnusableDump, match=r"x\.pt"):
            read_array(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.torch
def test_a_npy_file_of_objects_or_cut_short_is_refused(tmp_path: Path) -> None:
    import numpy as np

    from transplt.precision.elements import read_array

    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnusableDump, match=r"o\.npy.*never read"):
        read_array(str(tmp_path / "o.npy"))
    np.save(tmp_path / "c.npy", np.zeros(1000))
    (tmp_path / "c.npy").write_bytes((tmp_path / "c.npy").read_bytes()[:500])
    with pytest.raises(UnusableDump, match=r"c\.npy.*shorter"):
        read_array(str(tmp_path / "c.npy"))


@pytest.mark.parametrize("name", ["../../secret.pt", "/etc/passwd", "x/../../../secret.pt"])
def test_a_dump_names_no_file_outside_itself(tmp_path: Path, name: str) -> None:
    from tests.precision.recorder import tensor, write_rank
    from transplt.precision.elements import elements

    write_rank(tmp_path / "d", {"Functional.relu.0.forward": {"output": [tensor([1.0], data_name=name)]}})
    record = open_dump(str(tmp_path / "d")).parts[0, 0].read()
    with pytest.raises(UnusableDump, match="outside"):
        elements(
            record, record.rows[0].outputs[0]._replace(path=f"dump_tensor_data/{name}" if name[0] == "." else name)
        )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("npu", "bench", "expected"),
    [
        ([1, 2], [1, 2], {"cosine": 1, "max_absolute": 0, "relative_euclidean": 0, "one_thousandth": 1}),
        ([2, 4], [1, 2], {"cosine": 1, "max_absolute": 2, "relative_euclidean": 1, "accumulated_relative": 2}),
        ([0, 0], [0, 0], {"cosine": 1, "relative_euclidean": 0, "kullback_leibler": 0}),
        ([0, 3], [0, 4], {"mean_absolute": 0.5, "root_mean_square": math.sqrt(0.5), "mean_relative": 0.125}),
        ([5, 1], [0, 1], {"max_relative": 0, "max_absolute": 5, "one_thousandth": 0.5}),
        ([3.0, 5.0, 7.0], [1.0, 2.0, 3.0], {"kullback_leibler": 0}),
    ],
)
def test_metrics_are_those_of_msaccucmp(npu: list[float], bench: list[float], expected: dict[str, float]) -> None:
    import numpy as np

    from transplt.precision.metrics import measure

    found = measure(np.array(npu, dtype="f4"), np.array(bench, dtype="f4"))
    assert {name: pytest.approx(getattr(found, name), abs=1e-9) for name in expected} == expected


@pytest.mark.torch
def test_what_metrics_cannot_say_is_nan() -> None:
    import numpy as np

    from transplt.precision.metrics import measure

    assert math.isnan(measure(np.zeros(2), np.ones(2)).cosine)
    assert measure(np.array([np.nan, 1]), np.array([1.0, 1])).error
    assert measure(np.array([np.inf, 2]), np.array([np.inf, 1])).max_absolute == 1
    truth = measure(np.array([True, False]), np.array([True, True]))
    assert math.isnan(truth.max_absolute) and truth.cosine == pytest.approx(math.sqrt(0.5))


@pytest.mark.extra
def test_an_h5_file_is_read_and_its_links_are_not_followed(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for side, scale in (("npu", 1.5), ("bench", 1.0)):
        with h5py.File(tmp_path / f"{side}.h5", "w") as file:
            file.create_dataset("/Conv2d/0/input/x", data=[1.0, 2.0])
            file.create_dataset("/Conv2d/0/output/y", data=[3.0, 4.0])
            file.create_dataset("/Relu/1/output/y", data=[3.0 * scale, 4.0 * scale])
    arguments = [str(tmp_path / "npu.h5"), str(tmp_path / "bench.h5")]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert "Relu.1: its inputs agree and its output is scaled by 1.5" in result.output
    with h5py.File(tmp_path / "npu.h5", "a") as file:
        file["/Relu/1/output/z"] = h5py.ExternalLink("bench.h5", "/Conv2d/0/output/y")
    with pytest.raises(UnusableDump, match="is a link"):
        open_dump(str(tmp_path / "npu.h5")).parts[0, 0].read()


# --- files of weights ------------------------------------------------------------------------------------------------


def safetensors(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


SAFE = safetensors(
    {
        "__metadata__": {"format": "pt"},
        "fc.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
        "fc.bias": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 12]},
    },
    struct.pack("<2f", 1.5, -2.0) + struct.pack("<2H", 0x3F00, 0x4000),
)


def weights_shown(path: Path, name: str, *more: str) -> str:
    result = CliRunner().invoke(show, [str(path), name, *more], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_show_reads_weights_of_safetensors_and_npz(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    (tmp_path / "m.safetensors").write_bytes(SAFE)
    weights = {"fc.weight": np.array([[1.5], [-2.0]], "f4"), "fc.bias": np.array([0.5, 3.0], "f4")}
    np.savez(tmp_path / "m.npz", **weights)
    out = weights_shown(tmp_path / "m.safetensors", "fc.bias")
    assert "[max: 2.0][min: 0.5]" in out and "[1]: 2\n  [0]: 0.5\n" in out
    same = weights_shown(tmp_path / "m.npz", "fc.weight", "--bench", str(tmp_path / "m.safetensors"))
    assert "output.0: the same" in same
    other = weights_shown(tmp_path / "m.npz", "fc.bias", "--bench", str(tmp_path / "m.safetensors"))
    assert "output.0: the same" not in other and "MaxAbsError 1," in other
    with pytest.raises(UsageError, match=r"did you mean fc[.]weight"):
        weights_shown(tmp_path / "m.npz", "fc.wieght")


@pytest.mark.torch
@pytest.mark.parametrize("wrap", [dict, lambda weights: {"state_dict": weights, "epoch": 3}])
def test_show_reads_a_state_dict(wrap: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(wrap({"fc.bias": torch.tensor([0.5, 2.0], dtype=torch.bfloat16)}), tmp_path / "m.pth")
    assert "[max: 2.0][min: 0.5]" in weights_shown(tmp_path / "m.pth", "fc.bias")


@pytest.mark.parametrize(
    "data",
    [
        SAFE[:-2],
        SAFE[:20],
        b"",
        safetensors(b"[" * 100_000),
        safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        safetensors({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
        safetensors({"a": 1}),
    ],
)
def test_damaged_weights_are_said_to_be(data: bytes, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    (tmp_path / "m.safetensors").write_bytes(data)
    with pytest.raises(UsageError, match="is damaged"):
        weights_shown(tmp_path / "m.safetensors", "a")
