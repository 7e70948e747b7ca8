"""The row of one repository: what `transplt analyze` finds in it, as a portfolio needs it."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from transplt.base.disk.git_command import clone, remote_head
from transplt.base.finding import Finding
from transplt.base.render.cell import visible
from transplt.engine.actions.action import BLOCKS_TEXT, Action
from transplt.engine.actions.actions import separate
from transplt.engine.actions.groups import Group, Groups
from transplt.project.garbage_collection import collect_rarely
from transplt.project.report.analysis_summary import Summary, summarize
from transplt.project.survey.fingerprint import of_commit, of_folder, plan_of
from transplt.project.survey.task import Answer, Task
from transplt.project.tree import analyse_tree
from transplt.rules.pages import BLOCKS, DiagnosticError, load

#: Codes of what no torch supports: removed in all releases that torch_npu has, or without a kernel in each.
_GONE = frozenset({"NPU514", "NPU526"})
_KERNELS = frozenset({"kernel", "sources", "build"})
_ORDERS = {"sources": "Port the C++ code that names CUDA", "build": "Remove the build with nvcc"}
_BY = {"package": "package", "api": "api", "extension": "kernel"}
#: The package that findings of a code are about which name none.
_ABOUT = {"NPU145": "lightning", "NPU146": "xformers"}
_MOST_ROWS = 200
#: Under what an action may stand, in the order of every list.
_ORDER = tuple(BLOCKS_TEXT)


def measured(task: Task, scratch: str) -> Answer:
    """Analyses a repository, cloned into `scratch` if it is a URL. TranspltError or OSError where it cannot be."""
    collect_rarely()
    folder, commit = task.source, ""
    if task.is_url:
        commit = remote_head(task.source)
        if task.known and of_commit(task, commit) == task.known:
            return Answer()
        folder = os.path.join(scratch, "clone")
        # The branch may have moved between the two.
        commit = clone(task.source, folder)
    plan = plan_of(task, folder)
    content = of_folder(task, plan)
    summary = summarize(analyse_tree(plan))
    row = {"name": task.name, "source": task.source, "commit": commit, **row_of(summary)}
    text = json.dumps(row, ensure_ascii=True, sort_keys=True)
    return Answer(of_commit(task, commit) if task.is_url else content, text, "", *_cost())


def _cost() -> tuple[float, int]:
    if sys.platform == "win32":
        return 0.0, 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return round(used.ru_utime + used.ru_stime, 2), used.ru_maxrss // unit


def row_of(summary: Summary) -> dict[str, Any]:
    """What a survey keeps of an analysis; docs/survey.md describes the keys."""
    result, effort = summary.result, summary.effort
    actions = separate(summary.actions)
    blocks = Counter(action.stands for action in actions)
    return {
        "python_files": len(result.python_files),
        "torch": {
            "version": result.target.version,
            "why": visible(result.target.why),
            "lowest": "" if any(map(_GONE.intersection, (each.codes for each in summary.actions)))
            else summary.versions.lowest,
        },
        "automatic": effort.automatic,
        "left": effort.left,
        "counted": effort.counted,
        "done": effort.done,
        "share_automatic": round(effort.share, 3),
        "hours": effort.hours,
        "hours_low": round(effort.hours / 2, 1),  # half or double is possible: a judgement, no measurement
        "hours_high": round(effort.hours * 2, 1),
        "blocks": {kind: blocks[kind] for kind in _ORDER},
        "actions": [
            {
                "title": visible(each.title), "blocks": each.stands, "effort": each.effort.value, "hours": each.hours,
                "codes": list(each.codes), "places": each.lines, "first": visible(each.first),
            }
            for each in actions[:_MOST_ROWS]
        ],
        "things": things_of(result.findings, summary.actions),
        "packages": packages_of(summary),
        "unread": [visible(each.path) for each in result.unread][:_MOST_ROWS],
        "complete": result.complete,
    }  # fmt: skip


def things_of(findings: Iterable[Finding], actions: Iterable[Action]) -> list[dict[str, Any]]:
    """The distinct things that are left, by what they are: a package, a kernel, an API or something else. What stands
    aside in the `actions`, or concerns containers and jobs alone, blocks no more here.

    Unlike actions none are put together, and a kernel has the same title wherever its sources lie, so that things of
    several repositories can be counted.
    """
    every = sorted(findings, key=lambda each: (*each.sort_key(), each.code, each.api, each.message))
    groups = Groups(every)
    stands = {id(finding): part.stands for part in separate(actions) for finding in part.findings}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for finding in every:
        if not finding.open:
            continue
        group = groups.of(finding)
        kind, name, title = thing(group)
        blocks = group.blocks if (apart := stands[id(finding)]) in BLOCKS else apart
        row = found.setdefault(
            (kind, title), {"kind": kind, "name": name, "title": title, "blocks": blocks, "places": 0}
        )
        row["places"] += 1
        row["blocks"] = min(row["blocks"], blocks, key=_ORDER.index)
    return sorted(found.values(), key=lambda row: (_ORDER.index(row["blocks"]), row["kind"], row["title"]))


def thing(group: Group) -> tuple[str, str, str]:
    """Kind, name and title of what a group is about."""
    name = visible(group.name)
    if group.kind == "kernel":
        name = name.partition(" (")[0]
        return "kernel", name, f"Replace the CUDA code of {name}"
    if group.kind in ("sources", "build"):
        return "native code", name, _ORDERS[group.kind]
    try:
        page = load(group.kind)
    except (DiagnosticError, ValueError):
        page = None
    if page is not None and page.by in _BY and name:
        return _BY[page.by], name, visible(group.title)
    title = visible(group.title)
    if group.kind in _ABOUT:
        return "package", _ABOUT[group.kind], title
    if name and (group.kind in ("lock", "third-party") or (page is not None and page.by == "file")):
        title = title.replace(name, "...")
    return "other", name, title


def packages_of(summary: Summary) -> list[dict[str, Any]]:
    """Third-party packages that a finding speaks of: whether they are in the way, and the help on a replacement."""
    found: dict[str, dict[str, Any]] = {}
    for finding in summary.rows("third-party"):
        package = visible(finding.api).partition(".")[0]
        if package in ("", "torch"):  # what torch itself has no more is among the things that are left
            continue
        row = found.setdefault(package, {"package": package, "open": 0, "places": 0, "says": "", "instead": ""})
        row["places"] += 1
        row["open"] += finding.open
        if not row["says"] or (finding.open and row["open"] == 1):
            row["says"], row["instead"] = visible(finding.message), visible(finding.help)
    return [found[package] for package in sorted(found)]
