"""Dumps of ptdbg_ascend (2023): `{tag}_v{version}/rank{N}/NAME.pkl` and, beside it, `NAME/*.npy`.

The .pkl is no pickle: it is UTF-8 text of one JSON value a line, and read as that and nothing else. A line of a tensor
is `[name, step, [], dtype, shape, [max, min, mean]]`, one of a stack is `[name_stack_info, [[file, line, function,
code], ...]]`.
Source: ptdbg_ascend of 2023 (github:Ascend/tools, commit 9d6da90).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transplt.base.errors import shown
from transplt.precision.files import files, folders, json_lines
from transplt.precision.msprobe import collect, number
from transplt.precision.optimizer_file import optimizer_rows, optimizer_stacks
from transplt.precision.record import Part, Record, Row, Tensor, UnusableDump, called

_RANK = re.compile(r"rank(\d+)$")
#: `Functional_conv2d_0_forward_input.0`, `Functional.conv2d.0.forward.output`, `67_VF_lstm_backward_input.1`.
PLACE = re.compile(r"(?P<row>.+?)[._](?P<role>input|output)(?:[._](?P<place>[\d.]+))?$")
_STACK = re.compile(r"(?P<row>.+?)[._]stack_info$")


def find(path: str) -> Mapping[tuple[int, int], Part] | None:
    """The ranks of the dump at `path`: its own folder, the one above, that of a rank, or a .pkl. None for others."""
    if os.path.isfile(path):
        return {(0, 0): PtdbgPart(path)} if path.endswith(".pkl") else None
    if own := _pkl(path):
        match = _RANK.match(os.path.basename(os.path.abspath(path)))
        return {(0, int(match[1]) if match else 0): PtdbgPart(own)}
    ranks = _ranks(path)
    if not ranks:
        below = [found for name in folders(path) if (found := _ranks(os.path.join(path, name)))]
        if len(below) > 1:
            raise UnusableDump(f"{shown(path)} holds several dumps; name one of them")
        ranks = below[0] if below else {}
    # ptdbg counts cards from 0 or 1, as the script did.
    return {(0, rank): part for rank, part in sorted(ranks.items())} or None


def _ranks(path: str) -> dict[int, Part]:
    return {
        int(match[1]): PtdbgPart(own)
        for name in folders(path)
        if (match := _RANK.match(name)) and (own := _pkl(os.path.join(path, name)))
    }


def _pkl(folder: str) -> str | None:
    found = [name for name in files(folder) if name.endswith(".pkl")]
    if len(found) > 1:
        raise UnusableDump(f"{shown(folder)} holds {len(found)} .pkl files; name one of them")
    return os.path.join(folder, found[0]) if found else None


@dataclass(frozen=True)
class PtdbgPart(Part):
    file: str

    @property
    def where(self) -> str:
        return self.file

    @property
    def _data(self) -> str:
        """The folder of the elements: named as the .pkl, or as it with a time; it alone when it is the only one."""
        stem = os.path.basename(self.file).removesuffix(".pkl")
        beside = folders(os.path.dirname(self.file) or ".")
        return stem if stem in beside else next((name for name in beside if name.startswith(stem)), "")

    def read(self) -> Record:
        data = self._data
        folder = os.path.dirname(self.file) or "."
        there = {name.removesuffix(".npy") for name in files(os.path.join(folder, data))} if data else set()
        tensors = (
            (match, _tensor(value, f"{data}/{value[0]}.npy" if value[0] in there else None))
            for value in self._values()
            if not _STACK.match(value[0]) and (match := PLACE.match(value[0])) and len(value) >= 5
        )
        rows = rows_of((match, tensor) for match, tensor in tensors if tensor)
        try:
            rows += optimizer_rows(folder, collect)
        except (RecursionError, TypeError, ValueError, OverflowError) as error:
            raise UnusableDump(f"{shown(folder)}: optimizer.json has an entry that is none ({error})") from error
        return Record(folder, rows, "tensor" if data else "")

    def stacks(self) -> Mapping[str, tuple[str, ...]]:
        found = optimizer_stacks(os.path.dirname(self.file) or ".")
        for value in self._values():
            if (match := _STACK.match(value[0])) and len(value) > 1 and isinstance(value[1], list):
                frames = [each for each in value[1] if isinstance(each, list) and len(each) >= 3]
                # ptdbg records the outermost first, as Python does.
                found[match["row"]] = tuple(
                    f"File {each[0]}, line {each[1]}, in {each[2]}, \n {each[3] if len(each) > 3 else ''}"
                    for each in frames
                )
        return found

    def _values(self) -> Iterator[list[Any]]:
        for line, value in json_lines(self.file):
            if not (isinstance(value, list) and value and isinstance(value[0], str)):
                raise UnusableDump(f"{shown(self.file)}:{line}: is no record of ptdbg")
            yield value


def _tensor(value: list[Any], path: str | None) -> Tensor | None:
    dtype, shape = value[3], value[4]
    figures = value[5] if len(value) > 5 and isinstance(value[5], list) else []
    if not isinstance(dtype, str) or not isinstance(shape, list) or not all(type(each) is int for each in shape):
        return None
    high, low, mean = [number(each) for each in [*figures, None, None, None][:3]]
    name = dtype.rpartition(".")[2].strip("'>").lower()
    return Tensor("", name, tuple(shape), high, low, mean, None, path, None, True)


def rows_of(tensors: Iterable[tuple[re.Match[str], Tensor]]) -> list[Row]:
    """The rows of named tensors, in the order in which each is named first."""
    rows: dict[str, tuple[list[Tensor], list[Tensor]]] = {}
    for match, tensor in tensors:
        inputs, outputs = rows.setdefault(match["row"], ([], []))
        kept = inputs if match["role"] == "input" else outputs
        kept.append(tensor._replace(name=f"{match['role']}.{match['place'] or 0}"))
    return [Row(name, *called(name), tuple(inputs), tuple(outputs)) for name, (inputs, outputs) in rows.items()]
