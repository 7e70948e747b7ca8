"""Versions of a package that a project asks for, against the first one that can do something, or can no more."""

from __future__ import annotations

from functools import cache
from typing import Any

from transplt.rules.tables import read_table


def only_older(asked: str, first: str) -> bool:
    """True when every version that is asked for is older than `first`; `asked` is a specifier (`>=4.40,<4.50`)."""
    from packaging.version import Version

    wanted = Version(first)
    return any(
        (operator in ("==", "===", "<=", "<") and version < wanted) or (operator == "<" and version == wanted)
        or (operator == "~=" and version.release[:-1] < wanted.release[: len(version.release) - 1])
        for operator, version in _parts(asked)
    )


def may_be_older(asked: str, first: str) -> bool:
    """True when a version that is asked for by name, or as the lowest, is older than `first`."""
    return any(_below(asked, first))


def only_newer(asked: str, first: str) -> bool:
    """True when every version that is asked for is `first` or newer."""
    return not all(_below(asked, first))


def _below(asked: str, first: str) -> list[bool]:
    """Whether the versions that are asked for by name, or as the lowest, are older than `first`."""
    from packaging.version import Version

    return [version < Version(first) for operator, version in _parts(asked) if operator not in ("<", "<=", "!=")]


def _parts(asked: str) -> list[tuple[str, Any]]:
    """The clauses of a specifier, operator and version; nothing for what cannot be read."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return [(part.operator, Version(part.version.removesuffix(".*"))) for part in SpecifierSet(asked)]
    except (InvalidSpecifier, InvalidVersion):
        return []


def member(name: str) -> str:
    """What a reader knows a name of a package by: a class without the modules above it, all else below the package."""
    parts = name.split(".")[1:]
    of_class = next((index for index, part in enumerate(parts) if part[:1].isupper()), 0)
    return ".".join(parts[of_class:]) or name


@cache
def rows_of_gone() -> tuple[dict[str, Any], ...]:
    """What wheels say, and behind it what people wrote, which counts where both speak of a name."""
    tables = ("support/gone_names.json", "support/refused_calls.json")
    return tuple(row for table in tables for row in read_table(table)["packages"])


def packages_gone() -> frozenset[str]:
    """The packages whose versions, where a project asks for some, say whether it meets what is gone."""
    bounded = (row[key][0] for row in rows_of_gone() for key in ("until", "from") if key in row)
    return frozenset(bounded) | {name for row in rows_of_gone() for name in row.get("repository", ())}


@cache
def classes_told_of() -> set[str]:
    """The classes of packages that take a keyword no more, or call a method of theirs in another way."""
    of_methods = {name.rpartition(".")[0] for row in rows_of_gone() if "overridden" in row for name in row["names"]}
    return of_methods.union(*(row["names"] for row in rows_of_gone() if "keyword" in row))
