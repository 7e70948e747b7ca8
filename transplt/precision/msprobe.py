"""Dumps of msprobe, 1.0 to 26.2: step*/{rank,rankN,procPID}/{dump,stack,construct}.json.

Source: mindstudio-probe 1.0.1 to 26.2.0 (its `dump.json` as written on a CPU, and the readers in its `compare`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transplt.base.errors import shown
from transplt.precision.files import files, folders, read_json
from transplt.precision.optimizer_file import optimizer_rows, optimizer_stacks
from transplt.precision.record import Part, Record, Row, Tensor, UnusableDump, called

_STEP = re.compile(r"step(\d+)$")
#: `rank` and `proc4711` are a run of one process; ranks of several processes have their number.
_RANK = re.compile(r"(?:rank(\d*)|proc(\d+))$")
_INPUTS = ("input_args", "input_kwargs", "input")
_OUTPUTS = ("output", "output_args")
_BESIDE = {"input_args": "input", "input_kwargs": "kwargs", "output_args": "output"}
#: Entries of tensors have these; other things have a `value`, or the four figures of a number.
_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter", "mindspore.Tensor")
#: Where the elements of tensors are.
DATA = "dump_tensor_data"


def find(path: str) -> Mapping[tuple[int, int], Part] | None:
    """The parts of the dump at `path`: its own folder, that of a step, or that of a rank. None for something else."""
    if steps := steps_in(path):
        parts: dict[tuple[int, int], Part] = {}
        for step, folder in steps.items():
            parts |= {(step, rank): part for rank, part in _ranks(folder)}
        return parts or None
    match = _STEP.match(os.path.basename(os.path.abspath(path)))
    step = int(match[1]) if match else 0
    if _RANK.match(os.path.basename(os.path.abspath(path))) is None and (ranks := dict(_ranks(path))):
        return {(step, rank): part for rank, part in ranks.items()}
    if "dump.json" not in files(path):
        return None
    folder = os.path.abspath(path)
    above = _STEP.match(os.path.basename(os.path.dirname(folder)))
    here = _RANK.match(os.path.basename(folder))
    return {(int(above[1]) if above else 0, int((here and here[1]) or 0)): MsprobePart(path)}


def steps_in(path: str) -> dict[int, str]:
    """Step -> its folder, of those in a folder."""
    steps = {int(match[1]): name for name in folders(path) if (match := _STEP.match(name))}
    return {step: os.path.join(path, name) for step, name in sorted(steps.items())}


def _ranks(path: str) -> Iterator[tuple[int, Part]]:
    """(rank, part) of the folders of ranks in that of a step, or of this folder as the only one."""
    named = ranks_in(path, lambda folder: "dump.json" in files(folder))
    if not named and "dump.json" in files(path):
        yield 0, MsprobePart(path)
    for rank, folder in named.items():
        yield rank, MsprobePart(folder)


def ranks_in(path: str, holds: Callable[[str], bool]) -> dict[int, str]:
    """Rank -> its folder, of those in a folder that hold something; processes without a rank in the order of their ids.
    """
    named, processes = {}, []
    for name in folders(path):
        folder = os.path.join(path, name)
        if (match := _RANK.match(name)) and holds(folder):
            if match[2]:
                processes.append((int(match[2]), folder))
            else:
                named[int(match[1] or 0)] = folder
    if named and processes:
        raise UnusableDump(f"{shown(path)} has folders of ranks and of processes: two runs wrote to it")
    named |= {rank: folder for rank, (_, folder) in enumerate(sorted(processes))}
    return dict(sorted(named.items()))


@dataclass(frozen=True)
class MsprobePart(Part):
    folder: str

    @property
    def where(self) -> str:
        return self.folder

    def read(self) -> Record:
        path = os.path.join(self.folder, "dump.json")
        document = read_json(path)
        data = document.get("data") if isinstance(document, dict) else None
        if not isinstance(data, dict):
            raise UnusableDump(f"{shown(path)}: has no `data`, so it is not a dump of msprobe")
        try:
            rows = [_row(name, entry) for name, entry in data.items() if isinstance(entry, dict)]
            rows += optimizer_rows(self.folder, collect)
        except (RecursionError, TypeError, ValueError, OverflowError) as error:
            raise UnusableDump(f"{shown(path)}: an entry is not what msprobe writes ({error})") from error
        task, recorder = (value if isinstance(value := document.get(key), str) else "" for key in ("task", "recorder"))
        return Record(self.folder, rows, task, self._parents(), recorder)

    def _parents(self) -> Mapping[str, str]:
        data = self._object("construct.json")
        # Since 8.x a parent may come with more about it, in a list.
        firsts = {name: parent[0] if isinstance(parent, list) and parent else parent for name, parent in data.items()}
        return {name: parent for name, parent in firsts.items() if isinstance(parent, str)}

    def _object(self, name: str) -> dict[str, Any]:
        """What a file beside dump.json holds; nothing where the dump has none."""
        path = os.path.join(self.folder, name)
        data = read_json(path) if os.path.lexists(path) else {}
        if not isinstance(data, dict):
            raise UnusableDump(f"{shown(path)}: is no object")
        return data

    def stacks(self) -> Mapping[str, tuple[str, ...]]:
        found = optimizer_stacks(self.folder)
        for name, value in self._object("stack.json").items():
            if not isinstance(value, list):
                continue
            # {"0": [[names], [frames]]} since 1.2, {name: [frames]} before.
            if len(value) == 2 and all(isinstance(each, list) for each in value):
                frames = _texts(value[1])
                found |= {each: frames for each in value[0] if isinstance(each, str)}
            else:
                found[name] = _texts(value)
        return found


def _texts(values: list[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _row(name: str, entry: dict[str, Any]) -> Row:
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    parameters: list[Tensor] = []
    api, kind, phase, index = called(name)
    if kind == "gradient":
        for key, value in entry.items():
            collect(value, f"gradient.{key}", outputs)
        return Row(name, api, kind, phase, index, (), tuple(outputs))
    for key in _INPUTS:
        if value := entry.get(key):
            collect(value, _BESIDE.get(key, key), inputs)
    for key in _OUTPUTS:
        if value := entry.get(key):
            collect(value, _BESIDE.get(key, key), outputs)
    if value := entry.get("parameters"):
        collect(value, "parameters", parameters)
    return Row(name, api, kind, phase, index, tuple(inputs), tuple(outputs), tuple(parameters))


def collect(value: Any, name: str, found: list[Tensor]) -> None:
    """The tensors and numbers in a value, nested as the arguments were, into `found`."""
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str):
            found.append(_tensor(value, kind, name))
        else:
            for key, each in value.items():
                collect(each, f"{name}.{key}", found)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            collect(each, f"{name}.{number}", found)


def _tensor(value: dict[str, Any], kind: str, name: str) -> Tensor:
    get = value.get
    if kind in _TENSORS or "shape" in value:
        path, digest = get("data_name"), get("md5")
        dtype, shape = str(get("dtype", "")).rpartition(".")[2].lower(), tuple(map(int, get("shape") or ()))
        high, low, mean, norm = (number(get(figure)) for figure in ("Max", "Min", "Mean", "Norm"))
        elements = f"{DATA}/{path}" if isinstance(path, str) and path not in ("", "-1") else None
        checksum = digest if isinstance(digest, str) else None
        return Tensor(name, dtype, shape, high, low, mean, norm, elements, checksum, True, get("requires_grad"))
    # A number is recorded as its value, by older versions as figures that are all alike.
    figure = get("value", get("Max"))
    known = number(figure)
    return Tensor(name, kind, (), known, known, known, None, None, None if known is not None else str(figure), False)


def number(value: Any) -> float | None:
    """A figure of a dump: nan and infinities come as such or as their names, truth as 0 or 1; None for no number."""
    if type(value) is float:
        return value
    if isinstance(value, (int, bool)):
        return float(value)
    if isinstance(value, str) and value.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(value)
    return None
