"""Dumps of devices, .h5 and .npy as other files; the configuration of an ACL dump."""

from __future__ import annotations

import json
import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.errors import UsageError
from transplt.faces.cli.convert import convert
from transplt.precision.compare import compare
from transplt.precision.convert.device_dump import device_file, device_tensors
from transplt.precision.convert.layout import Layout, in_layout
from transplt.precision.dumps import open_dump
from transplt.precision.record import UnusableDump

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.extra

#: The twelve types that the comparison guide lists, with their numbers in a dump.
TWELVE = {"float32": 1, "float16": 2, "int8": 3, "uint8": 4, "int16": 5, "uint16": 6, "int32": 7, "int64": 8,
          "uint32": 9, "uint64": 10, "bool": 11, "float64": 12}  # fmt: skip
NAME = "Pooling.pool1.1147.1589195081588018"


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return found + bytes((value,))


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(kind: int, shape: tuple[int, ...], size: int, *, output: bool, packed: bool = True) -> bytes:
    dims = b"".join(map(varint, shape))
    told = field(1, dims) if packed else b"".join(field(1, dim) for dim in shape)
    between = field(4, field(1, b"conv")) if output else b""
    return field(1, kind) + field(2, 2) + field(3, told) + between + field(6 if output else 5, size)


def dump(inputs: list[tuple[int, tuple[int, ...], bytes]], outputs: list[tuple[int, tuple[int, ...], bytes]]) -> bytes:
    """A device's dump: the header has outputs first, the elements come inputs first."""
    header = field(1, b"2.0") + field(2, 1589195081588018)
    header += b"".join(field(3, tensor(kind, shape, len(data), output=True)) for kind, shape, data in outputs)
    header += b"".join(field(4, tensor(k, s, len(d), output=False, packed=False)) for k, s, d in inputs)
    return struct.pack("<Q", len(header)) + header + b"".join(data for _, _, data in (*inputs, *outputs))


@pytest.mark.parametrize("dtype", TWELVE)
def test_the_twelve_types(dtype: str, tmp_path: Path) -> None:
    array = np.arange(300).reshape(2, 150).astype(dtype)
    (tmp_path / NAME).write_bytes(dump([(7, (1,), struct.pack("<i", 9))], [(TWELVE[dtype], (2, 150), array.tobytes())]))
    (first, one), (second, other) = device_tensors(str(tmp_path / NAME))
    assert (first.side, second.side, second.dtype, second.format) == ("input", "output", dtype, "ND")
    assert one.tolist() == [9] and other.dtype == dtype and (other == array).all()


def test_bfloat16(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(dump([], [(27, (2,), b"\x80\x3f\x20\xc0")]))
    [(_, array)] = device_tensors(str(tmp_path / NAME))
    assert array.tolist() == [1.0, -2.5]


def call(*arguments: str) -> str:
    result = CliRunner().invoke(convert, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == 0
    return result.output


def test_the_names_of_the_guide(tmp_path: Path) -> None:
    """dump_file -> Pooling.pool1.1147.1589195081588018.output.0.npy -> .txt, as the comparison guide does it."""
    (tmp_path / NAME).write_bytes(dump([], [(1, (2, 2), np.array([1, 2, 3, 4.5], "<f4").tobytes())]))
    out = call(str(tmp_path / NAME), "-o", str(tmp_path / "o"))
    assert f"{NAME}.output.0.npy  float32 [2, 2], of Pooling pool1 (task 1147)" in out
    assert np.load(tmp_path / "o" / f"{NAME}.output.0.npy").tolist() == [[1, 2], [3, 4.5]]
    call(str(tmp_path / "o"), "-o", str(tmp_path / "t"))
    text = (tmp_path / "t" / f"{NAME}.output.0.txt").read_text()
    assert np.loadtxt(tmp_path / "t" / f"{NAME}.output.0.txt").tolist() == [1, 2, 3, 4.5] and len(text.split()) == 4


DEVICE = "20240101120000/0/model/1/0"
TENSORS = "dump_tensor_data"


@pytest.mark.parametrize(
    ("folders", "parts"),
    [
        ([DEVICE], 1),
        ([f"npu/{DEVICE}"], 1),
        ([f"step0/rank/{TENSORS}"], 1),
        ([f"step0/proc4711/{TENSORS}"], 1),
        ([f"step0/rank0/{TENSORS}", f"step0/rank1/{TENSORS}", f"step1/rank0/{TENSORS}"], 3),
    ],
)
def test_the_folder_of_a_conversion_is_compared(folders: list[str], parts: int, tmp_path: Path) -> None:
    for side in ("npu", "bench"):
        for folder in (tmp_path / side / each for each in folders):
            folder.mkdir(parents=True)
            value = 1.5 if side == "npu" else 1.0
            (folder / NAME).write_bytes(dump([], [(1, (4,), np.full(4, value, "<f4").tobytes())]))
        call(str(tmp_path / side), "-o", str(tmp_path / f"{side}_npy"))
    npu, bench = (open_dump(str(tmp_path / f"{side}_npy")) for side in ("npu", "bench"))
    assert len(npu.parts) == len(bench.parts) == parts
    found = compare(npu, bench)
    assert not found.same and found.first is not None


def test_what_ran_first_is_first_in_a_conversion(tmp_path: Path) -> None:
    """Names of tensors of msprobe have no times: those of the files tell."""
    for at, name in enumerate(("Torch.relu.0.forward.output.0", "Torch.add.0.forward.output.0")):
        np.save(tmp_path / f"{name}.npy", np.ones(2))
        os.utime(tmp_path / f"{name}.npy", ns=(at, at))
    call(str(tmp_path), "-o", str(tmp_path / "o"), "--to", "npy")
    record = open_dump(str(tmp_path / "o")).parts[0, 0].read()
    assert [row.name for row in record.rows] == ["Torch.relu.0.forward", "Torch.add.0.forward"]


@pytest.mark.parametrize(
    ("folders", "says"),
    [
        ([f"step0/rank0/{TENSORS}"], "has folders of steps, and no dump.json and no .npy files in any of them"),
        ([DEVICE], "is not a dump"),
        (["a/b"], "is not a dump"),
    ],
)
def test_a_folder_of_text_is_no_dump(folders: list[str], says: str, tmp_path: Path) -> None:
    for folder in (tmp_path / each for each in folders):
        folder.mkdir(parents=True)
        (folder / f"{NAME}.output.0.txt").write_text("1.0")
    with pytest.raises(UnusableDump, match=says):
        open_dump(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (NAME, ("Pooling", "pool1", "1147", "", "1589195081588018", "", "")),
        (f"{NAME}.output.0.npy", ("Pooling", "pool1", "1147", "", "1589195081588018", "output", "0")),
        ("Add.partition0_rank1_Add.0.3.1673383728093446.4.1.0.0",
         ("Add", "partition0_rank1_Add", "0", "3", "1673383728093446", "", "")),
        ("model.onnx", None),
        ("Functional.conv2d.0.forward.input.0.npy", None),
    ],
)  # fmt: skip
def test_names_of_device_files(name: str, expected: tuple[str, ...] | None) -> None:
    assert device_file(name) == expected


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a dump of a device"),
        (b"\xff" * 64, "not a dump of a device"),
        (dump([], [(1, (2, 2), b"\0" * 16)])[:-1], "shorter than its header says"),
        (dump([], [(1, (3, 2), b"\0" * 16)]), r"output 0 has 16 bytes, which are not float32 of the shape \[3, 2\]"),
        (dump([], [(13, (1,), b"x")]), "output 0 has the type 13, which is not read"),
        (dump([], []), "names no tensor"),
    ],
)
def test_what_is_no_dump(data: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UnusableDump, match=says):
        call(str(tmp_path / "x"), "-o", str(tmp_path / "o"))
    assert not (tmp_path / "o").exists()


def test_damaged_dumps(tmp_path: Path) -> None:
    """Any byte of the header may be another one: it is read as something that fits, or refused."""
    good = dump([(7, (1,), b"\0" * 4)], [(1, (2, 2), b"\0" * 16)])
    chance = random.Random(2)
    for _ in range(300):
        data = bytearray(good)
        data[chance.randrange(len(data) - 20)] = chance.randrange(256)
        (tmp_path / "x").write_bytes(data)
        try:
            assert sum(array.nbytes for _, array in device_tensors(str(tmp_path / "x"))) <= 24
        except UnusableDump as error:
            assert "is not a dump of a device" in str(error)


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(2))
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists; --force replaces it"):
        call(str(tmp_path / "a.npy"), "-o", str(tmp_path))
    assert (tmp_path / "a.txt").read_text() == "mine"
    call(str(tmp_path / "a.npy"), "-o", str(tmp_path), "--force")
    assert (tmp_path / "a.txt").read_text().split() == ["1.000000000000000000e+00"] * 2


def test_acl_json(tmp_path: Path) -> None:
    path = str(tmp_path / "acl.json")
    call("--acl", path, "--dump-path", "/home/me/dump", "--model", "resnet50", "--layer", "conv1", "--layer", "pool1",
         "--mode", "all")  # fmt: skip
    listed = [{"model_name": "resnet50", "layer": ["conv1", "pool1"]}]
    expected = {"dump_list": listed, "dump_path": "/home/me/dump", "dump_mode": "all", "dump_op_switch": "off"}
    assert json.loads(Path(path).read_text()) == {"dump": expected}
    call("--acl", path, "--dump-path", "out", "--operators", "--force")
    dumped = json.loads(Path(path).read_text())["dump"]
    assert (dumped["dump_list"], dumped["dump_op_switch"]) == ([], "on")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give FILEs to convert"),
        (("nowhere", "-o", "x"), "nowhere does not exist"),
        (("--acl", "a.json"), "--acl needs --dump-path"),
        (("--acl", "a.json", "--dump-path", "d"), "is of a --model"),
        (("--acl", "a.json", "--dump-path", "d", "--operators", "--layer", "x"), "no --model and no --layer"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call(*arguments)


@pytest.mark.extra
def test_h5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["/Conv2d/1/input/x"] = np.ones((2, 3), "f4")
        file["/Conv2d/1/output/0"] = np.zeros(2, "i8")
        file["/Conv2d/outside"] = h5py.ExternalLink("b.h5", "/x")
    out = call(str(tmp_path / "a.h5"), "-o", str(tmp_path / "o"))
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["Conv2d.1.input.x.npy", "Conv2d.1.output.0.npy"]
    assert "float32 [2, 3]" in out


# --- folders, and the order of dimensions -----------------------------------------------------------------------------


def blocks(array: Any, c0: int = 16) -> Any:
    """NCHW as NC1HWC0."""
    n, c, h, w = array.shape
    c1 = -(-c // c0)
    padded = np.zeros((n, c1 * c0, h, w), array.dtype)
    padded[:, :c] = array
    return padded.reshape(n, c1, c0, h, w).transpose(0, 1, 3, 4, 2)


PICTURE = np.arange(2 * 20 * 3 * 4, dtype=np.float32).reshape(2, 20, 3, 4)


@pytest.mark.parametrize(
    ("array", "form", "wanted", "shape", "expected"),
    [
        (blocks(PICTURE), "NC1HWC0", "NCHW", (2, 20, 3, 4), PICTURE),
        (blocks(PICTURE), "NC1HWC0", "NHWC", (2, 3, 4, 20), PICTURE.transpose(0, 2, 3, 1)),
        (blocks(PICTURE), "NC1HWC0", "NCHW", (), np.pad(PICTURE, ((0, 0), (0, 12), (0, 0), (0, 0)))),
        (PICTURE.transpose(0, 2, 3, 1), "NHWC", "NCHW", (), PICTURE),
        (PICTURE, "NCHW", "NHWC", (), PICTURE.transpose(0, 2, 3, 1)),
        (PICTURE.transpose(2, 3, 1, 0), "HWCN", "NCHW", (), PICTURE),
        # FRACTAL_NZ: a matrix of 3 x 20 in blocks of 16 x 16.
        (np.pad(PICTURE[0, 0].repeat(5, 1)[:3], ((0, 13), (0, 12))).reshape(1, 16, 2, 16).transpose(2, 0, 1, 3),
         "FRACTAL_NZ", "ND", (3, 20), PICTURE[0, 0].repeat(5, 1)),
        # FRACTAL_Z: weights of 5 x 20 x 3 x 4.
        (blocks(np.pad(PICTURE[:1].repeat(5, 0), ((0, 11), (0, 0), (0, 0), (0, 0))))
         .transpose(1, 2, 3, 0, 4).reshape(2 * 3 * 4, 1, 16, 16), "FRACTAL_Z", "NCHW", (5, 20, 3, 4),
         PICTURE[:1].repeat(5, 0)),
    ],
)  # fmt: skip
def test_orders_of_dimensions(array: Any, form: str, wanted: str, shape: tuple[int, ...], expected: Any) -> None:
    made = in_layout(array, form, Layout(wanted, shape))
    assert made.shape == expected.shape and (made == expected).all()


@pytest.mark.parametrize(
    ("form", "wanted", "shape", "says"),
    [
        ("ND", "NCHW", (), "is not written as NCHW"),
        ("FRACTAL_Z", "NCHW", (), "needs its shape"),
        ("NC1HWC0", "NCHW", (2, 99, 3, 4), "does not lie in"),
    ],
)
def test_orders_that_cannot_be(form: str, wanted: str, shape: tuple[int, ...], says: str) -> None:
    array = {"ND": np.zeros((3, 4)), "FRACTAL_Z": np.zeros((24, 1, 16, 16)), "NC1HWC0": blocks(PICTURE)}[form]
    with pytest.raises(UsageError, match=says):
        in_layout(array, form, Layout(wanted, shape))


def test_folders_are_walked(tmp_path: Path) -> None:
    for name in ("a/step0", "a/step1"):
        (tmp_path / name).mkdir(parents=True)
        np.save(tmp_path / name / "x.npy", np.ones(2))
        (tmp_path / name / "dump.json").write_text("{}")
    result = CliRunner().invoke(convert, [str(tmp_path / "a"), "-o", str(tmp_path / "out")], standalone_mode=False)
    assert result.exception is None
    found = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.txt"))
    assert found == ["step0/x.txt", "step1/x.txt"]


def test_a_shape_goes_with_a_format(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    arguments = [str(tmp_path / "x"), "-o", str(tmp_path), "--shape", "1,2"]
    with pytest.raises(UsageError, match="needs --tensor-format"):
        CliRunner().invoke(convert, arguments, standalone_mode=False, catch_exceptions=False)
