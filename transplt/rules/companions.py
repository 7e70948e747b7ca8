"""Packages of which a release goes with one torch: torchvision, torchaudio, xformers; rules/support/companions.json."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial

from transplt.base.language import marked
from transplt.base.settings import TORCH_VERSIONS
from transplt.base.text.requirement import Requirement, normalised
from transplt.rules.package_releases import sets_of, shipped
from transplt.rules.since import may_be_older, only_older
from transplt.rules.tables import read_table
from transplt.rules.versions import version_key

_table = partial(read_table, "support/companions.json")

#: The patches that `0.20.*` stands for.
_PATCHES = 10
#: Packages of 1.0 and newer whose minor releases ask for newer ones of others (transformers 4.4x: accelerate 0.26).
_BREAK_EACH_MINOR = frozenset({"transformers"})
#: Pins of what is for Python 3.6 alone, of which newer ones have it in themselves (its Requires-Python, in the index).
_OF_PYTHON_36 = frozenset({("dataclasses", "==0.7"), ("dataclasses", "==0.8")})


def asked_by_torch(package: str, torch: str) -> str:
    """The first release of a package that a torch (`2.14.0`) can be installed with; empty where it asks for none."""
    rows: dict[str, str] = _table()["asked_by_torch"].get(package, {})
    minor = version_key(torch.rpartition(".")[0])
    return next((rows[since] for since in reversed(rows) if version_key(since) <= minor), "")


def asked_by_cann(cann: str) -> dict[str, str]:
    """The distributions that the Python packages of a CANN (`8.3.RC1`) import, and the versions that it needs of each;
    of one whose number is not known nothing is asked but the names.
    """
    rows: dict[str, str] = _table()["asked_by_cann"]
    return {name: bound if cann.startswith(("7.", "8.")) else "" for name, bound in rows.items()}


@cache
def _packages() -> dict[str, dict[str, list[str]]]:
    """The rows of the table, and those of vllm-ascend and the vllm that it is for."""
    found: dict[str, dict[str, list[str]]] = {**_table()["packages"], "vllm-ascend": {}, "vllm": {}}
    for each in sets_of("vllm-ascend", shipped(), final=False):
        for package, version in (("vllm-ascend", each.version), ("vllm", dict(each.others)["vllm"])):
            releases = found[package].setdefault(".".join(each.torch.split(".")[:2]), [])
            releases += [version] if version and version not in releases else []
    return found


@cache
def torch_minors() -> tuple[str, ...]:
    """The minor versions of torch, oldest first: those before torch_npu, and those that have one."""
    return (*_table()["older"], *TORCH_VERSIONS)


@cache
def companions() -> frozenset[str]:
    """The packages that say which torch goes with them, by their normalised names."""
    return frozenset(_packages()) | frozenset(_table()["same"])


def has_torchs_numbers(package: str) -> bool:
    """True for a package whose releases have the numbers of torch."""
    return package in _table()["same"]


def is_weak(package: str) -> bool:
    """True for a package that does install beside another torch than the one it goes with."""
    return package in _table()["weak"] or package == "vllm"  # that of CUDA goes with another torch


def torch_beside(package: str, allows: Callable[[str], bool]) -> frozenset[str]:
    """The minor versions of torch with which a release that `allows` is true for goes; empty where none is known."""
    rows = _packages().get(package, {}).items()
    return frozenset(torch for torch, releases in rows if any(map(allows, _spelled_out(tuple(releases)))))


def first_wheel(package: str, python: str) -> str:
    """The first release of a package with a wheel for a minor version of Python on Linux; empty where none is known."""
    return str(_table()["wheels"].get(package, {}).get(python, ""))


def beside_newer(package: str, other: str) -> str:
    """The first release of a package that can be imported beside today's release of another (protobuf, numpy), or keeps
    it back; empty for others.
    """
    return str(_table()[f"newer_{other}"].get(package, ""))


def keeps(requirements: Iterable[Requirement], package: str, release: str) -> bool:
    """True where a list allows no `release` of a package or newer: it bounds it, or asks for what does (old scipy)."""
    spans = {package: ("0", release), **_table()["bounds"].get(f"{package} {release}", {})}
    asked = ((each.specifier, spans.get(normalised(each.name), ("", "0"))) for each in requirements)
    return any(only_older(versions, end) and not may_be_older(versions, first) for versions, (first, end) in asked)


def below(package: str, first: str, python: str, names: Collection[str]) -> str:
    """The bound of a package that is raised to its `first` release that will do (`,<13`): what others of a list cannot
    be imported beyond, else the next release that may break what calls it, with a wheel for newer Pythons where one
    release alone has it.
    """
    ends = (end for other, end in _table()["imports_until"].get(package, {}).items() if other in names)
    since = (each.split(".") for each in (first, first_wheel(package, f"after {python}")) if each)
    major, minor = max((int(numbers[0]), int(numbers[1])) for numbers in since)
    following = f"{major}.{minor + 1}" if major == 0 or package in _BREAK_EACH_MINOR else str(major + 1)
    return f",<{next(ends, following)}"


def without_pkg_resources(torch: str) -> dict[str, str]:
    """By package: its first release that does not import pkg_resources, empty where each does; none for a torch
    (`2.12.0`) beside which pip installs a setuptools that still has it.
    """
    known: dict[str, str] = _table()["newer_setuptools"]
    return known if version_key(torch.rpartition(".")[0]) >= version_key("2.13") else {}


@cache
def _spelled_out(releases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        release.replace("*", str(patch))
        for release in releases
        for patch in range(_PATCHES if release.endswith("*") else 1)
    )


#: What is to be done about such a pin.
NEWER = marked("require a newer release, whose interface may differ, and test the project; remove what nothing needs")


def no_wheel(pin: Requirement, torch: str, python: str) -> str:
    """What is said of a pin without a wheel for the Pythons of a torch, or for none but `python`, the oldest."""
    if not older_pins([pin], (python,), only=True):
        return f"{pin.name}{pin.specifier}: of the Pythons that torch {torch} needs, only {python} has a wheel"
    first = first_wheel(normalised(pin.name), python)
    since = f"; {first} is the first known to install there" if first else ""
    if alone := _table()["sources_alone"].get(normalised(pin.name)):
        return f"{pin.name}{pin.specifier}: pip has to build it, and {alone['why']}{since.replace(' there', '')}"
    return f"{pin.name}{pin.specifier}: no wheel for Python {python} or newer, which torch {torch} needs{since}"


def older_pins(requirements: Iterable[Requirement], pythons: Sequence[str], *, only: bool = False) -> list[Requirement]:
    """The requirements that bound a package to releases without a wheel for any of some Pythons, oldest first: pip
    would have to build them from source, with a compiler of their time. Or, if not `only`, for one but the oldest.
    """
    if not pythons:
        return []
    every, newer = list(requirements), "" if only else f"after {pythons[0]}"
    older = older_than(every, lambda name: first_wheel(name, newer) or first_wheel(name, pythons[0]))
    built = older_than(older, lambda name: str(_table()["sources_alone"].get(name, {}).get("from", "")))
    old = (each for each in every if (normalised(each.name), each.specifier) in _OF_PYTHON_36)
    return [*(each for each in older if each not in built), *old]


def older_than(requirements: Iterable[Requirement], first_of: Callable[[str], str]) -> list[Requirement]:
    """The requirements that bound a package to releases before one, `first_of` its name; that is empty for others."""
    plain = (each for each in requirements if not each.marker and not each.address)
    return [each for each in plain if (first := first_of(normalised(each.name))) and only_older(each.specifier, first)]
