"""What takes the place of a well-known CUDA operator: rules/support/kernels.json, by the names kernels go by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from transplt.rules.tables import read_table

#: What projects put around the name of an operator; taken off its end, one after the other.
_ENDS = re.compile(
    r"_(?:cuda|gpu|forward|backward|fwd|bwd|grad|wrapper|kernel|launcher|impl|op|ext|fast|fp16|float|v\d|shm"
    r"|batch|stack|input|weight)$"
)
_STARTS = re.compile(r"^(?:cuda|launch|gpu|stack|run|call)_")
#: A package for releases of torch from 2.6 to 2.8. Source: DrivingSDK@e667017, README.md.
_DRIVING = "mx_driving."
_HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: Names that say no more than that there is an operator.
_NOTHING = frozenset("forward backward fwd bwd kernel cuda op ext adam fused main test".split())


@cache
def kernels() -> tuple[dict[str, Any], ...]:
    """The rows of the catalogue."""
    return tuple(read_table("support/kernels.json")["kernels"])


def kernel_called(name: str) -> dict[str, Any] | None:
    """The row of an operator, class or function such as `ms_deform_attn_forward`; None where none is like it."""
    whole = _HUMP.sub("_", name.strip(":_")).lower()
    short = whole
    while short not in _NOTHING:
        row = _by_operator().get(short)
        if row is not None:
            return row
        shorter = _STARTS.sub("", _ENDS.sub("", short))
        if shorter == short:
            break
        short = shorter
    return None


def kernel_in_module(module: str) -> dict[str, Any] | None:
    """The row of a compiled module such as `MultiScaleDeformableAttention`; None for one that holds several."""
    return _by_module().get(module.rpartition(".")[2])


def kernels_among(names: Iterable[str]) -> list[dict[str, Any]]:
    """The rows that some of the names lead to, each once, in the order of the names."""
    found = [row for name in names if (row := kernel_called(name)) is not None]
    return list({row["name"]: row for row in found}.values())


def replacement(row: dict[str, Any]) -> str:
    """What takes the place of an operator and what differs, in one line."""
    instead = instead_of(row)
    return f"{instead}; {row['differs']}" if instead else f"{row['name']}: {row['differs']}"


def instead_of(row: dict[str, Any]) -> str:
    """What takes the place of an operator, with its name; empty where nothing does. What few releases of torch have
    comes last.
    """
    calls = sorted(row["npu"], key=lambda call: call.startswith(_DRIVING))
    some = " (mx_driving: torch 2.6 to 2.8)" * any(call.startswith(_DRIVING) for call in calls)
    return f"instead of {row['name']}: {' or '.join(calls)}{some}" if calls else ""


@cache
def _by_operator() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in kernels():
        for name in (row["name"], *row["operators"]):
            short = _HUMP.sub("_", name.strip("_")).lower()
            if short not in _NOTHING:
                found.setdefault(short, row)
    return found


@cache
def _by_module() -> dict[str, dict[str, Any] | None]:
    found: dict[str, dict[str, Any] | None] = {}
    for row in kernels():
        for module in row["modules"]:
            found[module] = None if module in found else row
    return found
