"""Releases of the packages for Ascend, as a package index has them: rules/support/package_releases.json.

What no metadata tells, the CANN of a release above all, stands in rules/support/release_pairs.json, read by people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.base.text.requirement import normalised
from transplt.rules.tables import read_table

TABLE = "support/package_releases.json"
#: The name of a newer reading in the cache of the user (`transplt facts update`).
_KEPT = "7061636b6167655f72656c6561736573"


@dataclass(frozen=True, slots=True)
class Build:
    """A release: the day (`2026-10-03`), what it asks of Python, the Pythons that every machine has a wheel for, and
    those machines (neither where it is for all), whether it comes as sources alone, and what it requires.
    """

    day: str = ""
    python: str = ""
    pythons: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    sources: bool = False
    requires: tuple[str, ...] = ()

    def required(self, name: str) -> str:
        """The clauses for a package that it requires everywhere, `==2.10.0`; empty for one that it does not name."""
        found = (each.partition(";") for each in self.requires)
        return next((head[len(name) :] for head, mark, _ in found if not mark and _name_of(head) == name), "")

    @property
    def described(self) -> str:
        """`2026-10-03, Python 3.10 to 3.13, aarch64 and x86_64`."""
        span = f"Python {self.pythons[0]} to {self.pythons[-1]}" if self.pythons[1:] else ""
        span = span or (f"Python {self.pythons[0]}" if self.pythons else f"Python {self.python}" * bool(self.python))
        machines = f"for {' and '.join(self.machines)}" if self.machines else "from sources" * self.sources
        asked = f"requires {', '.join(self.requires)}" if self.requires else ""
        return "; ".join(filter(None, (self.day, span, machines, asked)))


@dataclass(frozen=True, slots=True)
class Releases:
    """All that was read of the index, and the day."""

    read: str
    builds: Mapping[str, Mapping[str, Build]]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Releases:
        """Those of a parsed table."""

        def build(row: Mapping[str, Any]) -> Build:
            told: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
            }
            return Build(**told)

        rows = table["releases"].items()
        return cls(table["read"], {name: {key: build(row) for key, row in each.items()} for name, each in rows})

    def newest(self, package: str) -> str:
        """The newest final release of a package, else the newest; empty for one without."""
        from packaging.version import Version

        found = [*self.builds.get(package, {})]
        return next((each for each in reversed(found) if not Version(each).is_prerelease), found[-1] if found else "")


def asked_for() -> dict[str, str]:
    """The packages whose releases are read, and what each stands for; empty where it stands for nothing."""
    table: dict[str, str] = read_table(TABLE)["packages"]
    return table


def stand_ins(package: str) -> tuple[str, ...]:
    """The packages with releases that a name is, or that stand for it."""
    wanted = normalised(package)
    return tuple(name for name, of in asked_for().items() if wanted in (name, of))


def is_of_interest(package: str) -> bool:
    """Whether it counts that a release requires a package."""
    table = asked_for()
    return normalised(package) in {*table, *table.values()}


@cache
def shipped() -> Releases:
    """What this transplt was released with: the same everywhere, so that a migration writes the same everywhere."""
    return Releases.of(read_table(TABLE))


def freshest() -> Releases:
    """That, or what the user has read since: to tell, not to edit by."""
    try:
        text = Cache.of_user().read(_KEPT, ours=True)
        kept = Releases.of(json.loads(text)) if text else None
    except (NoCache, ValueError, TypeError, KeyError):
        kept = None
    return kept if kept is not None and kept.read > shipped().read else shipped()


def keep(read: str, releases: Mapping[str, Any]) -> None:
    """Keep a newer reading for the user. NoCache where the user has no cache that will do."""
    Cache.of_user().write(_KEPT, json.dumps({"read": read, "releases": releases}), ours=True)


@cache
def newest_torch_npu() -> dict[str, tuple[str, Build]]:
    """The newest torch_npu for each release of torch, oldest first: its version begins with that of its torch."""
    from packaging.version import Version

    found = shipped().builds["torch-npu"].items()
    return {Version(each).base_version: (each, build) for each, build in found if not Version(each).is_prerelease}


def _name_of(requirement: str) -> str:
    end = next((at for at, sign in enumerate(requirement) if sign in "<>=!~ "), len(requirement))
    return normalised(requirement[:end])
