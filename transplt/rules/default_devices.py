"""Callables of libraries that mean CUDA where they are told no device: rules/support/default_devices.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transplt.rules.since import only_newer
from transplt.rules.tables import read_table

TABLE = "support/default_devices.json"
#: A position that no call reaches: the argument is given by its name alone.
_BY_NAME = 99


@dataclass(frozen=True, slots=True)
class DefaultDevice:
    """One callable: `argument` takes the device, at `position`; `writes` is what stands there for an NPU, empty where
    nothing that the library takes does. `package` and `since`: the first version that takes it, empty for any.
    `silent`: without the argument nothing stops. `unless`: values of arguments with which no device is used.
    """

    argument: str
    position: int
    writes: str
    package: str
    since: str
    silent: bool
    message: str
    help: str
    unless: Mapping[str, object] = field(default_factory=dict)

    def taken_by(self, pins: Iterable[tuple[str, str]]) -> bool:
        """True where every version of the package that the project asks for takes the argument.

        `pins`: packages with the versions that the project asks for (`==4.46.0`).
        """
        return not self.since or only_newer(dict(pins).get(self.package, ""), self.since)


@cache
def default_devices() -> dict[str, DefaultDevice]:
    """The callables by their full names."""
    rows: list[dict[str, Any]] = read_table(TABLE)["callables"]
    found: dict[str, DefaultDevice] = {}
    for row in rows:
        position = row["position"] if row["position"] >= 0 else _BY_NAME
        device = DefaultDevice(
            row["argument"], position, row.get("writes", ""), row.get("package", ""), row.get("since", ""),
            row["falls"] == "silent", row["is"], row["help"], row.get("unless", {}),
        )  # fmt: skip
        found |= dict.fromkeys(row["names"], device)
    return found


@cache
def words() -> tuple[str, ...]:
    """One of them stands in every file that calls one of these."""
    rows: list[dict[str, Any]] = read_table(TABLE)["callables"]
    return tuple(sorted({row.get("seen") or name.rpartition(".")[2] for row in rows for name in row["names"]}))


def packages() -> frozenset[str]:
    """The packages whose versions decide."""
    return frozenset(row.package for row in default_devices().values() if row.package)
