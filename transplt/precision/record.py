"""What every kind of dump is read as: steps and ranks, and in each the operators in the order in which they ran.

Reading never runs anything of a dump: JSON is read as JSON, pickles are not unpickled, and paths that a dump names must
stay inside it.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from transplt.base.errors import UsageError

#: The `kind` of a row.
API, MODULE, GRADIENT, OPTIMIZER = "api", "module", "gradient", "optimizer"
#: The `recorder` of a record of `transplt run --dump`; msprobe does not sign its own.
TRANSPLT = "transplt"
FORWARD, BACKWARD = "forward", "backward"


class UnusableDump(UsageError):
    """A dump that cannot be read, or two that cannot be compared; the text names the file."""


class Tensor(NamedTuple):
    """One tensor (or number) of an operator."""

    name: str  #: its place in the operator: `input.0`, `kwargs.mask`, `output.1`, `parameters.weight`
    dtype: str  #: `float32`; `int`, `bool`, `str` and the like for what is no tensor
    shape: tuple[int, ...]
    max: float | None  #: None where the dump has no such figure; nan and inf as they are
    min: float | None
    mean: float | None
    norm: float | None  #: the L2 norm
    path: str | None  #: the file of its elements, relative to the folder of the record
    digest: str | None  #: of dumps that keep a checksum in place of figures
    is_tensor: bool
    requires_grad: bool | None = None  #: None where the dump does not record it

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def finite(self) -> bool:
        """False where a figure is nan or infinite."""
        return all(value is None or math.isfinite(value) for value in (self.max, self.min, self.mean, self.norm))


@dataclass(slots=True)
class Row:
    """One call of an operator or a module, forward or backward; the gradients of a module's parameters; or the step of
    an optimizer, with its settings, gradients and states as inputs and the weights that it leaves as outputs."""

    name: str  #: as the dump has it: `Functional.conv2d.0.forward`
    api: str  #: `Functional.conv2d`, `Module.layer1.Linear`
    kind: str  #: API, MODULE, GRADIENT or OPTIMIZER
    phase: str  #: FORWARD or BACKWARD
    index: int  #: which call of that api, from 0
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parameters: tuple[Tensor, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.inputs, *self.parameters, *self.outputs)


@dataclass(slots=True)
class Record:
    """What one rank did in one step."""

    folder: str  #: paths of tensors are relative to it
    rows: list[Row]
    task: str = ""  #: `statistics`, `tensor`, `md5`, ...; empty where the dump does not record it
    #: The innermost module around a row, by the name of the row: `Module.net.Net.forward.0`.
    parents: Mapping[str, str] = field(default_factory=dict)
    recorder: str = ""  #: TRANSPLT, or empty where the dump does not record it


class Part(ABC):
    """One rank in one step of a dump, not read yet."""

    @abstractmethod
    def read(self) -> Record:
        """The rows. UnusableDump where a file cannot be read, with its name."""

    def stacks(self) -> Mapping[str, tuple[str, ...]]:
        """The frames (`File "x.py", line 3, in forward, ...`, innermost first) by the name of the row; often empty."""
        return {}

    @property
    @abstractmethod
    def where(self) -> str:
        """The file or folder, for messages."""


@dataclass(frozen=True)
class Dump:
    """A dump by its folders and files: what is in it is read part by part."""

    path: str
    kind: str  #: "msprobe", "ptdbg", "npy", "h5"
    parts: Mapping[tuple[int, int], Part]  #: by (step, rank)

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(sorted({step for step, _ in self.parts}))

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted({rank for _, rank in self.parts}))


class Called(NamedTuple):
    """The name of a row, taken apart."""

    api: str
    kind: str
    phase: str
    call: int  #: which call of that api, from 0


#: `Functional.conv2d.0.forward`, `Functional_conv2d_0_forward`, `Torch_relu__9_forward`, `Torch.relu_.9.forward`.
_CALLED = re.compile(r"(?P<api>.+?)[._](?P<index>\d+)[._](?P<phase>forward|backward)$")
#: `Module.layer1.0.Linear.forward.0`, `Module.layer1.0.Linear.parameters_grad.0`.
_MODULE = re.compile(r"(?P<api>.+?)[._](?P<phase>forward|backward|parameters_grad)(?:[._](?P<index>\d+))?$")
#: `67_VF_lstm_backward`: the number of the operator in the run, before its name.
_NUMBERED = re.compile(r"(?P<index>\d+)_(?P<api>.+)_(?P<phase>forward|backward)$")
_FAMILIES = ("Functional", "Tensor", "Torch", "VF", "Aten", "NPU", "Distributed", "Module", "Jit", "Mint", "Primitive")


def called(name: str) -> Called:
    """What the name of a row means, in all forms that recorders have written.

    `Functional_conv2d_0_forward` and `Functional.conv2d.0.forward` are one API, `Functional.conv2d`.
    """
    if match := _NUMBERED.match(name):
        return Called(_dotted(match["api"]), API, match["phase"], int(match["index"]))
    if (match := _CALLED.match(name)) and not name.startswith(("Module.", "Cell.")):
        kind = OPTIMIZER if name.startswith("Optimizer.") else API
        return Called(_dotted(match["api"]), kind, match["phase"], int(match["index"]))
    if match := _MODULE.match(name):
        gradient = match["phase"] == "parameters_grad"
        kind = GRADIENT if gradient else MODULE
        return Called(match["api"], kind, BACKWARD if gradient else match["phase"], int(match["index"] or 0))
    return Called(name, API, FORWARD, 0)


def _dotted(api: str) -> str:
    """`Functional_conv2d` as `Functional.conv2d`; what has a dot, or belongs to no family, stays."""
    family, found, rest = api.partition("_")
    return f"{family}.{rest}" if found and family in _FAMILIES and "." not in api else api


def named(rows: list[Row], name: str) -> Iterator[Row]:
    """The rows that a user may mean by `name`: that name, in any of its forms, with or without the phase."""
    exact = [row for row in rows if row.name == name]
    if exact:
        yield from exact
        return
    wanted = called(name)
    stem = name.replace("_", ".")
    for row in rows:
        if called(row.name) == wanted or row.name.replace("_", ".").startswith(f"{stem}."):
            yield row
