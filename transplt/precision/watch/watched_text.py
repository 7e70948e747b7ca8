"""What the watch points found, as text and as JSON."""

from __future__ import annotations

from typing import Any

from transplt.base.render.cell import many, visible
from transplt.precision.first_line import place
from transplt.precision.watch.points import POINTS
from transplt.precision.watch.watching import Watched

FORMAT = 1
#: So many hits of a watch point are shown; the JSON has more.
_MOST_SHOWN = 5


def watch_text(watched: Watched, dumps: int) -> str:
    """The hits by watch point, the first ones with their places."""
    looked = f"{many(len(watched.steps), 'step')} of {many(len(watched.ranks), 'rank')}" + (
        f" in {dumps} dumps" if dumps > 1 else ""
    )
    if not watched.hits:
        head = f"transplt anomalies: none of {many(len(watched.points), 'watch point')} is hit in {looked}"
    else:
        first = min((hits[0] for hits in watched.hits.values()), key=lambda hit: (hit.step, hit.rank))
        head = f"transplt anomalies: {many(len(watched.hits), 'watch point')} of {len(watched.points)} hit in {looked}"
        head += f"; the first in step {first.step}"
    lines = [head]
    for point in watched.points:
        if point.name not in watched.hits:
            continue
        hits, count = watched.hits[point.name], watched.counts[point.name]
        lines += ["", f"{point.name} ({point.guide}): {many(count, 'time')}", f"  {point.meaning}"]
        for hit in hits[:_MOST_SHOWN]:
            dump = f"{hit.dump}, " if dumps > 1 else ""
            line = visible(f"{dump}step {hit.step}, rank {hit.rank}: {hit.row} {hit.tensor}: {hit.why}")
            where = place(hit.frames)
            lines.append(f"  {line}, at {where}" if where else f"  {line}")
        if count > _MOST_SHOWN:
            names = {(hit.row, hit.tensor) for hit in hits}
            lines.append(f"  and {count - _MOST_SHOWN} more, of {many(len(names), 'tensor')} in all (--format json)")
    if watched.remarks:
        lines += ["", *(f"note: {visible(remark)}" for remark in watched.remarks)]
    return "\n".join(lines) + "\n"


def list_text() -> str:
    """All watch points: name, the guide's name, bound, meaning."""
    rows = []
    for point in POINTS:
        bound = f" (bound {point.bound:g})" if point.bound is not None else ""
        mark = "*" if point.recommended else " "
        rows.append(f"{mark} {point.name:<24} {point.guide}: {point.meaning}{bound}")
    return "\n".join([*rows, "", "* recommended: checked unless --checks names others"]) + "\n"


def watch_json(watched: Watched) -> dict[str, Any]:
    """The hits as one object, each watch point in the order of the run."""
    return {
        "format": FORMAT,
        "steps": sorted(watched.steps),
        "ranks": sorted(watched.ranks),
        "tensors": watched.tensors,
        "remarks": [visible(remark) for remark in watched.remarks],
        "points": [
            {
                "name": point.name,
                "guide": point.guide,
                "times": watched.counts.get(point.name, 0),
                "hits": [
                    {"dump": visible(hit.dump), "step": hit.step, "rank": hit.rank, "operator": visible(hit.row),
                     "tensor": visible(hit.tensor), "why": hit.why, "source": place(hit.frames)}
                    for hit in watched.hits.get(point.name, ())
                ],
            }
            for point in watched.points
        ],
    }  # fmt: skip
