"""Sums over all repositories of a survey: pure, from the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from transplt.base.grouped import grouped
from transplt.engine.actions.action import BLOCKS_TEXT
from transplt.project.survey.fingerprint import SCHEMA

#: What keeps a program from its first step.
STOPS = ("import", "first step")
#: What somebody may solve for all repositories at once; the rest is work in each of them.
SHARED = ("package", "kernel", "api")
#: What is summed up over all of them.
_SUMS = ("python_files", "automatic", "left", "counted", "done", "hours", "hours_low", "hours_high")
_Row = dict[str, Any]


def document(rows: Sequence[_Row], failed: Sequence[_Row], version: str) -> dict[str, Any]:
    """The survey as one JSON value. `rows` and `failed` (name, source, reason) are in the order that was asked for."""
    sums = {name: round(sum(row[name] for row in rows), 1) for name in _SUMS}
    counted, done = sums["counted"], sums["done"]
    return {
        "tool": "transplt",
        "version": version,
        "schema": SCHEMA,
        "total": {
            "repositories": len(rows) + len(failed),
            "analysed": len(rows),
            "failed": len(failed),
            "nothing_stops": sum(not _stopping(row) for row in rows),
            "nothing_missing": sum(not _missing(row) for row in rows),
            **sums,
            "share_automatic": round(done / counted, 3) if counted else 1.0,
            "blocks": {kind: sum(row["blocks"][kind] for row in rows) for kind in BLOCKS_TEXT},
        },
        "unblocking": unblocking(rows),
        "order": order(rows),
        "packages": packages(rows),
        "kernels": kernels(rows),
        "repositories": list(rows),
        "failed": list(failed),
    }


def _stopping(row: _Row) -> dict[tuple[str, str], _Row]:
    return {(each["kind"], each["title"]): each for each in row["things"] if each["blocks"] in STOPS}


def _missing(row: _Row) -> set[tuple[str, str]]:
    return {key for key in _stopping(row) if key[0] in SHARED}


def unblocking(rows: Iterable[_Row]) -> list[_Row]:
    """What stops programs at their import or first step; first what is the last in most repositories.

    `blocks` are the repositories in which it does, `only` those in which nothing else does, and `last` those in which
    it is the only package, kernel or API that does: what else stops them, their owners change in their own files.
    """
    found: dict[tuple[str, str], _Row] = {}
    for row in rows:
        stopping = _stopping(row)
        for key, each in stopping.items():
            names = {name: each[name] for name in ("kind", "name", "title")}
            entry = found.setdefault(key, {**names, "last": [], "only": [], "blocks": [], "places": 0})
            entry["blocks"].append(row["name"])
            entry["places"] += each["places"]
            if len(stopping) == 1:
                entry["only"].append(row["name"])
            if _missing(row) == {key}:
                entry["last"].append(row["name"])
    return sorted(
        found.values(),
        key=lambda each: (
            -len(each["last"]), -len(each["only"]), -len(each["blocks"]), each["kind"], each["title"],
        ),
    )  # fmt: skip


def order(rows: Sequence[_Row]) -> list[_Row]:
    """An order in which to solve packages, kernels and APIs: at each step what finishes most repositories.

    `done` is how many repositories none of them stops from then on.
    """
    left = {row["name"]: _missing(row) for row in rows}
    done, steps = sum(not each for each in left.values()), []
    left = {name: each for name, each in left.items() if each}
    while left:
        keys = sorted({key for each in left.values() for key in each})
        best = max(
            keys,
            key=lambda key: (
                sum(each == {key} for each in left.values()),
                sum(1 / len(each) for each in left.values() if key in each),
            ),
        )
        finished = [name for name, each in left.items() if each == {best}]
        done += len(finished)
        steps.append({"kind": best[0], "title": best[1], "finishes": finished, "done": done})
        left = {name: each - {best} for name, each in left.items() if each != {best}}
    return steps


def packages(rows: Iterable[_Row]) -> list[_Row]:
    """Third-party packages over all repositories, those in the way first; the words are those of the first one."""
    found: dict[str, _Row] = {}
    for row in rows:
        for each in row["packages"]:
            summary = {name: each[name] for name in ("package", "says", "instead")}
            entry = found.setdefault(each["package"], {**summary, "open_in": [], "used_in": []})
            entry["used_in"].append(row["name"])
            if each["open"]:
                if not entry["open_in"]:
                    entry["says"], entry["instead"] = each["says"], each["instead"]
                entry["open_in"].append(row["name"])
    return sorted(found.values(), key=lambda each: (-len(each["open_in"]), -len(each["used_in"]), each["package"]))


def kernels(rows: Iterable[_Row]) -> list[_Row]:
    """CUDA kernels by name, with the repositories that have one of it, the commonest first."""
    found = grouped((each["name"], row["name"]) for row in rows for each in row["things"] if each["kind"] == "kernel")
    return [
        {"kernel": name, "in": sorted(set(names))}
        for name, names in sorted(found.items(), key=lambda item: (-len(set(item[1])), item[0]))
    ]
