"""Names that triton-ascend has: functions of libdevice, options of a launch; rules/support/triton_names.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

from transplt.rules.releases import release_of
from transplt.rules.tables import read_table

_table = partial(read_table, "support/triton_names.json")

MATH = "triton.language.math"


@dataclass(frozen=True, slots=True)
class Libdevice:
    """The libdevice of the release of triton-ascend that goes with a CANN: its module and its functions.

    `math` are all functions of its `tl.math`, those too that other releases do not have there.
    """

    module: str
    functions: frozenset[str]
    math: frozenset[str]


@cache
def libdevice_for(torch_version: str) -> Libdevice:
    """The libdevice that a minor version of torch comes with, by its CANN; the newest where that is not known."""
    rows = _table()["modules"]
    major = release_of(torch_version).cann.partition(".")[0]
    row = rows[major if major in rows else max(rows)]
    return Libdevice(row["module"], frozenset(row["functions"]), math_functions().union(row["math"]))


@cache
def math_functions() -> frozenset[str]:
    """The functions of `tl.math`, in every release."""
    return frozenset(_table()["math"])


@cache
def cuda_functions() -> frozenset[str]:
    """The functions of libdevice for CUDA."""
    return frozenset(_table()["cuda"])


@cache
def launch_options() -> frozenset[str]:
    """What a launch takes beside the parameters of its kernel; for any other name triton-ascend raises KeyError."""
    return frozenset(_table()["options"])
