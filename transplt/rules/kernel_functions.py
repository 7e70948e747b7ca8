"""Functions of compiled modules and what of transplt/helper/kernels says each: rules/support/kernel_functions/."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from transplt.rules.tables import read_table, rules_dir

#: The code of what takes the place of a compiled module.
SAID = "NPU880"
_FOLDER = "support/kernel_functions"


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """One way in which public code calls a function of a compiled module.

    `modules` are the last names of the modules that have it, `arguments` are in order. `helper` is empty for one that
    is known and not replaced.
    """

    operator: str
    called: str
    modules: tuple[str, ...]
    arguments: tuple[str, ...]
    helper: str
    differs: str
    source: str


@cache
def kernel_functions() -> tuple[KernelFunction, ...]:
    """All rows, table by table."""
    tables = sorted(path.name for path in (rules_dir() / _FOLDER).glob("*.json"))
    return tuple(
        KernelFunction(
            row["operator"], row["called"], tuple(row["modules"]), tuple(row["arguments"]), row.get("helper", ""),
            row.get("differs", ""), row["source"],
        )
        for name in tables
        for row in read_table(f"{_FOLDER}/{name}")["functions"]
    )  # fmt: skip


@cache
def compiled_modules() -> dict[str, dict[str, tuple[KernelFunction, ...]]]:
    """By the last name of a module and the name of a function in it."""
    found: dict[str, dict[str, tuple[KernelFunction, ...]]] = {}
    for row in kernel_functions():
        for module in row.modules:
            own = found.setdefault(module, {})
            own[row.called] = (*own.get(row.called, ()), row)
    return found


def modules_said(names: Collection[str]) -> tuple[str, ...]:
    """The last names of the compiled modules of which some functions of the helper are, sorted."""
    return tuple(sorted({module for row in kernel_functions() if row.helper in names for module in row.modules}))
