"""`--annotate`: markers above the lines that need a person."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_properties import compiles, programs, rebuilt
from transplt.base.finding import FileResult
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source

MARK = "# TODO(transplt): "
ANNOTATE = Settings(annotate=True)


def annotated(text: str) -> FileResult:
    result = migrate_source(text.encode(), "m.py", ANNOTATE)
    compile(result.data, "m.py", "exec")
    again = migrate_source(result.data, "m.py", ANNOTATE)
    assert again.data == result.data, "a marker is put in twice"
    assert migrate_source(result.data, "m.py", Settings()).data == result.data
    return result


def marked(text: str) -> list[str]:
    """The lines of the output, the text of markers cut to their codes."""
    lines = annotated(text).data.decode().splitlines()
    return [line[: line.index(MARK) + len(MARK) + 6] if MARK in line else line for line in lines]


def test_a_marker_stands_above_its_line_at_its_indentation() -> None:
    assert marked("import torch\ndef f():\n    x = 1\n    return torch.cuda.nccl\n") == [
        "import torch",
        "def f():",
        "    x = 1",
        f"    {MARK}NPU501",
        "    return torch.cuda.nccl",
    ]


def test_what_it_says() -> None:
    result = annotated("import torch\nx = torch.cuda.nccl\n")
    (line,) = [line for line in result.data.decode().splitlines() if MARK in line]
    assert line.startswith(f"{MARK}NPU501 torch.cuda.nccl has no counterpart on NPU: ")
    assert len(line) <= 180 and line.isascii()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if x and \\\n    torch.cuda.nccl:\n    pass\n", [0]),
        ("x = [\n    1,\n    torch.cuda.nccl,\n]\n", [2]),
        ("x = '''\na\n''' + str(torch.cuda.nccl)\n", [0]),
        ("x = f'''\n{torch.cuda.nccl}\n'''\n", [0]),
        ("x = 'a\\\nb', torch.cuda.nccl\n", [0]),
        ("if x:\n    pass\nelif torch.cuda.nccl:\n    pass\n", [2]),
        ("try:\n    pass\nexcept torch.cuda.nccl:\n    pass\n", [2]),
        ("@a\n@torch.cuda.nccl\ndef f(): pass\n", [1]),
        ("if x: torch.cuda.nccl\n", [0]),
        ("y = 1; torch.cuda.nccl\n", [0]),
        ("def f():\n\tif x:\n\t\ttorch.cuda.nccl\n", [2]),
        ("x = (  # a \\\n    torch.cuda.nccl)\n", [0, 1]),
        ("# a \\\ntorch.cuda.nccl\n", [1]),
    ],
)
def test_never_where_it_would_break(text: str, expected: list[int]) -> None:
    lines = marked("import torch\n" + text)
    at = [index for index, line in enumerate(lines) if MARK in line]
    assert [index - 1 for index in at] in ([expected[0]], expected[-1:])
    indent = lines[at[0]][: len(lines[at[0]]) - len(lines[at[0]].lstrip())]
    assert lines[at[0] + 1].startswith(indent) and not lines[at[0] + 1][len(indent) :].startswith((" ", "\t"))


def test_one_marker_for_each_code_of_a_line() -> None:
    lines = marked("import torch\nx = torch.cuda.nccl, torch.cuda.nccl, torch.cuda.NoSuch\n")
    assert lines[1:3] == [f"{MARK}NPU501", f"{MARK}NPU601"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx.cuda()\n",
        "use_cuda = 1\n",
        "import torch\nx = torch.cuda.nccl  # transplt: ignore\n",
        "import torch\ntorch.cuda.get_device_name()\n",
    ],
)
def test_not_where_nothing_is_left(text: str) -> None:
    result = annotated(text)
    if not any(finding.open for finding in result.findings):
        assert MARK.encode() not in result.data
    assert "transplt: ignore" not in text or not result.changed


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_and_encodings_are_kept(newline: str) -> None:
    text = newline.join(["# -*- coding: gbk -*-", "import torch", "s = '\u4e2d'", "x = torch.cuda.nccl", ""])
    data = text.encode("gbk")
    result = migrate_source(data, "m.py", ANNOTATE)
    lines = result.data.decode("gbk").split(newline)
    assert lines[3].startswith(MARK) and lines[:3] + lines[4:] == text.split(newline)


def test_a_marker_is_no_cookie() -> None:
    source = "import torch\nx = 'torch.cuda.coding=latin-1', torch.cuda.nccl\n"
    assert annotated(source.split("\n", 1)[1].replace("torch.cuda.nccl", "lib.nvtx")).status.value == "ok"


def test_markers_are_records() -> None:
    data = b"import torch\nx = torch.cuda.nccl, y.cuda()\n"
    result = migrate_source(data, "m.py", ANNOTATE)
    assert rebuilt(data, result) == result.data
    (record,) = [finding for finding in result.findings if finding.code == "NPU407"]
    assert record.applied and record.edit is not None and record.edit.operation.value == "INSERT"


def test_a_marker_does_not_fall_into_an_edit() -> None:
    text = "import torch\nfrom torch.cuda import (\n    Stream,\n    nccl,\n    Event,\n)\nnccl.init_rank\n"
    result = annotated(text)
    lines = result.data.decode().splitlines()
    assert [index for index, line in enumerate(lines) if MARK in line] == [2, 5]
    assert lines[3] == "from torch.cuda import nccl"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs())
def test_markers_change_nothing_that_runs(data: bytes) -> None:
    plain = migrate_source(data, "m.py", Settings())
    result = migrate_source(data, "m.py", ANNOTATE)
    assert rebuilt(data, result) == result.data
    if compiles(plain.data):
        assert ast.dump(ast.parse(result.data)) == ast.dump(ast.parse(plain.data))
        again = migrate_source(result.data, "m.py", ANNOTATE)
        assert again.data == result.data


PARTS = ["torch.cuda.nccl", "'''", "\\\n", "\n", "(", ")", "x", " = ", "#", "f'", "'", "{", "}"]


@given(st.lists(st.sampled_from(PARTS)))
def test_any_text(parts: list[str]) -> None:
    data = ("import torch\n" + "".join(parts) + "\n").encode()
    if compiles(data):
        assert compiles(migrate_source(data, "m.py", ANNOTATE).data)
