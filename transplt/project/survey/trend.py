"""What changed between two surveys: pure, from their documents."""

from __future__ import annotations

from typing import Any

#: Figures that are compared of a repository, and of all of them.
_FIGURES = ("share_automatic", "left", "automatic", "hours", "hours_low", "hours_high", "commit")
_TOTALS = (
    "repositories", "analysed", "failed", "nothing_stops", "nothing_missing", "share_automatic", "automatic", "left",
    "hours", "hours_low", "hours_high",
)  # fmt: skip


def trend(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Pairs (before, now) in sum and for each repository that is in both and differs.

    Repositories are the same when their sources are, or else their names. `same_program` is whether one version of
    transplt made both; `failing` are those that could be analysed before and now cannot.
    """
    by_source = {row["source"]: row for row in before["repositories"]}
    by_name = {row["name"]: row for row in before["repositories"]}
    found, added, matched = [], [], set()
    for row in now["repositories"]:
        old = by_source.get(row["source"]) or by_name.get(row["name"])
        if old is None:
            added.append(row["name"])
            continue
        matched.add(old["name"])
        one, other = _things(old), _things(row)
        changed = {name: [old[name], row[name]] for name in _FIGURES if old[name] != row[name]}
        solved, appeared = sorted(one - other), sorted(other - one)
        if changed or solved or appeared:
            found.append({"name": row["name"], "changed": changed, "solved": solved, "appeared": appeared})
    failing = {row["source"] for row in now["failed"]} | {row["name"] for row in now["failed"]}
    gone = [row for row in before["repositories"] if row["name"] not in matched]
    return {
        "same_program": before["version"] == now["version"],
        "total": {name: [before["total"][name], now["total"][name]] for name in _TOTALS},
        "repositories": found,
        "added": added,
        "removed": [row["name"] for row in gone if not {row["name"], row["source"]} & failing],
        "failing": [row["name"] for row in gone if {row["name"], row["source"]} & failing],
    }


def _things(row: dict[str, Any]) -> set[str]:
    return {each["title"] for each in row["things"]}
