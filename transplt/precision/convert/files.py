"""One file as others: a device's dump, .h5 and .pt as .npy, .npy as text."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from typing import Any

from transplt.base.errors import UsageError, reason, shown
from transplt.base.extras import install_command
from transplt.base.text.regular_file import open_regular
from transplt.precision.convert.device_dump import device_file, device_tensors, is_device_dump
from transplt.precision.convert.layout import Layout, in_layout
from transplt.precision.elements import ELEMENTS, Array, numpy_or_sentence, read_array
from transplt.precision.record import UnusableDump

#: So many tensors of one .h5 file are read.
_MOST_TENSORS = 100_000
_H5 = b"\x89HDF\r\n\x1a\n"


def arrays_in(path: str, wanted: Layout | None = None) -> Iterator[tuple[str, str, Array]]:
    """(name for a file, what it is, elements) of the tensors in a file; those of a device in the layout that is wanted.
    UnusableDump with its name."""
    name = os.path.basename(path)
    try:
        with open_regular(path) as file:
            head = file.read(8)
        if head == _H5:
            yield from _h5(path)
        elif head.startswith((b"\x93NUMPY", b"PK")):
            array = read_array(path)
            yield name.rpartition(".")[0] or name, _description(array), array
        elif is_device_dump(path):
            for tensor, array in device_tensors(path):
                layout = "" if tensor.format in ("ND", "NCHW") else f", {tensor.format}"
                if wanted is not None:
                    array, layout = in_layout(array, tensor.format, wanted), f", {wanted.format} of {tensor.format}"
                description = f"{tensor.dtype} {[*array.shape]}{layout}{_of(name)}"
                yield f"{name}.{tensor.side}.{tensor.index}", description, array
        else:
            raise UnusableDump(f"{shown(path)} is not a dump of a device, .h5, .npy or .pt file")
    except OSError as error:
        raise UnusableDump(f"cannot read {shown(path)}: {reason(error)}") from error


def as_npy(array: Array) -> bytes:
    """The bytes of a .npy file."""
    np = numpy_or_sentence()
    held = io.BytesIO()
    np.save(held, np.ascontiguousarray(array), allow_pickle=False)
    return held.getvalue()


def as_text(array: Array) -> bytes:
    """One element a line, as `numpy.savetxt` writes the flattened array; shape and type are lost."""
    np = numpy_or_sentence()
    held = io.BytesIO()
    np.savetxt(held, np.ravel(array), fmt="%d" if array.dtype.kind in "iub" else "%.18e")
    return held.getvalue()


def _of(name: str) -> str:
    """Whose tensor it is, by the name of a device's file; empty for other names."""
    file = device_file(name)
    return f", of {file.op_type} {file.op_name} (task {file.task})" if file else ""


def _description(array: Array) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _h5(path: str) -> Iterator[tuple[str, str, Array]]:
    """The data sets of a .h5 file, as PyTorch's dump for msaccucmp has them: /operator/number/input/name."""
    try:
        import h5py
    except ImportError as error:
        raise UsageError(f"reading .h5 needs h5py: {install_command('h5')}") from error
    names: list[str] = []

    def seen(name: str, value: Any) -> bool | None:
        # Nothing outside the file is followed: external links and storage are no data of this file.
        if isinstance(value, h5py.Dataset) and value.external is None and not value.is_virtual:
            names.append(name)
        return True if len(names) >= _MOST_TENSORS else None

    try:
        with h5py.File(path, "r") as file:
            file.visititems(seen)
            for name in names:
                data = file[name]
                if data.dtype.kind not in "fiubc" or data.nbytes > ELEMENTS.size:
                    continue
                array = data[()]
                yield re.sub(r"[^\w.-]+", ".", name).strip("."), _description(numpy_or_sentence().asarray(array)), array
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise UnusableDump(f"{shown(path)}: h5py cannot read it ({error})") from error
