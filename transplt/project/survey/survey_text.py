"""A survey for a terminal: what it comes to, what would unblock most, and a line for each repository."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transplt.base.render.cell import many, shortened
from transplt.engine.actions.effort import percent
from transplt.project.report.action_lines import about, converted
from transplt.project.survey.portfolio import SHARED

_MOST, _MOST_NAME, _MOST_TITLE = 10, 40, 80


def survey_text(value: dict[str, Any]) -> str:
    """The lines, each ended."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: dict[str, Any]) -> Iterator[str]:
    total = value["total"]
    failed = f", {total['failed']} failed" if total["failed"] else ""
    every = many(total["analysed"], "repository")
    yield f"{every} analyzed{failed}"
    if not total["analysed"]:
        yield from _failed(value)
        return
    left = f"{many(total['left'], 'finding')}, {about(total['hours'])} of work" if total["left"] else "nothing"
    yield f"  {converted(total['done'], total['counted'])}; left in all files: {left}"
    stopped, own = total["analysed"] - total["nothing_stops"], total["nothing_missing"] - total["nothing_stops"]
    whose = "its" if own == 1 else "their"
    in_own = f", {own} of them only in {whose} own code or requirements (report.html lists these)" if own else ""
    yield f"  known blockers at import or at the first step: {stopped} of {every}{in_own}"
    shared = [each for each in value["unblocking"] if each["kind"] in SHARED]
    if shared:
        yield "  packages, kernels and APIs that stop programs at import or at the first step"
        yield "  (repositories that each stops: in all, and those that no other line of this list stops)"
        yield "     in all  only it  what to do"
        for each in shared[:_MOST]:
            yield f"  {len(each['blocks']):>9}  {len(each['last']):>7}  {each['title']}"
        if len(shared) > _MOST:
            yield f"    and {len(shared) - _MOST} more in report.html"
    if value["repositories"]:
        yield "  converted  work left          repository (least work first): first action"
    for row in sorted(value["repositories"], key=lambda row: (row["hours"], row["name"])):
        first = "nothing is left"
        if row["actions"]:
            first = f"{shortened(row['actions'][0]['title'], _MOST_TITLE)} ({row['actions'][0]['first']})"
        share = percent(row["share_automatic"], row["counted"])
        yield f"  {share:>9}  {about(row['hours']):17}  {row['name'][:_MOST_NAME]}: {first}"
    yield from _failed(value)
    if "trend" in value:
        yield from _trend(value["trend"])


def _failed(value: dict[str, Any]) -> Iterator[str]:
    for row in value["failed"]:
        yield f"     failed           {row['name'][:_MOST_NAME]}: {row['reason']}"


def _trend(trend: dict[str, Any]) -> Iterator[str]:
    yield "  since the earlier survey (before, now):"
    for name, (old, new) in trend["total"].items():
        if old != new:
            yield f"    {name.replace('_', ' ')}: {old}, {new}"
    for row in trend["repositories"]:
        changed = "; ".join(f"{name.replace('_', ' ')} {old}, {new}" for name, (old, new) in row["changed"].items())
        gone = f"; no longer: {', '.join(row['solved'])}" if row["solved"] else ""
        come = f"; new: {', '.join(row['appeared'])}" if row["appeared"] else ""
        yield f"    {row['name']}: {changed or 'the same figures'}{gone}{come}"
    yield from (f"    {word}: {', '.join(trend[word])}" for word in ("added", "removed", "failing") if trend[word])
