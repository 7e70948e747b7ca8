"""A survey as one page that needs no network: sums, what would unblock most, and a table that can be sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transplt
from transplt.base.render.cell import first_of, many, shortened
from transplt.base.render.templates import asset, fill
from transplt.engine.actions.action import BLOCKS_TEXT
from transplt.engine.actions.effort import percent
from transplt.project.report.action_lines import about, converted
from transplt.project.survey.portfolio import SHARED, STOPS

_MOST, _MOST_TEXT, _MOST_ACTIONS, _MOST_NAMES = 60, 300, 30, 40


def survey_page(value: dict[str, Any]) -> bytes:
    """The bytes of the page, UTF-8."""
    total = value["total"]
    shared = [each for each in value["unblocking"] if each["kind"] in SHARED]
    own = [each for each in value["unblocking"] if each["kind"] not in SHARED]
    most = max((len(each["blocks"]) for each in shared), default=1)
    return fill(
        "survey.html.j2",
        version=transplt.__version__,
        tiles=[
            ("repositories", f"{total['analysed']}", f"{total['failed']} failed" if total["failed"] else ""),
            (
                "of the CUDA places in Python converted automatically",
                percent(total["share_automatic"], total["counted"]),
                f"{total['done']} of {total['counted']}; {many(total['left'], 'finding')} left in all files",
            ),
            ("work left", about(total["hours"]), "rough, for someone who knows the code: half or double is possible"),
            (
                "repositories with a known blocker", f"{total['analysed'] - total['nothing_stops']}",
                "at import or at the first step; stopped by their own code or requirements only: "
                f"{total['nothing_missing'] - total['nothing_stops']}",
            ),
        ],
        blocks=[(BLOCKS_TEXT[kind], count) for kind, count in total["blocks"].items() if count],
        unblocking=[
            {
                "title": _cut(each["title"]), "kind": each["kind"], "last": len(each["last"]),
                "count": len(each["blocks"]), "width": round(100 * len(each["blocks"]) / most, 1),
                "last_width": round(100 * len(each["last"]) / most, 1), "names": _names(each["blocks"]),
            }
            for each in shared[:_MOST]
        ],
        more=max(len(shared) - _MOST, 0),
        own=[
            {"title": _cut(each["title"]), "count": len(each["blocks"]), "names": _names(each["blocks"])}
            for each in own[:_MOST]
        ],
        order=[*in_turn(value["order"])][:_MOST],
        rows=[_row(row) for row in value["repositories"]],
        failed=[{**row, "source": _cut(row["source"])} for row in value["failed"]],
        packages=[
            {
                "name": each["package"], "open": len(each["open_in"]), "used": len(each["used_in"]),
                "says": _cut(each["says"]), "instead": _cut(each["instead"]),
            }
            for each in value["packages"]
        ],
        kernels=[{"name": _cut(each["kernel"]), "count": len(each["in"]), "names": _names(each["in"])}
                 for each in value["kernels"]],
        trend=_trend(value["trend"]) if "trend" in value else None,
        css=asset("colors.css") + asset("report.css") + asset("profile.css") + asset("survey.css"),
        script=asset("theme.js") + asset("survey.js"),
    )  # fmt: skip


def in_turn(order: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has to be solved together before a repository has none of it left."""
    titles: list[str] = []
    for each in order:
        titles.append(_cut(each["title"]))
        if each["finishes"]:
            yield {"title": "; ".join(titles), "done": each["done"]}
            titles = []


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": row["name"],
        "source": _cut(row["source"]),
        "commit": row["commit"][:12],
        "share": percent(row["share_automatic"], row["counted"]),
        "converted": converted(row["done"], row["counted"]),
        "share_value": row["share_automatic"],
        "width": round(row["share_automatic"] * 100, 1),
        "left": row["left"],
        "work": about(row["hours"]),
        "hours": "<1" if 0 < row["hours"] < 1 else f"{row['hours']:,.0f}",
        "hours_value": row["hours"],
        "stops": sum(row["blocks"][kind] for kind in STOPS),
        "later": sum(count for kind, count in row["blocks"].items() if kind not in STOPS),
        "kernels": sum(each["kind"] == "kernel" for each in row["things"]),
        "packages": sum(each["kind"] == "package" for each in row["things"]),
        "torch": row["torch"]["version"],
        "why": _cut(row["torch"]["why"]),
        "actions": [
            {"title": _cut(each["title"]), "hours": about(each["hours"]),
             "blocks": BLOCKS_TEXT[each["blocks"]],
             "places": each["places"], "first": _cut(each["first"])}
            for each in row["actions"][:_MOST_ACTIONS]
        ],
        "more": max(len(row["actions"]) - _MOST_ACTIONS, 0),
        "kernel_names": _names([each["name"] for each in row["things"] if each["kind"] == "kernel"]),
        "package_rows": [
            {"name": each["package"], "instead": _cut((each["instead"] or each["says"]).removeprefix("instead: "))}
            for each in row["packages"]
            if each["open"]
        ],
        "unread": row["unread"][:_MOST_NAMES],
    }  # fmt: skip


def _trend(trend: dict[str, Any]) -> dict[str, Any]:
    return {
        "same_program": trend["same_program"],
        "total": [(name.replace("_", " "), old, new) for name, (old, new) in trend["total"].items() if old != new],
        "rows": [
            {
                "name": row["name"],
                "changed": [(name.replace("_", " "), old, new) for name, (old, new) in row["changed"].items()],
                "solved": _names(row["solved"]),
                "appeared": _names(row["appeared"]),
            }
            for row in trend["repositories"]
        ],
        **{word: _names(trend[word]) for word in ("added", "removed", "failing")},
    }


def _names(names: list[str]) -> str:
    return first_of([*map(_cut, names)], _MOST_NAMES)


def _cut(text: str) -> str:
    return shortened(text, _MOST_TEXT)
