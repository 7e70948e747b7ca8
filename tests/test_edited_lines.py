"""The lines of the output that hold an edit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.finding import Finding, Level, Operation, Replacement, Span
from transplt.engine.edited_lines import edited_lines, output_line


def edit(line: int, before: str, after: str, applied: bool = True, column: int = 1) -> Finding:
    start = line * 1000 + column
    span = Span(line, column, line + before.count("\n"), 1, start, start + len(before))
    change = Replacement(Operation.MODIFY, before, after)
    return Finding("a.py", span, "NPU101", Level.SAFE, "m", edit=change, applied=applied)


@pytest.mark.parametrize(
    ("edits", "lines"),
    [
        ([], ()),
        ([edit(3, "a", "b")], (3,)),
        ([edit(3, "a", "b", applied=False)], ()),
        ([edit(2, "", "import torch_npu\n"), edit(5, "a", "b")], (2, 6)),
        ([edit(2, "", "import torch_npu\r\n"), edit(2, "a", "b")], (2, 3)),
        ([edit(2, "a\nb\nc", "d"), edit(9, "a", "b")], (2, 7)),
        ([edit(2, "a", "x\ny"), edit(9, "a", "b")], (2, 3, 10)),
        ([edit(4, "line\n", ""), edit(9, "a", "b")], (4, 8)),
        ([edit(4, "a", "b"), edit(4, "c", "d", column=9)], (4,)),
    ],
)
def test_lines(edits: list[Finding], lines: tuple[int, ...]) -> None:
    assert edited_lines(reversed(edits)) == lines


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
def test_marked_lines_are_those_that_differ(plan: list[tuple[int, bool]]) -> None:
    """Each line is kept, or replaced by so many new ones; the mark of a new line is in its text."""
    findings, output = [], []
    for number, (count, change) in enumerate(plan, 1):
        if not change:
            output.append("old")
            continue
        after = "".join("new\n" for _ in range(count))
        findings.append(edit(number, "old\n", after))
        output += ["new"] * count
    expected = {number for number, text in enumerate(output, 1) if text == "new"}
    assert expected <= set(edited_lines(findings))
    assert set(edited_lines(findings)) - expected <= {
        sum(count if change else 1 for count, change in plan[:number]) + 1
        for number, (count, change) in enumerate(plan)
        if change and count == 0
    }


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        ([], 5),
        ([edit(5, "a", "b")], 5),
        ([edit(2, "", "import torch_npu\n"), edit(9, "", "x\n")], 6),
        ([edit(5, "", "above\n"), edit(5, "a", "b")], 6),
        ([edit(5, "a", "b\nc")], 5),
        ([edit(2, "a\nb\nc", "d")], 3),
        ([edit(2, "a", "b", applied=False)], 5),
    ],
)
def test_where_line_5_stands_in_the_output(edits: list[Finding], line: int) -> None:
    assert output_line(5, edits) == line
