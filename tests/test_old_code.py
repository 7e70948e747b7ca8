"""`async` as an argument name, which no Python since 3.7 reads: renamed among the tokens, the rest as usual."""

from __future__ import annotations

import sys

import pytest

from tests.harness import clean, migrate
from transplt.base.finding import FileResult, Finding, Level, Span, Status
from transplt.base.settings import Settings
from transplt.engine.actions.actions import actions_of
from transplt.engine.edited_lines import edits_in_order
from transplt.engine.engine import migrate_source


def replayed(source: str, result: FileResult) -> str:
    """The input with the recorded edits made, each of which says what stood there."""
    data = source.encode()
    for finding in reversed(edits_in_order(result.findings)):
        assert finding.edit is not None
        span = finding.span
        assert data[span.start : span.end].decode() == finding.edit.before
        data = data[: span.start] + finding.edit.after.encode() + data[span.end :]
    return data.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda(async=True)", "x = x.npu(non_blocking=True)"),
        ("x = x.cuda(0, async = True).float()", "x = x.npu(0, non_blocking = True).float()"),
        ("y.copy_(x, async=True)  # async=True\ny.cuda()", "y.copy_(x, non_blocking=True)  # async=True\ny.npu()"),
        (
            "s = 'async=True'; é = x.cuda(device=0,\n  async=True)",
            "s = 'async=True'; é = x.npu(device=0,\n  non_blocking=True)",
        ),
        (
            "def move(x, async=False):\n    return x.cuda(async=async) if async else x\nmove(x, async=True)",
            "def move(x, non_blocking=False):\n    return x.npu(non_blocking=non_blocking) if non_blocking else x\n"
            "move(x, non_blocking=True)",
        ),
        ("async def f(x):\n    return x.cuda(async=True)", "async def f(x):\n    return x.npu(non_blocking=True)"),
    ],
)
def test_renamed_and_migrated(before: str, after: str) -> None:
    head = "import torch\n"
    result = migrate(head + before + "\n")
    assert result.data.decode() == head + "import torch_npu  # noqa: F401\n" + after + "\n"
    assert replayed(head + before + "\n", result) == result.data.decode()
    assert result.status is Status.OK and "NPU155" in {each.code for each in result.findings if each.applied}


def test_a_file_without_cuda_words() -> None:
    result = migrate("def f(x, y):\n    return x.copy_(y, async=True)\n")
    assert result.data.decode() == "def f(x, y):\n    return x.copy_(y, non_blocking=True)\n"
    assert [each.code for each in result.findings] == ["NPU155"]


@pytest.mark.parametrize(
    "source",
    [
        "task.delay(async=True)\nx.cuda()",  # not PyTorch's
        "x.cuda(async=True)\npool.apply(f, async=True)",
        "async = True\nx.cuda(async=async)",  # a variable: what else it is for is not known
        "x.cuda(async=True)\nprint 'Python 2'",
        "x.to(d, non_blocking=True, async=True)",
        "from helper import move\nmove(x, async=True)\nx.cuda(async=True)",
    ],
)
def test_what_is_not_known_stays_unreadable(source: str) -> None:
    result = migrate_source(f"import torch\n{source}\n".encode(), "train.py", Settings())
    assert result.status is Status.UNREADABLE and not result.changed
    assert result.findings[0].code in ("NPU901",)


@pytest.mark.parametrize(
    "source",
    [
        "async def f():\n    async with g() as h:\n        async for i in h:\n            await i\n",
        "s = 'x.cuda_(async=True)'.lower()\n",
        "def f(non_blocking=True):\n    pass  # async=True\n",
    ],
)
def test_code_of_today_is_left_alone(source: str) -> None:
    result = migrate_source(clean(source).encode(), "train.py", Settings())
    assert not result.changed and result.status is Status.OK


def test_line_ends_and_encodings_stay() -> None:
    source = "# -*- coding: latin-1 -*-\r\nimport torch\r\nx = u'\xe9'\r\ny = x.cuda(async=True)\r\n".encode("latin-1")
    result = migrate_source(source, "train.py", Settings())
    wanted = source.replace(b"cuda(async", b"npu(non_blocking").replace(
        b"import torch\r\n", b"import torch\r\nimport torch_npu  # noqa: F401\r\n"
    )
    assert result.data == wanted


@pytest.mark.parametrize(
    "line",
    ["print 'loss', loss", "print \"%d\" % n", "raise ValueError, 'no'", "exec 'x = 1'", "print 'a' % b"],
)
def test_python_2_is_one_finding_that_names_the_tool(line: str) -> None:
    source = f"import torch\n{line}\nx.cuda()\n{line}\n"
    result = migrate_source(source.encode(), "train.py", Settings())
    assert [each.code for each in result.findings] == ["NPU901"]
    assert "2to3" in result.findings[0].help and result.findings[0].span.line == 2


def test_python_2_may_stand_anywhere() -> None:
    source = "import torch\ntry:\n    x.cuda()\nexcept RuntimeError, error:\n    pass\n"
    findings = migrate_source(source.encode(), "a.py", Settings()).findings
    assert [each.code for each in findings] == ["NPU901"] and "2to3" in findings[0].help


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("type X = int", "3.12"),
        ("def f[T](x: T) -> T: ...", "3.12"),
        ("class A[T = int]: ...", "3.13"),
        ("def f[T](x): ...\nclass A[T = int]: ...", "3.13"),
        ("try: ...\nexcept A, B, C: ...", "3.14"),
    ],
)
def test_the_python_that_a_file_needs_is_named(source: str, python: str) -> None:
    """The newest that it needs, whichever line this Python stops at, and how transplt is run under it."""
    finding = migrate_source(f"import torch\n{source}\n".encode(), "a.py", Settings()).findings[:1]
    if sys.version_info >= tuple(map(int, python.split("."))):
        assert not finding
        return
    assert finding[0].details == (("python", python),)
    assert f"uv run --python {python} transplt" in finding[0].help


@pytest.mark.parametrize("source", ["type X", "x[1] = = 2", "class A(B[int) : ..."])
def test_what_no_python_reads_asks_for_none(source: str) -> None:
    finding = migrate_source(f"import torch\n{source}\n".encode(), "a.py", Settings()).findings[0]
    assert finding.code == "NPU901" and not finding.detail("python")


def test_one_action_for_all_files_that_need_a_newer_python() -> None:
    span = Span(1, 1, 1, 1, 0, 0)
    rows = [("a.py", "3.12"), ("b.py", "3.14"), ("c.py", "")]
    found = [
        Finding(path, span, "NPU901", Level.MANUAL, "no", details=(("python", version),) if version else ())
        for path, version in rows
    ]
    titles = {str(each.title): [place.path for place in each.places] for each in actions_of(found)}
    assert titles["Run transplt under Python 3.14: these files are written in it"] == ["a.py", "b.py"]
    assert len(titles) == 2
