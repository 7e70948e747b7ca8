"""What becomes of an environment variable of CUDA or NCCL on an NPU, from the table of facts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `npu` is its counterpart (empty: none), `carries` yes, partly or no: whether its value is kept."""

    name: str
    npu: str
    carries: str
    note: str
    versions: frozenset[str]
    documented: bool

    def renamed(self, torch_version: str) -> bool:
        """True when the new name does with any value what the old one did, and the vendor documents it."""
        return self.carries == "yes" and self.documented and self.known(torch_version)

    def known(self, torch_version: str) -> bool:
        """True when torch_npu for this version of torch (or CANN) reads the new name."""
        return bool(self.npu) and self.npu != self.name and torch_version in self.versions


@cache
def variables() -> dict[str, Variable]:
    """All variables by their CUDA-side name."""
    rows: dict[str, dict[str, Any]] = read_table("support/env_vars.json")["cuda_to_npu"]
    return {
        name: Variable(
            name,
            row.get("npu", ""),
            row.get("value_carries_over", "no"),
            row.get("note", ""),
            versions_of(row.get("versions")),
            "undocumented" not in row.get("note", ""),
        )
        for name, row in rows.items()
    }


#: What the names of variables begin with that only CUDA's libraries read.
_FOREIGN = ("NCCL_", "TORCH_CUDNN_", "CUBLAS_", "CUBLASLT_")
#: Variables that are renamed when a condition on their value holds, and what the value must look like.
_VALUES = {
    # hiascend CANN 9.0 reference, ASCEND_RT_VISIBLE_DEVICES: ids ascending, nothing but digits and commas; what comes
    # after another character is not read, so that -1 and the empty text hide all devices, as they do for CUDA.
    "CUDA_VISIBLE_DEVICES": re.compile(r"|-1|\d+(?:,\d+)*"),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": re.compile(r"[01]"),
}
#: Options of PYTORCH_CUDA_ALLOC_CONF that PYTORCH_NPU_ALLOC_CONF has with the same meaning.
#: Ascend/pytorch, docs/zh/api/environment_variable/memory_management/PYTORCH_NPU_ALLOC_CONF.md
_ALLOCATOR = frozenset(
    {"max_split_size_mb", "garbage_collection_threshold", "expandable_segments", "roundup_power2_divisions"}
)


def conditional(name: str) -> bool:
    """True for a variable whose new name takes some of the old values only."""
    return name in _VALUES or name == "PYTORCH_CUDA_ALLOC_CONF"


def objection(variable: Variable, torch_version: str, value: str | None = None, computed: bool = False) -> str:
    """Why a variable cannot be renamed with this value (None: it is read); empty when it can.

    `computed`: only the program that sets it knows the value.
    """
    if not variable.known(torch_version):
        return f"torch_npu for torch {torch_version} does not read {variable.npu}"
    if not conditional(variable.name):
        return "" if variable.renamed(torch_version) else variable.note
    if computed:
        # A computed list of devices is a list of devices; the options of an allocator have to be looked at.
        return "" if variable.name == "CUDA_VISIBLE_DEVICES" else "the value is computed"
    return "" if value is None else refused(variable.name, value)


def without_effect(name: str) -> bool:
    """True for a variable that only libraries of CUDA read, known to the table or not."""
    known = variables().get(name)
    return not known.npu if known is not None else name.startswith(_FOREIGN)


#: Ranges of values that HCCL takes, and what they must be a multiple of: CANN's list of environment variables.
_RANGES = {
    "NCCL_IB_QPS_PER_CONNECTION": (1, 32, 1),
    "NCCL_IB_RETRY_CNT": (1, 7, 1),
    "NCCL_IB_SL": (0, 7, 1),
    "NCCL_IB_TC": (0, 255, 4),
    "NCCL_IB_TIMEOUT": (5, 20, 1),
}
#: docs of NCCL, NCCL_DEBUG; hiascend CANN reference, ASCEND_GLOBAL_LOG_LEVEL.
_LOG_LEVELS = {"VERSION": 2, "WARN": 2, "INFO": 1, "ABORT": 3, "TRACE": 0}


def counterpart(name: str, value: str) -> str:
    """What to set on an NPU where a literal value does not carry over as it is: `HCCL_BUFFSIZE=8`; empty if unknown."""
    if name == "NCCL_DEBUG" and value.upper() in _LOG_LEVELS:
        return f"ASCEND_GLOBAL_LOG_LEVEL={_LOG_LEVELS[value.upper()]}"
    if not value.isascii() or not value.isdigit():
        return ""
    number = _number(value)
    if name == "NCCL_BUFFSIZE":
        return f"HCCL_BUFFSIZE={max(1, -(-number // 2**20))}"
    if name in _RANGES:
        low, high, step = _RANGES[name]
        return f"{variables()[name].npu}={number}" if low <= number <= high and number % step == 0 else ""
    return ""


def refused(name: str, value: str) -> str:
    """Why a value of a conditional variable does not work on an NPU; empty when it does."""
    if name == "PYTORCH_CUDA_ALLOC_CONF":
        for option in filter(None, value.split(",")):
            key, _, amount = option.strip().partition(":")
            if key not in _ALLOCATOR:
                return f"{key} is no option of the NPU allocator"
            if key == "max_split_size_mb" and (not amount.strip().isdigit() or _number(amount) <= 20):
                return "max_split_size_mb must be greater than 20"
        return ""
    if not _VALUES[name].fullmatch(value):
        if name == "CUDA_VISIBLE_DEVICES":
            return "only numbers with commas and without spaces are read"
        return "only 0 and 1 are known"
    ids = [_number(part) for part in value.split(",") if part.isdigit()]
    if name == "CUDA_VISIBLE_DEVICES" and ids != sorted(ids):
        return "the numbers must be in ascending order"
    return ""


def _number(digits: str) -> int:
    """The number that digits are. Python reads no more than 4,300 of them; so many are no device, and no size."""
    return int(digits) if len(digits) < 100 else 10**100
