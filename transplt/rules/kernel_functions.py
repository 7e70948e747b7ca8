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
class Variant:
    """A function of ours for a compiled one where a source of the module, the file `named`, says which one it is: its
    code has all of `says` and nothing of `lacks`.
    """

    named: str
    says: tuple[str, ...]
    lacks: tuple[str, ...]
    helper: str


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """One way in which public code calls a function of a compiled module.

    `modules` are the last names of the modules that have it, `arguments` are in order. `helper` is empty for one that
    is known and not replaced, or replaced only where a source says which of `variants` it is.
    """

    operator: str
    called: str
    modules: tuple[str, ...]
    arguments: tuple[str, ...]
    helper: str
    differs: str
    source: str
    variants: tuple[Variant, ...] = ()

    @property
    def helpers(self) -> tuple[str, ...]:
        """The functions of ours that may take its place."""
        return (self.helper,) if self.helper else tuple(each.helper for each in self.variants)


@cache
def kernel_functions() -> tuple[KernelFunction, ...]:
    """All rows, table by table."""
    tables = sorted(path.name for path in (rules_dir() / _FOLDER).glob("*.json"))
    return tuple(
        KernelFunction(
            row["operator"], row["called"], tuple(row["modules"]), tuple(row["arguments"]), row.get("helper", ""),
            row.get("differs", ""), row["source"], tuple(
                Variant(each["in"], tuple(each["sources_say"]), tuple(each.get("sources_lack", ())), each["helper"])
                for each in row.get("variants", ())
            ),
        )
        for name in tables
        for row in read_table(f"{_FOLDER}/{name}")["functions"]
    )  # fmt: skip


def variants_held(path: str, code: str) -> tuple[tuple[str, bool], ...]:
    """The functions of ours for the kernels of a source, with whether its code says that they are the same."""
    name, found = path.rpartition("/")[2], dict[str, bool]()
    for row in kernel_functions():
        for each in row.variants:
            if each.named == name:
                held = all(text in code for text in each.says) and not any(text in code for text in each.lacks)
                found[each.helper] = held and found.get(each.helper, True)
    return tuple(sorted(found.items()))


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
    rows = (row for row in kernel_functions() if any(each in names for each in row.helpers))
    return tuple(sorted({module for row in rows for module in row.modules}))
