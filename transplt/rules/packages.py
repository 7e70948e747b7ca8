"""What rules/support/third_party.json knows of a package, by the name it is installed or imported under."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.base.finding import Level
from transplt.base.text.requirement import ceiling, normalised
from transplt.rules.package_releases import set_for
from transplt.rules.tables import read_table

#: Code of a requirement that is bound to CUDA, and of one that is pinned to a version too old for NPUs.
BOUND, TOO_OLD = "NPU290", "NPU291"
#: A detail: what the first version that works needs beside it, and the older ones did without.
BROUGHT = "brings"
#: The message for a requirement, by the status of its row; of the others there is nothing to do.
_MESSAGES = {
    "unsupported": "no published NPU support for the requirement {name}",
    "replacement": "the requirement {name} does not support NPUs",
    "drop": "the requirement {name} is part of CUDA",
    "ascend_fork": "the requirement {name} needs an Ascend version",
    "plugin": "the requirement {name} needs an extra package for Ascend",
}
#: Of them those of packages that are of no use there.
_BOUND = frozenset({"unsupported", "replacement", "drop"})
#: Wheels of CUDA's runtime carry its version: nvidia-cublas-cu12.
_CUDA_VERSION = re.compile(r"-cu(?:da)?\d+x?$")
_CLAUSE = re.compile(r"(===|==|~=|<=|<|>=|>|!=|\^|~|=)?\s*v?(\d+(?:\.\d+)*)(\.\*)?")


@dataclass(frozen=True, slots=True)
class PackageAdvice:
    """What to say about one requirement: code, message, what to do, the name that the package is imported by, and what
    it blocks where that is not what the page of the code says; the details of its finding.
    """

    code: str
    message: str
    help: str
    package: str = ""
    blocks: str = ""
    details: tuple[tuple[str, str], ...] = ()
    level: Level = Level.MANUAL


@cache
def packages() -> tuple[dict[str, Any], ...]:
    """The rows of the table."""
    return tuple(read_table("support/third_party.json")["packages"])


def package_installed_as(name: str) -> dict[str, Any] | None:
    """The row of a distribution, with or without the CUDA version at its end; None where nothing is known."""
    wanted = normalised(name)
    rows = _by_distribution()
    return rows.get(wanted) or rows.get(_CUDA_VERSION.sub("", wanted))


def in_its_place(name: str) -> str:
    """The distribution that is installed on an NPU in the place of one, under the same imports; empty for others."""
    row = package_installed_as(name)
    return str(row["replacement"]) if row is not None and row.get("takes_place") else ""


def naming(name: str, specifier: str) -> str:
    """What is said where a requirement gets the name of `in_its_place`; also where it asks for a newer interface."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    row = package_installed_as(name)
    assert row is not None
    message = f"{name} -> {row['replacement']}, which takes its place in the same folder"
    try:
        allowed = SpecifierSet(specifier).contains(row["takes_place"], prereleases=True)
    except InvalidSpecifier:
        allowed = True
    newer = f"{name}{specifier} is required, and {row['replacement']} has the interface of {row['takes_place']}"
    return message if allowed else f"{message}; {newer}"


def package_imported_as(module: str) -> dict[str, Any] | None:
    """The row of a module by its whole name; None where nothing is known."""
    return _by_import().get(module)


def holds_whole_files(module: str) -> bool:
    """True for a module without which nothing of a file that imports it runs: TensorRT's engines, CUDA's own interface.
    """
    parts = module.split(".")
    rows = (_by_import().get(".".join(parts[:end])) for end in range(len(parts), 0, -1))
    return any(row is not None and row.get("whole_file") for row in rows)


def other_card(module: str) -> str:
    """The devices of another maker that a module is written for, in words; empty for others."""
    row = _row_around(module)
    return str(row.get("other_card", "")) if row is not None else ""


@cache
def is_bound(module: str) -> bool:
    """True for a module of a package that NPUs do without as it is published for GPUs."""
    row = _row_around(module)
    return row is not None and row["status"] in _BOUND


@cache
def fails_to_load(module: str) -> bool:
    """True for a module of such a package that cannot be imported where there is no CUDA."""
    row = _row_around(module)
    return row is not None and row["status"] in _BOUND and not row.get("loads")


def runs_unchanged(module: str, package: str) -> bool:
    """True for a module within a package that has a row of its own, by which it runs unchanged."""
    row = _row_around(module) or {"status": ""}
    return row["status"] == "works" and any(each.startswith(f"{package}.") for each in row["import"])


def _row_around(module: str) -> dict[str, Any] | None:
    """The row of a module, or of the nearest package above it; None for torch's own."""
    parts = module.split(".")
    rows = (_by_import().get(".".join(parts[:end])) for end in range(len(parts), 0, -1))
    return next(filter(None, rows), None) if parts[0] != "torch" else None


def package_holding(name: str) -> tuple[dict[str, Any], str] | None:
    """The row of the package that a dotted name such as `mmcv.ops.nms3d` lies in, and the prefix that has the row.

    The longest prefix counts. None for a name that has a row of its own, for one of torch, and where nothing is known.
    """
    head = name
    while head := head.rpartition(".")[0]:
        row = _by_import().get(head)
        if row is not None:
            return None if head == "torch" or name in _by_import() else (row, head)
    return None


def function_notes() -> dict[str, str]:
    """Full names of the functions and classes that rows name, with what is known of each beyond its package's row."""
    return {f"{row['import'][0]}.{name}": note for row in packages() for name, note in row.get("functions", {}).items()}


@cache
def bound_classes() -> frozenset[str]:
    """Full names of the classes of packages without support for NPUs: what their methods do is the package's own."""
    return frozenset(
        f"{row['import'][0]}.{name}"
        for row in packages()
        if row["status"] == "unsupported"
        for name in row.get("functions", {})
        if name.rpartition(".")[2][:1].isupper()
    )


@cache
def _by_import() -> dict[str, dict[str, Any]]:
    return {name: row for row in packages() for name in row["import"]}


@cache
def _by_distribution() -> dict[str, dict[str, Any]]:
    repositories = {row["repository"]: row for row in packages() if "repository" in row}
    return repositories | {name: row for row in packages() for name in row["pip"]}


def what_to_do(row: dict[str, Any]) -> str:
    """What Ascend offers for a package and what to know, in one line."""
    note: str = row.get("note", "").strip(" ;.")
    if not row.get("replacement"):
        return note
    instead = f"instead: {row['replacement'].strip(' ;.')}"
    return f"{instead}. {row['name']}: {note}" if note else instead


@cache
def _floors() -> tuple[tuple[str, str, str], ...]:
    """The package, the version, and a name of it that needs that version."""
    return tuple(
        (row["import"][0], version, name)
        for row in packages() for version, names in row.get("floors", {}).items() for name in names
    )  # fmt: skip


def floors_met(imported: Collection[str], data: bytes) -> tuple[tuple[str, str], ...]:
    """The packages of which a file uses what asks for a version, and these; `imported` are full names."""
    found = set()
    packages = {name.partition(".")[0] for name in imported}
    for package, version, name in _floors():
        if package in packages and (
            name == "*"
            or (name.startswith(".") and f"{name}(".encode() in data)
            or any(each.startswith(f"{package}.") and each.rpartition(".")[2] == name for each in imported)
            or f"{package}.{name}".encode() in data
        ):
            found.add((package, version))
    return tuple(sorted(found))


def _needed(row: dict[str, Any], met: Collection[tuple[str, str]] | None) -> str:
    """The first version that works, of what a project uses of a package; empty where any will do."""
    if met is None or "floors" not in row:
        return str(row.get("first", ""))
    return max((version for package, version in met if package == row["import"][0]), key=numbers_of, default="")


def advice_on_requirement(
    name: str, versions: str, met: Collection[tuple[str, str]] | None = None
) -> PackageAdvice | None:
    """What to say about a requirement such as `flash-attn` with the versions `==2.5`; None where it may stay.

    `versions` are clauses of pip, Poetry or conda, or nothing; `met` is what `floors_met` says of all files of the
    project, None where that is not known.
    """
    row = package_installed_as(name)
    if row is None:
        return None
    message = _MESSAGES.get(row["status"])
    if message is not None and not row.get("quiet"):
        blocks = "later" if row.get("installs") else ""
        imported = row["import"][0].partition(".")[0] if row["import"] else ""
        package, details = row.get("goes_with") or imported, (("status", str(row["status"])),)
        help_text = "; ".join(filter(None, (what_to_do(row), set_for(normalised(name), versions))))
        level = Level.INFO if row.get("parts") and met is not None else Level.MANUAL  # its imports say which
        return PackageAdvice(BOUND, message.format(name=name), help_text, package, blocks, details, level)
    first = row.get("first")
    if first is None or not _below(versions, numbers_of(first)):
        return None
    shown, needed = "".join(versions.split()), _needed(row, met)
    if not needed or not _below(versions, numbers_of(needed)):
        message = (
            f"the requirement {name} {shown} only allows releases older than {first}, the first with support for NPUs; "
            "the project does not use that support"
        )
        return PackageAdvice(TOO_OLD, message, "", normalised(name), level=Level.INFO)
    first = needed
    message = (
        f"the requirement {name} {shown} only allows releases older than {first}, the first that works with torch_npu"
    )
    help_text = f"require {name}>={first}" + (f"; {row['raising']}" if "raising" in row else "")
    loads = (version for version, names in row.get("floors", {}).items() if "*" in names)
    blocks = "import" if any(_below(versions, numbers_of(version)) for version in loads) else ""
    wanted = (("wanted", f"{name}>={first}"), *((BROUGHT, str(each)) for each in row.get("brings", ())))
    return PackageAdvice(TOO_OLD, message, help_text, normalised(name), blocks, wanted)


def advice_on_clone(name: str) -> PackageAdvice | None:
    """What to say about a repository of this name that is cloned to be built; None where it may be, as `plugin` may."""
    row = package_installed_as(name)
    return advice_on_requirement(name, "") if row is not None and row["status"] != "plugin" else None


def numbers_of(version: str) -> tuple[int, ...]:
    """`4.32.0` as numbers, which are compared as such."""
    return tuple(int(part) for part in version.split("."))


def _below(versions: str, first: tuple[int, ...]) -> bool:
    """True where no version from `first` on fits the clauses; `||` and markers are not judged."""
    if "|" in versions:
        return False
    for clause in versions.split(","):
        match = _CLAUSE.match(clause.strip())
        if match is None:
            continue
        sign, numbers = match[1] or "==", numbers_of(match[2])
        if sign in ("==", "===", "=") and numbers < first[: len(numbers)] + (0,) * (len(numbers) - len(first)):
            return True
        if sign == "<=" and numbers < first[: len(numbers)]:
            return True
        if sign == "<" and numbers + (0,) * (len(first) - len(numbers)) <= first:
            return True
        if sign in ("~=", "~", "^") and ceiling(sign, numbers) <= first:
            return True
    return False
