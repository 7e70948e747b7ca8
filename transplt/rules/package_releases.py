"""Releases of the packages for Ascend, as a package index has them: rules/support/package_releases.json.

What no metadata tells, the CANN of a release above all, stands in rules/support/release_pairs.json, read by people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.base.text.requirement import normalised
from transplt.rules.releases import index_option, release_of
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
        heads = ((head, re.split(r"[<>=!~ ]", head, maxsplit=1)[0]) for head, mark, _ in found if not mark)
        return next((head[len(name) :] for head, own in heads if normalised(own) == name), "")

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


@cache
def asked_for() -> dict[str, str]:
    """The packages whose releases are read, and what each stands for; empty where it stands for nothing."""
    return {name: row.get("for", "") for name, row in read_table(TABLE)["packages"].items()}


def needs_of(package: str) -> tuple[str, str]:
    """What no metadata tells of a package (CANN, cards), and the source of that; empty where nothing is told."""
    row = read_table(TABLE)["packages"].get(package, {})
    return row.get("needs", ""), f"{row.get('source', '')} (read in {row.get('checked', '')})"


def stand_ins(package: str) -> tuple[str, ...]:
    """The packages with releases that a name is, or that stand for it."""
    wanted = normalised(package)
    return tuple(name for name, of in asked_for().items() if wanted and wanted in (name, of))


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


@dataclass(frozen=True, slots=True)
class Together:
    """Releases that are made for each other; what is not known is empty."""

    package: str
    version: str
    torch: str
    torch_npu: str
    cann: str
    pythons: tuple[str, ...]
    others: tuple[tuple[str, str], ...]

    @property
    def described(self) -> str:
        """`vllm-ascend 0.23.0: vllm 0.23.0, torch 2.10.0, torch-npu 2.10.0.post4, CANN 9.1.0, Python 3.10 to 3.12`."""
        pairs = (*self.others, ("torch", self.torch), ("torch-npu", self.torch_npu), ("CANN", self.cann))
        named = [f"{name} {version}" for name, version in pairs if version]
        span = f"Python {self.pythons[0]} to {self.pythons[-1]}" if self.pythons else ""
        return f"{self.package} {self.version}: {', '.join(filter(None, (*named, span)))}"

    @property
    def commands(self) -> tuple[str, ...]:
        """What installs it beside CANN, one after the other: vllm asks for the torch of CUDA, so it goes first.

        Source: vllm-project/vllm-ascend, docs/source/installation.md (2026).
        """
        where = index_option(release_of(".".join(self.torch.split(".")[:2])).x86_64)
        before = [f"{name}=={version}" for name, version in self.others if name == "vllm" and version]
        rest = [each for each in self.others if each[0] != "vllm"]
        pins = [("torch", self.torch), ("torch-npu", self.torch_npu), *rest, (self.package, self.version)]
        last = " ".join(f"{name}=={version}" for name, version in pins if version)
        return (*(f"pip install {each}" for each in before), f"pip install {last}{where}")

    def contradicted(self, here: Mapping[str, str], python: str) -> list[str]:
        """What of torch, torch-npu and CANN is here in another release, and a Python that it has no wheel for."""
        wanted = {"torch": self.torch, "torch-npu": self.torch_npu or self.version, "CANN": self.cann}
        found = [f"{name} {each} is here" for name, each in here.items() if each and each != wanted[name]]
        fits = not self.pythons or ".".join(python.split(".")[:2]) in self.pythons
        return found if fits else [*found, f"Python {python} is here"]

    def missing(self, releases: Releases) -> list[str]:
        """What of it the index does not have, as far as its releases were read."""
        pins = [*self.others, ("torch-npu", self.torch_npu), (self.package, self.version)]
        known = releases.builds
        return [f"{name} {each}" for name, each in pins if each and name in known and each not in known[name]]


def sets_of(package: str, releases: Releases | None = None, final: bool = True) -> list[Together]:
    """What each release of a package for Ascend goes with, newest first, as far as it is told: for torch-npu and
    vllm-ascend by their pages on versions, for others by what they require. `final`: none before a release.
    """
    from packaging.version import Version

    told = read_table("support/release_pairs.json")
    found, pairs = [], told["vllm_ascend"] if package == "vllm-ascend" else {}
    for version, build in reversed([*(releases or freshest()).builds.get(package, {}).items()]):
        if package == "torch-npu":
            if cann := told["torch_npu"].get(version, ""):
                found.append(Together(package, version, torch_of(version), "", cann, build.pythons, ()))
            continue
        row = pairs.get(version, {})
        torch, torch_npu = (
            row.get(key) or build.required(name).removeprefix("==")
            for key, name in (("torch", "torch"), ("torch_npu", "torch-npu"))
        )
        if not torch[:1].isdigit() or (final and Version(version).is_prerelease):
            continue
        others = tuple((name, row.get(key, "")) for name, key in (("vllm", "vllm"), ("triton-ascend", "triton_ascend")))
        cann = row.get("cann") or told["torch_npu"].get(torch_npu, "")
        found.append(Together(package, version, torch, torch_npu, cann, build.pythons, others))
    return found


def set_for(name: str, versions: str) -> str:
    """What goes with the releases of a package (`vllm`) that some clauses of pip allow, in words: that of the newest;
    that there is none, and the next one; empty where nothing is known of the package. Each is for one torch.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    every = (each for package in stand_ins(name) for each in sets_of(package, shipped()))
    found = [(version, each) for each in every if (version := dict(each.others).get(name))]
    try:
        allowed = SpecifierSet(versions.replace(" ", ""))
    except InvalidSpecifier:
        return ""
    if not found or not versions:
        return ""
    none, fits = "", [each for version, each in found if allowed.contains(version, prereleases=True)][:1]
    if not fits:
        named = max(Version(each.version.removesuffix(".*")) for each in allowed)
        none = f"none for {name} {versions}: the next final one is "
        fits = [each for version, each in found if Version(version) > named]
    fit = fits[-1] if fits else found[0][1]
    return f"{none}{fit.described} (--torch-version {'.'.join(fit.torch.split('.')[:2])})"


def torch_of(torch_npu: str) -> str:
    """The torch that a release of torch_npu is for: its version begins with it."""
    from packaging.version import Version

    return Version(torch_npu).base_version


@cache
def newest_torch_npu() -> dict[str, tuple[str, Build]]:
    """The newest torch_npu for each release of torch, oldest first: its version begins with that of its torch."""
    from packaging.version import Version

    found = shipped().builds["torch-npu"].items()
    return {torch_of(each): (each, build) for each, build in found if not Version(each).is_prerelease}
