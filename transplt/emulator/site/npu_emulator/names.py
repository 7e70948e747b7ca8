"""What the torch_npu of the chosen version has: names and operators, from tables built of its wheels."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from typing import Any

from .config import config

_TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables")


class NotEmulated(NotImplementedError, AttributeError):
    """The name exists in torch_npu, but not in this emulator."""


@cache
def read_table(name: str) -> dict[str, Any]:
    """The table `name` of the folder `tables`."""
    with gzip.open(os.path.join(_TABLES, name + ".json.gz"), "rt", encoding="utf-8") as file:
        table: dict[str, Any] = json.load(file)
    return table


def version_bit(table: dict[str, Any]) -> int:
    """The bit of the chosen version in the masks of a table; that of the newest for a version that it does not know."""
    versions: list[str] = table["versions"]
    if config.torch_version in versions:
        return 1 << versions.index(config.torch_version)
    return 1 << (len(versions) - 1)


def exists(module: str, name: str) -> bool:
    """Whether the chosen torch_npu has `module.name`."""
    table = read_table("names")
    return bool(table["modules"].get(module, {}).get(name, 0) & version_bit(table))


def known(module: str) -> dict[str, bool]:
    """Every name that any version's `module` has -> whether the chosen version has it."""
    table = read_table("names")
    bit = version_bit(table)
    return {name: bool(mask & bit) for name, mask in table["modules"].get(module, {}).items()}


def versions_with(module: str, name: str) -> list[str]:
    """The torch versions whose torch_npu has the name."""
    table = read_table("names")
    mask = table["modules"].get(module, {}).get(name, 0)
    return [version for i, version in enumerate(table["versions"]) if mask >> i & 1]


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that is not there: not emulated, or not in that torch_npu either."""
    version = config.torch_version
    shown = module.replace("torch_npu.npu", "torch.npu", 1)
    if exists(module, name):
        return NotEmulated(f"{shown}.{name} exists in torch_npu for PyTorch {version} but is not emulated")
    text = f"module '{shown}' has no attribute '{name}' (torch_npu for PyTorch {version} does not have it either"
    others = versions_with(module, name)
    return AttributeError(text + (f"; those for {', '.join(others)} do)" if others else ")"))


def hide(module: str, namespace: dict[str, Any]) -> None:
    """Take out of a module what the chosen version lacks, so that `missing` speaks for it."""
    for name, has in known(module).items():
        if not has and name in namespace and not name.startswith("__"):
            del namespace[name]


def has_kernel(operator: str) -> bool:
    """Whether the chosen torch_npu has an NPU kernel for an aten operator ("add.Tensor", "add_.Tensor", "add")."""
    table = read_table("operators")
    base = operator.partition(".")[0].rstrip("_")
    return bool(table["aten"].get(base, 0) & version_bit(table))
