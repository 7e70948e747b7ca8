"""The graph of a network beside a comparison: from ONNX and construct.json, with what diverged marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.precision.network import Fault, record
from transplt.base.errors import UsageError
from transplt.faces.cli.compare import compare
from transplt.precision.graph import picture, read_graph


def field(number: int, data: bytes) -> bytes:
    length, text = len(data), b""
    while length > 0x7F:
        text += bytes((length & 0x7F | 0x80,))
        length >>= 7
    return bytes((number << 3 | 2,)) + text + bytes((length,)) + data


def onnx(*nodes: tuple[str, str, str]) -> bytes:
    """A model of nodes: (kind, what it takes, what it makes)."""
    graph = b"".join(
        field(1, field(1, takes.encode()) + field(2, makes.encode()) + field(3, f"/{makes}".encode())
              + field(4, kind.encode()))
        for kind, takes, makes in nodes
    )  # fmt: skip
    return b"\x08\x08" + field(7, graph)


CHAIN = onnx(("Conv", "x", "a"), ("Relu", "a", "b"), ("MaxPool", "b", "c"), ("Gemm", "c", "d"))


def test_nodes_of_onnx(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(CHAIN)
    nodes = read_graph(str(tmp_path / "net.onnx"))
    assert [(node.kind, node.name, node.below) for node in nodes] == [
        ("Conv", "/a", [1]), ("Relu", "/b", [2]), ("MaxPool", "/c", [3]), ("Gemm", "/d", []),
    ]  # fmt: skip
    drawn = picture("net.onnx", nodes, 0)
    assert [box["y"] for box in drawn["boxes"]] == [0, 42, 84, 126] and len(drawn["lines"]) == 3


def compared(tmp_path: Path, graph: str) -> str:
    record(tmp_path / "npu", "convolution", Fault("sign", 2))
    record(tmp_path / "bench", "convolution")
    arguments = [str(tmp_path / "npu"), str(tmp_path / "bench"), "-o", str(tmp_path / "out"), "--graph", graph]
    result = CliRunner().invoke(compare, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return (tmp_path / "out" / "compare.html").read_text()


def test_what_diverged_is_marked_in_onnx(tmp_path: Path) -> None:
    kinds = ("Conv", "BatchNormalization", "Relu", "Conv", "Relu", "MaxPool", "Gemm")
    (tmp_path / "net.onnx").write_bytes(onnx(*((kind, f"t{n}", f"t{n + 1}") for n, kind in enumerate(kinds))))
    page = compared(tmp_path, str(tmp_path / "net.onnx"))
    assert "net.onnx: 7 nodes, of 7 the dumps have the outputs" in page
    graph = page[page.index('class="graph"') :]
    assert graph.count(" first") == 1 and graph.index(" first") < graph.index("/t3:")


def test_what_diverged_is_marked_in_construct_json(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"Module.net.Net.forward.0": None, "Functional.relu.0.forward": "Module.net.Net.forward.0"}
    (tmp_path / "construct.json").write_text(json.dumps(rows))
    page = compared(tmp_path, str(tmp_path / "construct.json"))
    assert "construct.json: 2 nodes, of 1 the dumps have the outputs" in page


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"{}", b"[1]", b"\x08\x08"])
def test_a_file_that_is_no_graph(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UsageError, match=r"is no ONNX and no construct\.json"):
        read_graph(str(tmp_path / "x"))


def test_a_graph_goes_into_a_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs -o"):
        CliRunner().invoke(compare, ["a", "b", "--graph", "x"], standalone_mode=False, catch_exceptions=False)
