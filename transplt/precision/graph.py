"""The graph of a network, from ONNX or construct.json, as a picture with what diverged marked.

ONNX is read as protobuf, without its package: ModelProto.graph (7), GraphProto.node (1), of a node input (1), output
(2), name (3) and op_type (4). Source: onnx.proto of onnx 1.17.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transplt.base.errors import UsageError, shown
from transplt.base.grouped import grouped
from transplt.base.render.cell import figure, visible
from transplt.base.text.regular_file import Limit, read_regular
from transplt.precision.align import aligned
from transplt.precision.match import Match
from transplt.precision.proto import fields
from transplt.precision.record import API, FORWARD

_LARGEST = Limit("graphs are read", 2048 * 1024 * 1024)
_MOST_NODES = 2_000
_GRAPH, _NODE = 7, 1
_WIDE, _HIGH, _ROOM = 150, 26, 16
#: What functions of torch are called there, where the names are not the same but for case and `_`.
_ONNX = {
    "linear": "gemm", "matmul": "gemm", "mm": "gemm", "bmm": "gemm", "addmm": "gemm", "conv1d": "conv",
    "conv2d": "conv", "conv3d": "conv", "convtranspose2d": "convtranspose", "maxpool2d": "maxpool",
    "avgpool2d": "averagepool",
    "adaptiveavgpool2d": "globalaveragepool", "batchnorm": "batchnormalization", "layernorm": "layernormalization",
    "groupnorm": "groupnormalization", "iadd": "add", "truediv": "div", "embedding": "gather", "getitem": "gather",
    "cat": "concat", "view": "reshape", "permute": "transpose", "hardtanh": "clip", "clamp": "clip",
    "silu": "sigmoid", "interpolate": "resize",
}  # fmt: skip


@dataclass(slots=True)
class Node:
    """One node; `below` are the numbers of those that take what it makes (or, of a module, that lie in it)."""

    name: str
    kind: str
    below: list[int] = field(default_factory=list)
    times: float | None = None  #: the distance of its outputs as a multiple of the tolerance, where it is known
    first: bool = False  #: the verdict is about it


def read_graph(path: str) -> list[Node]:
    """The nodes of a file. UsageError for one that is none."""
    try:
        data = read_regular(path, _LARGEST)
    except OSError as error:
        raise UsageError(f"--graph {shown(path)}: cannot be read ({error})") from error
    try:
        if data[:1] == b"{":
            return _of_construct(json.loads(data))
        return _of_onnx(data)
    except (IndexError, ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"--graph {shown(path)}: is no ONNX and no construct.json ({error})") from error


def _of_onnx(data: bytes) -> list[Node]:
    graph = next((value for number, value in fields(data) if number == _GRAPH and isinstance(value, bytes)), b"")
    nodes: list[Node] = []
    makers: dict[bytes, int] = {}
    for number, value in fields(graph):
        if number != _NODE or not isinstance(value, bytes):
            continue
        parts = grouped((part, text) for part, text in fields(value) if isinstance(text, bytes))
        kind = b"".join(parts.get(4, [])).decode(errors="replace")
        nodes.append(Node(b"".join(parts.get(3, [])).decode(errors="replace") or kind, kind))
        for name in parts.get(1, []):
            if name in makers:
                nodes[makers[name]].below.append(len(nodes) - 1)
        makers |= dict.fromkeys(parts.get(2, []), len(nodes) - 1)
    if not nodes:
        raise ValueError("it has no nodes")
    return nodes


def _of_construct(document: Any) -> list[Node]:
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    forward = [name for name in document if ".forward" in name]
    numbers = {name: number for number, name in enumerate(forward)}
    nodes = [Node(name, name.split(".forward")[0].rpartition(".")[2]) for name in forward]
    for name, number in numbers.items():
        parent = document[name][0] if isinstance(document[name], list) and document[name] else document[name]
        if parent in numbers:
            nodes[numbers[parent]].below.append(number)
    if not nodes:
        raise ValueError("there is no row of a forward pass in it")
    return nodes


def mark(nodes: Sequence[Node], model: Sequence[Match], first: Match | None) -> int:
    """Give nodes what is known of them: by their names, else by the order of their kinds. Returns how many have it."""
    rows = [each for each in model if each.row.phase == FORWARD]
    by_name: Mapping[str, Match] = {
        row.name: each for each in rows for row in (each.bench, each.npu) if row is not None
    }
    pairs = [(node, by_name[node.name]) for node in nodes if node.name in by_name]
    if not pairs:
        calls = [each for each in rows if each.row.kind == API]
        kinds = [_kind(node.kind) for node in nodes], [_kind(each.row.api.rpartition(".")[2]) for each in calls]
        pairs = [(nodes[i], calls[j]) for i, j in aligned(*kinds)]
    for node, each in pairs:
        node.times = float("inf") if each.one_sided else each.outputs
        node.first = first is not None and first.row.api == each.row.api and first.row.index == each.row.index
    return len(pairs)


def _kind(name: str) -> str:
    plain = name.replace("_", "").lower()
    return _ONNX.get(plain, plain)


def picture(path: str, nodes: Sequence[Node], marked: int) -> dict[str, Any]:
    """Boxes from top to bottom, each below what it takes in, with lines between them."""
    drawn = nodes[:_MOST_NODES]
    depth = [0] * len(drawn)
    for number, node in enumerate(drawn):  # nodes of a file are in the order of the run
        for other in node.below:
            if number < other < len(drawn):
                depth[other] = max(depth[other], depth[number] + 1)
    columns: dict[int, int] = {}
    places = []
    for level in depth:
        column = columns[level] = columns.get(level, -1) + 1
        places.append((column * (_WIDE + _ROOM), level * (_HIGH + _ROOM)))
    boxes = []
    for node, (x, y) in zip(drawn, places, strict=True):
        if (times := node.times) is None:
            level, distance = 5, "no data"
        else:
            level = 0 if times < 0.1 else 1 if times <= 1 else 3 if times < 100 else 4
            distance = "on one side only" if times == float("inf") else f"{figure(times, 3)} times the tolerance"
        box = {"x": x, "y": y, "text": visible(node.kind)[:22], "first": node.first, "level": level}
        boxes.append(box | {"title": f"{visible(node.name)}: {distance}"})
    lines = [
        (places[number][0] + _WIDE // 2, places[number][1] + _HIGH, places[other][0] + _WIDE // 2, places[other][1])
        for number, node in enumerate(drawn)
        for other in node.below
        if other < len(drawn) and other != number
    ]
    more = f", the first {_MOST_NODES} of them drawn" if len(nodes) > _MOST_NODES else ""
    caption = f"{visible(os.path.basename(path))}: {len(nodes)} nodes{more}, of {marked} the dumps have the outputs"
    width = max(x for x, _ in places) + _WIDE
    height = max(y for _, y in places) + _HIGH
    return {"boxes": boxes, "lines": lines, "width": width, "height": height, "wide": _WIDE, "high": _HIGH,
            "caption": caption}  # fmt: skip
