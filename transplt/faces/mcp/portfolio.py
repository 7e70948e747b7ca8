"""A survey for an agent, in small answers: the repositories, what would unblock most, the packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transplt.base.errors import UsageError, shown
from transplt.faces.mcp.answers import cut, page
from transplt.faces.mcp.bench import WRITE, Answer, Arguments, Bench, read_json
from transplt.faces.mcp.folders import Folders
from transplt.project.checking.inputs import PROJECT_MARKS
from transplt.project.survey.portfolio import STOPS

_MOST_NAMES = 5
_Row = dict[str, Any]
#: The folder of a survey, unless another is asked for.
SURVEY = "transplt-survey"
#: What a list may be of.
LISTS = ("repositories", "unblocking", "packages")


def sums(value: _Row) -> _Row:
    """What the portfolio comes to."""
    total = value["total"]
    kept = ("repositories", "failed", "share_automatic", "left", "nothing_stops", "nothing_missing")
    return {**{name: total[name] for name in kept}, "hours": [total["hours_low"], total["hours_high"]]}


def listed(value: _Row, what: str, folders: Folders) -> list[_Row]:
    """One of `LISTS`; repositories that take least first, those that could not be analysed last."""
    if what == "unblocking":
        return [
            {"what": cut(each["title"]), "kind": each["kind"], "last_in": len(each["last"]),
             "stops_in": len(each["blocks"]), "repositories": _names(each["blocks"])}
            for each in value["unblocking"]
        ]  # fmt: skip
    if what == "packages":
        return [
            {"package": each["package"], "known": cut(each["says"]), "instead": cut(each["instead"]),
             "in_the_way_in": len(each["open_in"]), "used_in": len(each["used_in"]),
             "repositories": _names(each["open_in"] or each["used_in"])}
            for each in value["packages"]
        ]  # fmt: skip
    rows = sorted(value["repositories"], key=lambda row: (row["hours"], row["name"]))
    failed = [
        {"name": row["name"], "path": folders.display(Path(row["source"])), "failed": cut(row["reason"])}
        for row in value["failed"]
    ]
    return [_repository(row, folders) for row in rows] + failed


def _repository(row: _Row, folders: Folders) -> _Row:
    stops = [cut(each["title"]) for each in row["things"] if each["blocks"] in STOPS]
    return {
        "name": row["name"],
        "path": folders.display(Path(row["source"])),
        "share_automatic": row["share_automatic"],
        "left": row["left"],
        "hours": [row["hours_low"], row["hours_high"]],
        "actions": len(row["actions"]),
        "first": cut(row["actions"][0]["title"]) if row["actions"] else "",
        "stopped_by": stops[:_MOST_NAMES],
        "stopped_by_in_all": len(stops),
    }


def _names(names: list[str]) -> list[str]:
    return [cut(name) for name in names[:_MOST_NAMES]]


async def survey_portfolio(bench: Bench, given: Arguments) -> Answer:
    """What `transplt survey` finds in folders, a list of it in pages."""
    folders = bench.folders
    out = folders.inside(given["output"]) if "output" in given else (folders.output or folders.root) / SURVEY
    paths = [folders.inside(name) for name in given["paths"]] if "paths" in given else _projects(folders, out)
    if not paths:
        raise UsageError(f"{shown(folders.root)} holds no folders: name some in `paths`")
    if any(path == out or path in out.parents for path in paths):
        raise UsageError(
            f"the survey itself would lie in a project, {folders.display(out)}: give `output`, or the person may start "
            "the server for the folder above or with --output DIR; `check` looks at a single project"
        )
    options = [f"--torch-version={given['torch_version']}"] if "torch_version" in given else []
    await bench.run(
        ["survey", "--quiet", "-o", str(out), *options, "--", *map(str, paths)], WRITE,
        late=": call it again, what is done is kept",
    )  # fmt: skip
    value = read_json(out / "survey.json")
    show = given.get("show", LISTS[0])
    return {
        "written": folders.display(out),
        "reports": ["report.html", "survey.xlsx"],
        "portfolio": sums(value),
        **page(show, listed(value, show, folders), given.get("cursor"), given.get("most", 10)),
    }


def _projects(folders: Folders, out: Path) -> list[Path]:
    """The folder of the server where it is a project; else those in it, without hidden ones, links, migrated copies,
    and those of our output."""
    if any((folders.root / mark).exists() for mark in PROJECT_MARKS):
        return [folders.root]
    found = sorted(path for path in folders.root.iterdir() if path.is_dir() and not path.is_symlink())
    ours = [path for path in (out, folders.output) if path is not None]
    return [
        path
        for path in found
        if not path.name.startswith(".")
        and not path.name.endswith("_msft")
        and not any(path == each or path in each.parents for each in ours)
    ]
