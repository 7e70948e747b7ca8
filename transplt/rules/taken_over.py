"""Packages of which an adaptor takes names over: rules/support/taken_over.json."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from transplt.rules.tables import read_table


@dataclass(frozen=True, slots=True)
class Package:
    """What takes the place of the names of a package, by full name: `names` of the helper, `constants`, which are
    expressions, and names of other modules (`moved`: `einops.rearrange`).

    `distributions` are what requirements call it; `other` is a package for Ascend that has `others`, as `distribution`.
    """

    root: str
    names: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    adaptor: str = ""
    distributions: tuple[str, ...] = ()
    other: str = ""
    others: tuple[str, ...] = ()
    distribution: str = ""

    def knows(self, full: str) -> bool:
        """True for a name that something takes the place of."""
        return full in self.names or full in self.constants or full in self.moved

    def holds(self, full: str) -> bool:
        """True for the package, its modules, and their names."""
        return full == self.root or full.startswith(f"{self.root}.")

    def has_module(self, full: str) -> bool:
        """True for a module with names that something takes the place of."""
        every = (*self.names, *self.constants, *self.moved)
        return any(name.startswith(f"{full}.") for name in every)

    def without(self, names: Collection[str]) -> Package:
        """The same, but for some full names."""
        return replace(self, names={full: name for full, name in self.names.items() if full not in names})

    def from_other(self) -> Package:
        """The same, with the names of the package for Ascend where it has them."""
        moved = {full: f"{self.other}.{name}" for full, name in self.names.items() if name in self.others}
        return replace(self.without(moved), moved={**self.moved, **moved})


@cache
def packages() -> dict[str, Package]:
    """All of them by the name that is imported."""
    return {row["package"]: _package(row) for row in read_table("support/taken_over.json")["packages"]}


def _package(row: Mapping[str, Any]) -> Package:
    other = row.get("other", {})
    names = {f"{module}.{name}": name for module, every in row["names"].items() for name in every}
    return Package(
        row["package"], {**names, **row["called"]}, row["constants"], row["moved"], row["code"], row["adaptor"],
        tuple(row["distributions"]), other.get("package", ""), tuple(other.get("names", ())),
        other.get("distribution", ""),
    )  # fmt: skip


def is_known(name: str) -> bool:
    """True for a name of such a package, or a module with names, that something takes the place of."""
    return any(each.knows(name) or each.has_module(name) for each in packages().values())
