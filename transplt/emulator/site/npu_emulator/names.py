"""The tables of the emulator, and which names the torch_npu of the chosen version has."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from typing import Any

from .config import config

_TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables")


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
