"""compare.html: the run as a strip, a scatter of distances, the modules, and the operator that diverged first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import transplt
from transplt.base.grouped import grouped
from transplt.base.render.cell import figure, many, visible
from transplt.base.render.templates import asset, fill
from transplt.precision.compare import Comparison
from transplt.precision.elements import elements
from transplt.precision.first_line import sentence
from transplt.precision.graph import mark, picture, read_graph
from transplt.precision.match import Match
from transplt.precision.rank_detail import Detail
from transplt.precision.record import BACKWARD, FORWARD, MODULE, Tensor
from transplt.precision.weight_bars import weight_bars

#: What a colour means; a distance is a multiple of the tolerance.
LEVELS = ("equal", "below a tenth of the tolerance", "within it", "beyond it", "over 100 times", "on one side only")
_CELL, _COLUMNS = 12, 80
#: More operators share a cell, and the worst of them is shown.
_MOST_CELLS = 4000
_WIDTH, _HEIGHT = 900, 300
_MOST_ROWS, _MOST_NODES, _MOST_FRAMES = 200, 400, 12
_PICTURE_ROWS, _PICTURE_COLUMNS = 32, 64


def render(found: Comparison, detail: Detail, *, advice: bool, graph: str = "") -> bytes:
    """The bytes of the page, UTF-8. `graph` is the file of a graph that is drawn in it."""
    model = detail.matched.model
    bad = [line for line in detail.lines if line.reached != "Yes"]
    drawn = None
    if graph:
        verdict, nodes = detail.compared.verdict, read_graph(graph)
        drawn = picture(graph, nodes, mark(nodes, model, verdict.match if verdict is not None else None))
    return fill(
        "compare.html.j2",
        sentence=visible(sentence(found)),
        facts=_facts(found, detail),
        advice=str(detail.advice) if advice else "",
        levels=LEVELS,
        strips=_strips(detail),
        weights=weight_bars(detail.matched),
        scatter=_scatter(model),
        tree=_tree(detail),
        graph=drawn,
        picture=_picture(detail),
        rows=[
            (
                line.index, visible(line.npu_name), visible(line.bench_name), _shown(line.distance),
                _shown(line.metrics.figures.cosine if line.metrics else math.nan),
                _shown(line.metrics.figures.max_absolute if line.metrics else math.nan), visible(line.error),
            )
            for line in bad[:_MOST_ROWS]
        ],
        more=max(len(bad) - _MOST_ROWS, 0),
        css=asset("colors.css") + asset("report.css") + asset("compare.css"),
        script=asset("theme.js"),
    )  # fmt: skip


def _facts(found: Comparison, detail: Detail) -> list[tuple[str, str]]:
    at = detail.compared
    line = detail.ptdbg
    ptdbg = (
        "the dumps have no elements" if not detail.has_elements else visible(line.npu_name) if line else "no row is bad"
    )
    return [
        ("NPU", visible(found.npu.path)),
        ("Bench", visible(found.bench.path)),
        ("Shown", f"step {at.step}, rank {at.rank}"),
        ("Operators", f"{at.operators}, of which {at.differing} differ"),
        *([("After the last backward pass", behind)] if (behind := found.behind.not_compared) else []),
        ("Ranks", f"{len(found.npu.ranks)}"),
        ("Rule of ptdbg", ptdbg),
        ("transplt", transplt.__version__),
    ]


def _level(each: Match) -> int:
    if each.one_sided:
        return 5
    if each.beyond:
        return 4
    times = each.outputs
    return 0 if times == 0 else 1 if times < 0.1 else 2 if times <= 1 else 3 if times < 100 else 4


def _title(each: Match) -> str:
    return f"{visible(each.row.name)}: {'one side only' if each.one_sided else _times(each.outputs)}"


def _times(value: float) -> str:
    return (
        "equal" if value == 0 else "not comparable" if math.isinf(value) else f"{figure(value, 3)} times the tolerance"
    )


def _strips(detail: Detail) -> list[dict[str, Any]]:
    """Forward and backward pass apart, and what runs behind them."""
    matched = detail.matched
    parts = (
        ("Forward", [each for each in matched.model if each.row.phase == FORWARD]),
        ("Backward", [each for each in matched.model if each.row.phase == BACKWARD]),
        ("Gradients of parameters, and what follows", [*matched.gradients, *matched.optimizer, *matched.steps]),
    )
    return [{"title": title, **_strip(matches, detail)} for title, matches in parts if matches]


def _strip(model: Sequence[Match], detail: Detail) -> dict[str, Any]:
    share = max(1, math.ceil(len(model) / _MOST_CELLS))
    cells = []
    verdict = detail.compared.verdict
    for number in range(0, len(model), share):
        some = model[number : number + share]
        worst = max(some, key=_level)
        row, column = divmod(number // share, _COLUMNS)
        first = verdict is not None and any(each is verdict.match or each.position == verdict.position for each in some)
        cells.append(
            {"level": _level(worst), "x": column * _CELL, "y": row * _CELL, "title": _title(worst), "first": first}
        )
    rows = max(1, math.ceil(len(cells) / _COLUMNS))
    caption = f"{many(len(model), 'operator')}, {sum(_level(each) > 2 for each in model)} beyond the tolerance"
    return {"cells": cells, "cell": _CELL - 2, "width": _COLUMNS * _CELL, "height": rows * _CELL, "caption": caption}


def _scatter(model: Sequence[Match]) -> dict[str, Any]:
    drawn = [(number, each) for number, each in enumerate(model) if 0 < each.outputs < math.inf]
    if len(drawn) > _MOST_CELLS:
        drawn = sorted(sorted(drawn, key=lambda pair: -pair[1].outputs)[:_MOST_CELLS], key=lambda pair: pair[0])
    powers = [math.log10(each.outputs) for _, each in drawn]
    low, high = math.floor(min([-1.0, *powers])), math.ceil(max([1.0, *powers]))
    bottom = _HEIGHT - 30

    def y(power: float) -> float:
        return round(bottom - (power - low) / (high - low) * (bottom - 10), 1)

    step = max(1, (high - low) // 8)
    points = [
        {
            "x": round(60 + (_WIDTH - 76) * number / max(len(model) - 1, 1), 1), "y": y(power),
            "title": _title(each), "level": _level(each),
        }
        for (number, each), power in zip(drawn, powers, strict=True)
    ]  # fmt: skip
    ticks = [{"y": y(power), "text": figure(10.0**power)} for power in range(low, high + 1, step)]
    return {"points": points, "ticks": ticks, "width": _WIDTH, "height": _HEIGHT, "bound": y(0.0)}


def _tree(detail: Detail) -> list[dict[str, Any]]:
    """The modules as construct.json nests them, each with the worst output of all that ran in it."""
    record = detail.matched.npu
    worst: dict[str, float] = {}
    order: dict[str, None] = {}
    for each in detail.matched.model:
        if each.npu is None or each.one_sided:
            continue
        name = each.npu.name if each.npu.kind == MODULE else record.parents.get(each.npu.name, "")
        seen = set()
        while name and name not in seen:
            seen.add(name)
            if ".forward." in name:
                order.setdefault(name)
            worst[name] = max(worst.get(name, 0.0), each.outputs)
            name = record.parents.get(name, "")
    below = grouped((record.parents.get(name, ""), name) for name in [*order][:_MOST_NODES])

    def node(name: str, depth: int) -> dict[str, Any]:
        value = worst.get(name, 0.0)
        width = 2 if value <= 0 else 300 if math.isinf(value) else min(300, max(4, round(60 * (2 + math.log10(value)))))
        nodes = [node(each, depth + 1) for each in below.get(name, ())] if depth < 40 else []
        shown = visible(name.removeprefix("Module."))
        return {"name": shown, "bad": value > 1, "width": width, "text": _times(value), "below": nodes}

    return [node(name, 0) for name in below.get("", ())]


def _picture(detail: Detail) -> dict[str, Any] | None:
    """The tensor of the verdict: figures of both sides, and where its elements differ."""
    verdict = detail.compared.verdict
    if verdict is None or verdict.tensors is None:
        return None
    npu, bench = verdict.tensors
    rows = [
        (side, tensor.dtype, str([*tensor.shape]), *(_shown(value) for value in tensor[3:7]))
        for side, tensor in (("NPU", npu), ("bench", bench))
    ]
    title = f"{visible(verdict.match.row.name)} {visible(npu.name)}"
    frames = "\n".join(visible(frame.replace("\n", " ")) for frame in detail.compared.source[:_MOST_FRAMES])
    return {"title": title, "rows": rows, "frames": frames, **_differences(detail, npu, bench)}


def _differences(detail: Detail, npu: Tensor, bench: Tensor) -> dict[str, Any]:
    """Squares of the tensor, flattened to its last axis, by their largest difference."""
    ours, theirs = elements(detail.matched.npu, npu), elements(detail.matched.bench, bench)
    if ours is None or theirs is None or ours.shape != theirs.shape or not ours.size:
        return {"cells": []}
    last = ours.shape[-1] if ours.ndim > 1 else ours.size
    n, b = ours.reshape(-1, last).astype("f8"), theirs.reshape(-1, last).astype("f8")
    gaps = abs(n - b)
    largest = float(abs(b).max()) or 1.0
    height, width = min(_PICTURE_ROWS, n.shape[0]), min(_PICTURE_COLUMNS, last)
    cells = []
    for i in range(height):
        band = gaps[i * n.shape[0] // height : (i + 1) * n.shape[0] // height]
        for j in range(width):
            value = float(band[:, j * last // width : (j + 1) * last // width].max()) / largest
            level = 5 if value != value else 0 if value == 0 else 1 if value < 1e-5 else 2 if value < 1e-3 else 3
            cells.append({"x": j * 14, "y": i * 10, "w": 13, "h": 9, "level": 4 if value >= 0.1 else level})
    caption = (
        f"Each square is a part of the tensor, by its largest difference against the largest element "
        f"({figure(largest, 4)}): green below 1e-5, yellow below 0.001, orange below 0.1, red above."
    )
    return {"cells": cells, "width": width * 14, "height": height * 10, "caption": caption}


def _shown(value: float | None) -> str:
    return "" if value is None or value != value else figure(value)
