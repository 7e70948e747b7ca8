"""The elements of a tensor of a dump, as a numpy array: .npy and .pt, without running anything that they hold.

A .pt file is a zip of a pickle that holds type, shape and strides, and of the bytes of the elements
(torch.serialization, "zipfile-based format"). The pickle is not unpickled: its few instructions are looked at one by
one, and where there is any that a plain tensor does not need, the file is left to `torch.load(weights_only=True)`, if
torch is installed.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pickletools
import zipfile
from collections.abc import Iterator
from typing import Any

from transplt.base.errors import UsageError, reason, shown
from transplt.base.extras import install_command
from transplt.base.text.regular_file import Limit, open_regular
from transplt.precision.files import inside
from transplt.precision.record import Record, Tensor, UnusableDump

#: A numpy.ndarray: numpy is there only with the extra.
Array = Any

ELEMENTS = Limit("tensors are read", 4096 * 1024 * 1024)
_MOST = 1 << 31  #: elements of one tensor, those that are repeated by strides counted
_STORAGES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1",
    "BoolStorage": "?", "ComplexFloatStorage": "<c8", "ComplexDoubleStorage": "<c16",
}  # fmt: skip
#: What the pickle of a tensor may name.
_REBUILD, _PARAMETER = "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"
_ORDERED = "collections OrderedDict"


def numpy_or_sentence() -> Any:
    """The module numpy. UsageError where it is not installed."""
    try:
        import numpy
    except ImportError as error:
        raise UsageError(f"elements of tensors need numpy: {install_command('precision')}") from error
    return numpy


def elements(record: Record, tensor: Tensor) -> Array | None:
    """The elements in the shape in which they were recorded; bfloat16 as float32. None where the dump has none.

    UnusableDump, which names the file, where it is damaged or not as its record describes it.
    """
    if tensor.path is None:
        return None
    if record.folder.endswith((".h5", ".hdf5")):
        return next((array for name, array in read_h5(record.folder, tensor.path)), None)
    if record.folder.endswith(WEIGHTS):
        return next((array for name, array in read_weights(record.folder, tensor.path)), None)
    if os.path.isabs(tensor.path):
        raise UnusableDump(f"{shown(record.folder)} names the file {shown(tensor.path)}, which lies outside it")
    path = inside(record.folder, tensor.path)
    return read_array(path) if os.path.lexists(path) else None


@contextlib.contextmanager
def _opened(path: str) -> Iterator[tuple[Any, int]]:
    """A file of numbers and its size. UnusableDump for one that is too large, and for what goes wrong in reading it."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > ELEMENTS.size:
                raise UnusableDump(f"{shown(path)}: {ELEMENTS}")
            yield file, size
    except OSError as error:
        raise UnusableDump(f"cannot read {shown(path)}: {reason(error)}") from error
    except UnusableDump:
        raise
    except Exception as error:  # what numpy, tokenize, zipfile and zlib raise of bytes that mean harm has no end
        raise UnusableDump(f"{shown(path)}: is damaged or truncated ({shown(str(error))})") from error


def read_array(path: str) -> Array:
    """The array in a .npy or .pt file. UnusableDump as `elements`."""
    np = numpy_or_sentence()
    with _opened(path) as (file, size):
        start = file.read(8)
        file.seek(0)
        if start.startswith(b"\x93NUMPY"):
            return _npy(np, file, size)
        found = _pt(np, file, path) if start.startswith(b"PK") else None
        if found is not None:
            return found
        value = _loaded(path)
        if not hasattr(value, "detach"):
            raise UnusableDump(f"{shown(path)}: holds no tensor")
        return _as_array(value)


def _npy(np: Any, file: Any, size: int) -> Array:
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    if dtype.hasobject:
        raise ValueError("it contains Python objects, which are never read")
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError("it is shorter than its header says")
    file.seek(0)
    array: Array = np.load(file, allow_pickle=False)
    return array


def _pt(np: Any, file: Any, path: str) -> Array | None:
    """None for a .pt file of something that is no plain tensor."""
    with zipfile.ZipFile(file) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        record = next((name for name in sizes if name.endswith("/data.pkl")), None)
        if record is None or sizes[record] > 1 << 16:
            return None
        if (description := _description_of(archive.read(record))) is None:
            return None
        storage, key, offset, shape, strides = description
        name = f"{record.removesuffix('data.pkl')}data/{key}"
        bfloat = storage == "bfloat16"
        dtype = np.dtype("<u2" if bfloat else storage)
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        empty = 0 in shape
        held = sizes[name] // dtype.itemsize
        if min((offset, *shape, *strides)) < 0 or math.prod(shape) > _MOST or (not empty and last >= held):
            raise ValueError("its shape goes beyond its elements")
        if sizes[name] > ELEMENTS.size:
            raise ValueError(str(ELEMENTS))
        if empty:
            return np.zeros(shape, dtype=np.float32 if bfloat else dtype)
        flat = np.frombuffer(archive.read(name), dtype=dtype)[offset:]
    if bfloat:
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    steps = tuple(stride * flat.itemsize for stride in strides)
    view: Array = np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)
    return view


_Description = tuple[str, str, int, tuple[int, ...], tuple[int, ...]]


def _description_of(data: bytes) -> _Description | None:
    """(type, name of the storage, offset, shape, strides) of the one tensor in a pickle; None for anything else."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name in ("PROTO", "FRAME"):
            continue
        if name == "STOP":
            break
        if name in ("GLOBAL", "BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"):
            stack.append(("global", argument) if name == "GLOBAL" else argument)
        elif name in ("NEWTRUE", "NEWFALSE", "NONE"):
            stack.append({"NEWTRUE": True, "NEWFALSE": False, "NONE": None}[name])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("EMPTY_TUPLE", "EMPTY_DICT"):
            stack.append(())
        elif name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
            start = marks.pop() if name == "TUPLE" else len(stack) - int(name[-1])
            stack[start:] = [tuple(stack[start:])]
        elif name == "BINPERSID":
            stack[-1] = ("storage", stack[-1])
        elif name == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            if (made := _made(called, arguments)) is None:
                return None
            stack.append(made)
        else:
            return None
    top = stack[-1] if len(stack) == 1 else None
    return top[1] if isinstance(top, tuple) and len(top) == 2 and top[0] == "tensor" else None


def _made(called: Any, arguments: Any) -> Any:
    """What a call in the pickle of a tensor stands for; None for a call that it does not need."""
    if called == ("global", _ORDERED):
        return ()
    if called == ("global", _PARAMETER):
        return arguments[0]
    if called != ("global", _REBUILD):
        return None
    (_, (_, (_, kind), key, *_)), offset, shape, strides, *_ = arguments
    storage = _STORAGES.get(str(kind).removeprefix("torch "))
    if storage is None or len(shape) != len(strides) or not all(type(n) is int for n in (offset, *shape, *strides)):
        return None
    return ("tensor", (storage, str(key), offset, shape, strides))


def _loaded(path: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise UnusableDump(f"{shown(path)}: to read this form of .pt, install torch") from error
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of the many kinds that torch raises none is ours
        why = f"torch reads no tensors from it ({type(error).__name__}); of a whole model, save the state_dict()"
        raise UnusableDump(f"{shown(path)}: {why}") from error


def _as_array(value: Any) -> Array:
    """A tensor of torch as numpy has it; what numpy has not, such as bfloat16, as float32."""
    value = value.detach()
    array: Array = (value.float() if value.dtype.is_floating_point and value.dtype.itemsize < 4 else value).numpy()
    return array


def read_h5(path: str, only: str | None = None) -> Iterator[tuple[str, Array]]:
    """(name, array) of every dataset in an .h5 file, or of the one that is called `only`.

    Links, and data outside the file, are refused.

    UnusableDump as `read_array`; UsageError where h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise UsageError(f".h5 files need h5py: {install_command('h5')}") from error
    try:
        with open_regular(path) as file, h5py.File(file, "r") as opened:
            waiting = [("", opened)]
            while waiting:
                above, group = waiting.pop()
                for name in sorted(group, reverse=True):
                    where = f"{above}/{name}"
                    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                        raise UnusableDump(f"{shown(path)}: {shown(where)} is a link, and links are not followed")
                    if where.count("/") > 8:
                        raise UnusableDump(f"{shown(path)}: {shown(where)} is nested too deep")
                    value = group[name]
                    if isinstance(value, h5py.Group):
                        waiting.append((where, value))
                    elif value.external or value.is_virtual or value.nbytes > ELEMENTS.size or value.dtype.hasobject:
                        raise UnusableDump(f"{shown(path)}: {shown(where)} has data outside the file, or too much")
                    elif only in (None, where):
                        yield where, value[()]
    except OSError as error:
        raise UnusableDump(f"{shown(path)}: is not an .h5 file, or is truncated ({reason(error)})") from error
    except (ValueError, KeyError, RuntimeError, TypeError) as error:
        raise UnusableDump(f"{shown(path)}: is damaged ({error})") from error


#: Types of safetensors, as numpy calls them; bfloat16 is widened. Source: safetensors, its README ("Format").
_SAFE = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?",
}  # fmt: skip
#: What holds a model's weights by their names.
WEIGHTS = (".safetensors", ".npz", ".pt", ".pth", ".bin", ".ckpt")


def read_weights(path: str, only: str | None = None) -> Iterator[tuple[str, Array]]:
    """(name, array) of every weight in a file, or of the one that is called `only`. UnusableDump as `read_array`."""
    np = numpy_or_sentence()
    with _opened(path) as (file, _):
        if path.endswith(".safetensors"):
            yield from _safetensors(np, file.read(), only)
        elif path.endswith(".npz"):
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist():
                    name = info.filename.removesuffix(".npy")
                    if info.file_size > ELEMENTS.size:
                        raise ValueError(str(ELEMENTS))
                    if only in (None, name):
                        yield name, _npy(np, io.BytesIO(archive.read(info)), info.file_size)
        else:
            yield from _state_dict(path, only)


def _safetensors(np: Any, data: bytes, only: str | None) -> Iterator[tuple[str, Array]]:
    start = 8 + int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__" and only in (None, name):
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(data[start + begin : start + end], dtype=_SAFE[entry["dtype"]])
            if entry["dtype"] == "BF16":
                flat = (flat.astype(np.uint32) << 16).view(np.float32)
            yield name, flat.reshape(entry["shape"])


def _state_dict(path: str, only: str | None) -> Iterator[tuple[str, Array]]:
    value = _loaded(path)
    for key in ("state_dict", "model", "module"):
        if isinstance(value, dict) and isinstance(value.get(key), dict):
            value = value[key]
    for name, tensor in value.items() if isinstance(value, dict) else (("tensor", value),):
        if hasattr(tensor, "detach") and only in (None, name):
            yield str(name), _as_array(tensor)
