"""Which arguments of calls are devices or backends: one table, read in both directions.

*Up*, from a value: it is an argument of a call, is that the place of a device? *Down*, from a call: which of its
arguments are devices, so that the slots they are read from hold devices?

`read` says which direction knows a row. Those that only one of them knows make the two disagree about the same call.
Beside the rows, the directions differ in what they make of a call:

- a full name: up knows the callee under any name that is bound to it (`from torch import load as fetch`), and one that
  is a context manager or none; down only where the last part of its name is written;
- a star: up counts it as one argument; down knows no positions after it.
"""

from __future__ import annotations

import ast
from typing import Literal, NamedTuple

from transplt.flow.marks import BACKEND, DEVICE, OWNED
from transplt.rules.communication_backends import owned, passed_on
from transplt.syntax.names import Names

By = Literal["any call", "method", "last name", "full name"]


class Row(NamedTuple):
    """One argument that bears a mark: of what callee, and its position or keyword."""

    by: By  # how the callee is known
    callee: str
    argument: int | str
    mark: str
    read: Literal["up and down", "up", "down"] = "up and down"


#: Where functions of torch.cuda take a device, by their signatures in torch 2.13; those of a module of it that
#: torch.cuda has under the same name stand in both.
_IN_MEMORY = (
    *(
        (name, 0)
        for name in (
            "get_per_process_memory_fraction max_memory_allocated max_memory_cached max_memory_reserved mem_get_info "
            "memory_allocated memory_cached memory_reserved memory_stats memory_stats_as_nested_dict memory_summary "
            "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats"
        ).split()
    ),
    ("caching_allocator_alloc", 1), ("set_per_process_memory_fraction", 1), ("use_mem_pool", 1),
)  # fmt: skip
_IN_RANDOM = (("get_rng_state", 0), ("set_rng_state", 1))
_IN_STREAMS = (("Stream", 0), ("ExternalStream", 1))
_OF_CUDA = (
    *(
        (name, 0)
        for name in (
            "_get_device _get_device_index _get_generator can_device_access_peer current_stream default_stream device "
            "get_device_capability get_device_name get_device_properties set_device synchronize utilization"
        ).split()
    ),
    ("can_device_access_peer", 1), *_IN_MEMORY, *_IN_RANDOM, *_IN_STREAMS,
)  # fmt: skip
_OF_ITS_MODULES = tuple(
    (module, *row)
    for module, rows in (("memory", _IN_MEMORY), ("random", _IN_RANDOM), ("streams", _IN_STREAMS))
    for row in rows
)

ROWS = (
    Row("any call", "", "device", DEVICE),
    Row("any call", "", "device_type", DEVICE),
    Row("any call", "", "map_location", DEVICE),
    Row("any call", "", "pin_memory_device", DEVICE),
    Row("any call", "", "target_device", DEVICE),
    # Read down, no more is looked at in a call of these that has positions: not the keywords of `x.to(y, device=z)`.
    Row("method", "to", 0, DEVICE),
    Row("method", "to_empty", 0, DEVICE),
    Row("method", "cuda", 0, DEVICE),
    Row("method", "set_device", 0, DEVICE),
    Row("last name", "init_process_group", "backend", BACKEND),
    Row("last name", "new_group", "backend", BACKEND),
    Row("last name", "init_dist", "backend", BACKEND, read="up"),
    Row("last name", "init_distributed", "backend", BACKEND, read="up"),
    Row("last name", "new_subgroups", "backend", BACKEND, read="up"),
    Row("last name", "init_process_group", 0, BACKEND, read="up"),
    Row("last name", "init_dist", 0, BACKEND, read="up"),
    Row("last name", "init_distributed", 0, BACKEND, read="up"),
    Row("last name", "device", "type", DEVICE, read="down"),
    Row("full name", "torch.device", "type", DEVICE, read="up"),
    Row("full name", "torch.device", 0, DEVICE),
    Row("full name", "torch.set_default_device", 0, DEVICE),
    Row("full name", "torch.get_device_module", 0, DEVICE),
    Row("full name", "torch.Generator", 0, DEVICE),
    Row("full name", "torch.load", 1, DEVICE),
    Row("full name", "torch.jit.load", 1, DEVICE),
    Row("full name", "torch.autocast", 0, DEVICE),
    Row("full name", "torch.amp.autocast", 0, DEVICE),
    Row("full name", "torch.amp.autocast_mode.autocast", 0, DEVICE),
    Row("full name", "torch.GradScaler", 0, DEVICE),
    Row("full name", "torch.amp.GradScaler", 0, DEVICE),
    Row("full name", "torch.amp.grad_scaler.GradScaler", 0, DEVICE),
    Row("full name", "torch.get_autocast_dtype", 0, DEVICE),
    Row("full name", "torch.set_autocast_dtype", 0, DEVICE),
    Row("full name", "torch.is_autocast_enabled", 0, DEVICE),
    Row("full name", "torch.set_autocast_enabled", 0, DEVICE),
    Row("full name", "torch.amp.is_autocast_available", 0, DEVICE),
    *(Row("full name", f"torch.cuda.{name}", at, DEVICE) for name, at in _OF_CUDA),
    *(Row("full name", f"torch.cuda.{module}.{name}", at, DEVICE) for module, name, at in _OF_ITS_MODULES),
    Row("full name", "torch.distributed.init_device_mesh", 0, DEVICE),
    Row("full name", "torch.distributed.device_mesh.init_device_mesh", 0, DEVICE),
    Row("full name", "torch.distributed.tensor.init_device_mesh", 0, DEVICE),
    Row("full name", "torch.distributed._tensor.init_device_mesh", 0, DEVICE),
    Row("full name", "torch.distributed._tensor.device_mesh.init_device_mesh", 0, DEVICE),
    Row("full name", "torch.distributed.DeviceMesh", 0, DEVICE),
    Row("full name", "torch.distributed.device_mesh.DeviceMesh", 0, DEVICE),
    Row("full name", "torch.distributed.tensor.DeviceMesh", 0, DEVICE),
    Row("full name", "torch.distributed._tensor.DeviceMesh", 0, DEVICE),
    Row("full name", "torch.distributed.DeviceMesh.from_group", 1, DEVICE),
    Row("full name", "torch.distributed.device_mesh.DeviceMesh.from_group", 1, DEVICE),
    Row("full name", "torch.distributed.tensor.DeviceMesh.from_group", 1, DEVICE),
    Row("full name", "torch.distributed.init_process_group", 0, BACKEND),
    Row("full name", "torch.distributed.distributed_c10d.init_process_group", 0, BACKEND),
    Row("full name", "torch.distributed.Backend", 0, BACKEND),
    Row("full name", "torch.distributed.is_backend_available", 0, BACKEND),
    *(Row("full name" if callee else "any call", callee, argument, BACKEND) for callee, argument in passed_on()),
    *(Row("full name", callee, argument, OWNED + library, read="down") for callee, argument, library in owned()),
    Row("last name", "ray_backend", 0, OWNED + "Ray", read="down"),  # of the helper, which makes it one of Ray's
)

_Marks = dict[int | str, str]


def _by_callee(direction: str) -> dict[tuple[By, str], _Marks]:
    """The rows that a direction reads: the marks of arguments, by callee."""
    found: dict[tuple[By, str], _Marks] = {}
    for row in ROWS:
        if direction in row.read:
            found.setdefault((row.by, row.callee), {})[row.argument] = row.mark
    return found


_UP, _DOWN = _by_callee("up"), _by_callee("down")
_NONE: _Marks = {}
_OF_ANY_CALL = _DOWN["any call", ""]
#: Last names, as they are written, of the callees that rows read down name; of those that they name in full.
_NAMED = {callee.rpartition(".")[2] for _, callee in _DOWN if callee}
_NAMED_IN_FULL = {callee.rpartition(".")[2] for by, callee in _DOWN if by == "full name"}


def mark_of_argument(full: str, last: str, method: bool, argument: int | str) -> str | None:
    """Up: the mark of an argument (position or keyword) of a callee, known by its full and its last name."""
    found = _UP.get(("full name", full), _NONE).get(argument) or _UP.get(("last name", last), _NONE).get(argument)
    if method:
        found = found or _UP.get(("method", last), _NONE).get(argument)
    return found or _UP["any call", ""].get(argument)


def marked_arguments(names: Names, call: ast.Call, last: str) -> tuple[list[tuple[ast.expr, str]], bool]:
    """Down: the arguments of a call that bear a mark, each with it; and whether no more is to be read in that call.

    `last` is the last name of the callee.
    """
    marks, closed = _marks_of(names, call, last) if last in _NAMED else (_OF_ANY_CALL, False)
    found = []
    if marks is not _OF_ANY_CALL:
        for index, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                break
            if index in marks:
                found.append((argument, marks[index]))
    found += [(keyword.value, marks[keyword.arg]) for keyword in call.keywords if keyword.arg in marks]
    return found, closed


def _marks_of(names: Names, call: ast.Call, last: str) -> tuple[_Marks, bool]:
    """The marks of a callee's arguments; True where what is given by position is all that is read."""
    if call.args and isinstance(call.func, ast.Attribute) and ("method", last) in _DOWN:
        return _DOWN["method", last], True
    full = names.qualified(call.func) if last in _NAMED_IN_FULL else None
    of_last, of_full = _DOWN.get(("last name", last), _NONE), _DOWN.get(("full name", full or ""), _NONE)
    return {**_OF_ANY_CALL, **of_last, **of_full}, False
