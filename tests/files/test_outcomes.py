"""Calls of NVIDIA's tools in scripts: which of them stop the script on an NPU, and which it does without."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import migrated
from transplt.base.finding import Level
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.shell.tools import NOT_THERE

QUERY = "nvidia-smi --query-gpu=name --format=csv"


def found(text: str, path: str = "run.sh") -> list[tuple[Level, bool]]:
    """Of each finding about a tool that is open: its level, and whether the script goes on."""
    kind = FileKind.SHELL if path == "run.sh" else kind_of(path, text.encode())
    result = migrated(text, path, kind)
    left = [each for each in result.findings if not each.applied]
    assert all((each.blocks == "later") is (NOT_THERE in each.message) for each in left if each.open)
    return [(each.level, NOT_THERE in each.message) for each in left]


@pytest.mark.parametrize(
    "text",
    [
        f"{QUERY} || true\n",
        f"set -e\n{QUERY} || :\n",
        f"{QUERY} 2>/dev/null || echo 'no GPU'\n",
        f"({QUERY} || true) > gpu.txt\n",
        f"set -euo pipefail\n{QUERY} || true\npython a.py\n",
        f"{QUERY}\npython a.py\n",  # bash goes on behind a command that is not found
        f"{QUERY} > gpu.csv &\n",
        "nvcc --version || true\n",
    ],
)
def test_a_script_that_does_without_is_a_remark(text: str) -> None:
    assert found(text) == [(Level.INFO, True)]


@pytest.mark.parametrize(
    "text",
    [
        f"set -e\n{QUERY}\n",
        f"#!/bin/bash -e\n{QUERY}\n",
        f"set -o errexit\n{QUERY}\n",
        f"{QUERY} || exit 1\n",
        f"{QUERY} || {{ echo no; exit 1; }}\n",
        "N=$(nvidia-smi -L | wc -l)\n",  # a number of cards that is none
        "python a.py --gpus $(nvidia-smi -L | wc -l)\n",
        "command -v nvidia-smi > /dev/null || exit 1\n",
        "if ! command -v nvidia-smi; then echo no; exit 1; fi\n",
        "if command -v nvidia-smi; then python a.py; else exit 1; fi\n",
        "while ! nvidia-smi; do sleep 1; done\n",
    ],
)
def test_a_script_that_stops_is_work(text: str) -> None:
    assert (Level.MANUAL, False) in found(text) or text.startswith("while")
    assert all(level is Level.MANUAL for level, _ in found(text))


@pytest.mark.parametrize(
    "text",
    [
        "N=$(nvidia-smi -L | wc -l || echo 0)\n",
        f"NAME=$({QUERY} || echo unknown)\n",
        "if nvidia-smi; then A=1; else A=0; fi\n",
        "if command -v nvidia-smi; then A=1; fi\n",
        "which nvidia-smi && python a.py\n",
    ],
)
def test_another_value_or_branch_is_work_for_later(text: str) -> None:
    assert found(text) == [(Level.MANUAL, True)]


@pytest.mark.parametrize(
    "text",
    [
        f"if command -v nvidia-smi &> /dev/null; then\n  {QUERY}\n  A=1\nfi\n",
        f"command -v nvidia-smi && {QUERY}\n",
        f"if which nvidia-smi; then N=$({QUERY} | wc -l); else N=1; fi\n",
        f'if [ -x "$(command -v nvidia-smi)" ]; then\n  {QUERY} | head\nfi\n',
    ],
)
def test_what_is_called_where_the_tool_is_there(text: str) -> None:
    """The question is left to a person; the call behind it is never reached."""
    assert sorted(found(text), key=lambda each: each[0].value) == [(Level.INFO, False), (Level.MANUAL, True)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("command -v nvidia-smi && nvidia-smi\n", "command -v npu-smi && npu-smi info\n"),
        ("command -v nvidia-smi >/dev/null && nvidia-smi || true\n",
         "command -v npu-smi >/dev/null && npu-smi info || true\n"),
        ("if command -v nvidia-smi; then\n  echo cards\n  nvidia-smi -L\nfi\n",
         "if command -v npu-smi; then\n  echo cards\n  npu-smi info -l\nfi\n"),
    ],
)  # fmt: skip
def test_a_question_goes_with_what_it_is_asked_for(before: str, after: str) -> None:
    assert migrated(before, "run.sh", FileKind.SHELL).data.decode() == after


@pytest.mark.parametrize(
    "text",
    [
        "if command -v nvidia-smi; then nvidia-smi; A=1; fi\n",
        "if command -v nvidia-smi; then nvidia-smi; else A=0; fi\n",
        "command -v nvidia-smi && nvidia-smi || A=0\n",
    ],
)
def test_a_question_on_which_more_depends_stays(text: str) -> None:
    assert b"command -v nvidia-smi" in migrated(text, "run.sh", FileKind.SHELL).data


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Dockerfile", f"FROM x\nRUN {QUERY}\n"),
        (".github/workflows/a.yml", f"jobs:\n  a:\n    steps:\n      - run: |\n          {QUERY}\n"),
        ("Makefile", f"all:\n\t{QUERY}\n"),
    ],
)
def test_recipes_end_where_a_command_fails(path: str, text: str) -> None:
    assert (Level.MANUAL, False) in found(text, path)
    assert (Level.MANUAL, False) not in found(text.replace("csv", "csv || true"), path)


@pytest.mark.parametrize(("text", "lines"), [("whereis nvidia\n", []), ("x=$(whereis nvidia)\n", [1])])
def test_a_search_that_is_shown_to_people(text: str, lines: list[int]) -> None:
    result = migrated(text, "run.sh", FileKind.SHELL)
    assert [each.span.line for each in result.findings if each.open] == lines
