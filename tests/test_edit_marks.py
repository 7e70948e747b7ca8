"""`--annotate-edits`: marks above and below what was edited."""

from __future__ import annotations

import ast

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source

MARKED = Settings(annotate_edits=True)
END = "# npu modify end"


def begin(*codes: str) -> str:
    return f"# npu modify begin: {' '.join(codes)}"


def marked(text: str) -> list[str]:
    """The lines of the output. It is the program that it is without marks, and a second run changes nothing."""
    data = text.encode()
    result = migrate_source(data, "m.py", MARKED)
    plain = migrate_source(data, "m.py", Settings())
    assert ast.dump(ast.parse(result.data)) == ast.dump(ast.parse(plain.data))
    for settings in (MARKED, Settings()):
        again = migrate_source(result.data, "m.py", settings)
        assert again.data == result.data and not any(each.applied for each in again.findings)
    return result.data.decode().splitlines()


HEAD = "import torch\nimport torch_npu\n"
EDITED = [begin("NPU210"), "x = x.npu()", END]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = x.cuda()\n", EDITED),
        ("x = x.cuda()", EDITED),
        ("if x:\n    x = x.cuda()\ny = 1\n",
         ["if x:", f"    {begin('NPU210')}", "    x = x.npu()", f"    {END}", "y = 1"]),
        # Edits in adjacent lines have one pair, of all their codes.
        ("x = x.cuda()\ny = torch.cuda.device_count()\n",
         [begin("NPU101", "NPU210"), "x = x.npu()", "y = torch.npu.device_count()", END]),
        ("x = x.cuda()\n\nx = x.cuda()\n", [*EDITED, "", *EDITED]),
        # Inside brackets a comment may stand, behind a backslash and inside a string it may not.
        ("y = [\n    1,\n    x.cuda(),\n    2]\n",
         ["y = [", "    1,", f"    {begin('NPU210')}", "    x.npu(),", f"    {END}", "    2]"]),
        ("y = x.cuda() + \\\n    1\n", [begin("NPU210"), "y = x.npu() + \\", "    1", END]),
        ("y = '''\na\n''' + str(x.cuda())\n", [begin("NPU210"), "y = '''", "a", "''' + str(x.npu())", END]),
        ("y = f'''{x.cuda()}\n'''\n", [begin("NPU210"), "y = f'''{x.npu()}", "'''", END]),
        ("y = (x.cuda(), '''\na\n''')\n", [begin("NPU210"), "y = (x.npu(), '''", "a", "''')", END]),
    ],
)  # fmt: skip
def test_where_marks_stand(text: str, lines: list[str]) -> None:
    assert marked(HEAD + text)[2:] == lines


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = x + 1\n",
        "import torch\nx = torch.cuda.nccl\n",
        "import torch\nimport torch_npu\nx = x.npu()\n",
        "import torch\nx = x.cuda()  # transplt: ignore\n",
    ],
)
def test_nothing_is_marked_where_nothing_is_edited(text: str) -> None:
    assert marked(text) == text.splitlines()


@pytest.mark.parametrize("line", ["# npu modify begin", "############## npu modify begin #############"])
def test_what_stands_between_marks_gets_no_second_pair(line: str) -> None:
    end = line.replace("begin", "end")
    assert marked(f"{HEAD}{line}\nx = x.cuda()\n{end}\n")[2:] == [line, "x = x.npu()", end]
    # A pair that is closed above says nothing of what is below; one without an end says nothing.
    assert marked(f"{HEAD}{line}\ny = 1\n{end}\nx = x.cuda()\n")[-3:] == EDITED
    assert marked(f"{HEAD}{line}\ny = 1\nx = x.cuda()\n")[-3:] == EDITED


def test_the_lines_that_come_first_in_a_file_stay_there() -> None:
    head = ["#!/usr/bin/env python", "# -*- coding: latin-1 -*-"]
    lines = marked("\n".join([*head, "import torch", "x = torch.zeros(1).cuda()", ""]))
    assert lines[:6] == [*head, "import torch", begin("NPU210", "NPU403"), "import torch_npu  # noqa: F401",
                         "x = torch.zeros(1).npu()"]  # fmt: skip


def test_markers_of_what_is_left_stand_above_their_own_lines() -> None:
    text = f"{HEAD}x = x.cuda()\ny = torch.cuda.nccl\nx = x.cuda()\n"
    settings = Settings(annotate=True, annotate_edits=True)
    lines = migrate_source(text.encode(), "m.py", settings).data.decode().splitlines()
    assert [line[:24] for line in lines[2:]] == [
        begin("NPU210")[:24], "x = x.npu()", END, "# TODO(transplt): NPU501", "y = torch.cuda.nccl",
        begin("NPU210")[:24], "x = x.npu()", END,
    ]  # fmt: skip


def test_each_mark_is_recorded_as_an_edit() -> None:
    result = migrate_source(f"{HEAD}x = x.cuda()\n".encode(), "m.py", MARKED)
    done = [(each.code, each.span.line, each.message) for each in result.findings if each.applied]
    assert done == [
        ("NPU407", 3, "mark above the edits of NPU210"),
        ("NPU210", 3, ".cuda() -> .npu()"),
        ("NPU407", 4, "mark below the edits of NPU210"),
    ]
