"""A survey for a terminal: what it comes to, what would unblock most, and a line for each repository."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transplt.base.render.cell import many
from transplt.engine.actions.effort import percent
from transplt.project.survey.portfolio import SHARED

_MOST, _MOST_NAME = 10, 40


def survey_text(value: dict[str, Any]) -> str:
    """The lines, each ended."""
    return "".join(f"{line}\n" for line in _lines(value))


def hours(low: float, high: float) -> str:
    """A range of hours, without digits that nobody can mean."""
    if high < 0.05:
        return "0"
    return f"{low:,.0f} to {high:,.0f}" if high >= 10 else f"{low:.1f} to {high:.1f}"


def _lines(value: dict[str, Any]) -> Iterator[str]:
    total = value["total"]
    failed = f", {total['failed']} failed" if total["failed"] else ""
    yield f"{total['analysed']} {'repository' if total['analysed'] == 1 else 'repositories'} analyzed{failed}"
    if not total["analysed"]:
        yield from _failed(value)
        return
    yield (
        f"  {percent(total['share_automatic'])} of the places in Python automatic; "
        f"{many(total['left'], 'place')} left, "
        f"about {total['hours']:,.0f} hours ({hours(total['hours_low'], total['hours_high'])})"
    )
    own = total["nothing_missing"] - total["nothing_stops"]
    yield (
        f"  {total['nothing_stops']} of {total['analysed']} have no known blocker up to the first step; "
        f"{own} more stopped only by code of their own"
    )
    shared = [each for each in value["unblocking"] if each["kind"] in SHARED]
    if shared:
        yield "  blockers in packages, kernels and APIs (those in one repository's own code are in the HTML report)"
        yield "    only  with others  (in so many repositories)"
        for each in shared[:_MOST]:
            alone = len(each["last"])
            yield f"    {alone:4}  {len(each['blocks']) - alone:11}  {each['title']}"
        if len(shared) > _MOST:
            yield f"    and {len(shared) - _MOST} more in the report"
    if value["repositories"]:
        yield "  automatic         hours  repository"
    for row in sorted(value["repositories"], key=lambda row: (row["hours"], row["name"])):
        first = row["actions"][0]["title"] if row["actions"] else "nothing is left"
        spent = hours(row["hours_low"], row["hours_high"])
        yield (
            f"  {percent(row['share_automatic']):>9} {spent:>13}  {row['name'][:_MOST_NAME]}: "
            f"{first if len(first) <= 70 else first[:67] + '...'}"
        )
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
    for word in ("added", "removed", "failing"):
        if trend[word]:
            yield f"    {word}: {', '.join(trend[word])}"
