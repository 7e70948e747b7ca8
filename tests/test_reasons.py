"""The reasons why words stay: a closed list, each used and explained; the doubtful ones first."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import transplt
from transplt.base.errors import UsageError
from transplt.faces.cli.main import main
from transplt.rules.reasons import Doubt, reasons

PACKAGE = Path(transplt.__file__).parent
#: Functions that take the name of a reason, and the place of that argument.
TAKERS = {"keep": 1, "Kept": 1, "ignored": 0}


def words_in(node: ast.AST) -> Iterator[str]:
    yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def named_in_code() -> set[str]:
    """Every literal given as a reason, and every literal that equals a reason's name (those that are handed on)."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if "emulator" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                last = getattr(node.func, "attr", getattr(node.func, "id", ""))
                at = TAKERS.get(last, -1)
                if 0 <= at < len(node.args) and isinstance(node.args[at], ast.Constant):
                    found.update(words_in(node.args[at]))
            elif isinstance(node, ast.Constant) and node.value in reasons():
                found.add(node.value)
    return found


def test_the_list_is_closed_and_each_is_used() -> None:
    # named by the words of a finding
    by_words = {"comment", "settings", "file-beside", "project-beside", "npu-own", "project-reads"}
    assert named_in_code() | by_words == set(reasons())


def test_doubtful_reasons_come_first_and_each_says_how_to_check_it() -> None:
    every = list(reasons().values())
    assert [each.doubt for each in every] == sorted(each.doubt for each in every)
    assert {each.doubt for each in every} == set(Doubt)
    assert all(each.words and each.check.endswith(".") for each in every)
    assert len({each.words for each in every}) == len(every)


@pytest.mark.parametrize("name", ["own-name", "attribute", "library-name"])
def test_explain_knows_reasons(name: str) -> None:
    done = CliRunner().invoke(main, ["explain", name])
    assert done.exit_code == 0
    assert done.output.startswith(f"# {name}: ") and "## To check it" in done.output
    table = json.loads(CliRunner().invoke(main, ["explain", name, "--format=json"]).output)
    assert table["reason"] == name and table["doubt"] in ("high", "medium", "low")


def test_explain_finds_what_was_meant() -> None:
    done = CliRunner().invoke(main, ["explain", "own-nane"])
    assert isinstance(done.exception, UsageError) and "own-name" in str(done.exception)
