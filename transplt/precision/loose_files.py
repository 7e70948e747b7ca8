"""Elements without a record: folders of .npy files, .h5 files in the layout of msaccucmp, and files of weights.

The order in which they ran comes from numbers or times in the names of the files, else from the times of the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transplt.base.errors import UsageError, shown
from transplt.precision.elements import WEIGHTS, read_array, read_h5, read_weights
from transplt.precision.files import files, folders
from transplt.precision.msprobe import DATA, ranks_in, steps_in
from transplt.precision.ptdbg import PLACE, rows_of
from transplt.precision.record import API, FORWARD, Part, Record, Row, Tensor, UnusableDump

#: `Pooling.pool1.1147.1589195081588018.output.0.npy`: type, name, task, microseconds. Source: CANN, files of a dump.
_DEVICE = re.compile(r"(?P<type>\w+)\.(?P<row>.+?)\.\d+\.(?P<time>\d{10,})\.(?P<role>input|output)\.(?P<place>\d+)$")
#: `pool1.0.1589195081588018.npy`, what the bench of another framework has.
_BENCH = re.compile(r"(?P<row>.+)\.(?P<place>\d+)\.(?P<time>\d{10,})$")
_NUMBER = re.compile(r"(\d+)_")


def find(path: str) -> Mapping[tuple[int, int], Part] | None:
    """The .npy files of a folder, or of the folders of its steps and ranks; the one file where `path` is .h5."""
    if os.path.isfile(path):
        if path.endswith(WEIGHTS):
            return {(0, 0): WeightsPart(path)}
        return {(0, 0): H5Part(path)} if path.endswith((".h5", ".hdf5")) else None
    steps = steps_in(path) or {0: path}
    return {(step, rank): part for step, folder in steps.items() for rank, part in _ranks(folder).items()} or None


def _ranks(path: str) -> dict[int, NpyPart]:
    """Rank -> its files, of a folder that has them itself, or has folders of ranks."""
    if own := _with_npy(path):
        return {0: NpyPart(own)}
    return {rank: NpyPart(_with_npy(each)) for rank, each in ranks_in(path, lambda each: bool(_with_npy(each))).items()}


def _with_npy(path: str) -> str:
    """The folder of .npy files: the one that is given, or that in it where msprobe has its tensors; else empty."""
    inner = [os.path.join(path, DATA)] if DATA in folders(path) else []
    return next((each for each in (path, *inner) if any(name.endswith(".npy") for name in files(each))), "")


@dataclass(frozen=True)
class NpyPart(Part):
    folder: str

    @property
    def where(self) -> str:
        return self.folder

    def read(self) -> Record:
        named = [name for name in files(self.folder) if name.endswith(".npy")]
        found = sorted((_order(self.folder, name), name) for name in named)
        device: dict[str, tuple[list[Tensor], list[Tensor]]] = {}
        others: list[tuple[re.Match[str], Tensor]] = []
        for _, name in found:
            stem = name.removesuffix(".npy")
            tensor = _figures(read_array(os.path.join(self.folder, name)), name)
            if match := _DEVICE.match(stem) or _BENCH.match(stem):
                role = match.groupdict().get("role", "output")
                inputs, outputs = device.setdefault(match["row"], ([], []))
                (inputs if role == "input" else outputs).append(tensor._replace(name=f"{role}.{match['place']}"))
            elif match := PLACE.match(stem):
                others.append((match, tensor))
            else:
                device.setdefault(stem, ([], []))[1].append(tensor._replace(name="output.0"))
        return Record(self.folder, [*_rows(device), *rows_of(others)], "tensor")


@dataclass(frozen=True)
class H5Part(Part):
    file: str

    @property
    def where(self) -> str:
        return self.file

    def read(self) -> Record:
        """Of `/{operator}/{number}/{input|output}/{name}`."""
        found: dict[str, tuple[list[Tensor], list[Tensor]]] = {}
        order: dict[str, int] = {}
        for name, array in read_h5(self.file):
            parts = name.strip("/").split("/")
            if len(parts) != 4 or parts[2] not in ("input", "output"):
                raise UnusableDump(f"{shown(self.file)}: {shown(name)} is not where msaccucmp has its tensors")
            row = f"{parts[0]}.{parts[1]}"
            order[row] = int(parts[1]) if parts[1].isdecimal() else 0
            inputs, outputs = found.setdefault(row, ([], []))
            kept = inputs if parts[2] == "input" else outputs
            kept.append(_figures(array, name)._replace(name=f"{parts[2]}.{len(kept)}"))
        rows = _rows({row: found[row] for row in sorted(found, key=lambda row: order[row])})
        return Record(self.file, [*rows], "tensor")


@dataclass(frozen=True)
class WeightsPart(H5Part):
    """A file of weights: each is the output of a row that has its name."""

    def read(self) -> Record:
        found = [(name, _figures(array, name)._replace(name="output.0")) for name, array in read_weights(self.file)]
        return Record(self.file, [Row(name, name, API, FORWARD, 0, (), (each,)) for name, each in found], "tensor")


def _rows(found: Mapping[str, tuple[list[Tensor], list[Tensor]]]) -> Iterator[Row]:
    for name, (inputs, outputs) in found.items():
        api, _, number = name.rpartition(".")
        index = int(number) if api and number.isdecimal() else 0
        yield Row(name, api if number.isdecimal() and api else name, API, FORWARD, index, tuple(inputs), tuple(outputs))


def _order(folder: str, name: str) -> tuple[int, int, str]:
    """By the time in the name, the number in front of it, or the time of the file."""
    stem = name.removesuffix(".npy")
    if match := _DEVICE.match(stem) or _BENCH.match(stem):
        return (0, int(match["time"]), name)
    if match := _NUMBER.match(stem):
        return (1, int(match[1]), "")
    try:
        return (2, os.stat(os.path.join(folder, name)).st_mtime_ns, name)
    except OSError as error:
        raise UsageError(f"cannot read {shown(os.path.join(folder, name))}") from error


def _figures(array: Any, path: str) -> Tensor:
    name, shape = array.dtype.name, tuple(int(each) for each in array.shape)
    if not array.size or array.dtype.kind not in "fiub":
        return Tensor("", name, shape, None, None, None, None, path, None, True)
    values = array.reshape(-1)
    high, low = float(values.max()), float(values.min())
    mean = float(values.mean(dtype="f8"))
    norm = float((values.astype("f8") ** 2).sum() ** 0.5)
    return Tensor("", name, shape, high, low, mean, norm, path, None, True)
