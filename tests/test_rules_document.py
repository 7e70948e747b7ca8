"""The examples of docs/rules.md are what the program does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_file import problems
from transplt.rules.tables import read_table

DOCUMENT = (Path(__file__).resolve().parent.parent / "docs" / "rules.md").read_text(encoding="utf-8")


class Example(NamedTuple):
    rules: str
    before: str
    after: str


def examples() -> list[Example]:
    """A JSON block with the two Python blocks that follow it."""
    blocks = re.findall(r"^```(json|python)\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    found = []
    for index, (language, text) in enumerate(blocks):
        following = blocks[index + 1 : index + 3]
        if language == "json" and [kind for kind, _ in following] == ["python", "python"]:
            found.append(Example(text, following[0][1], following[1][1]))
    return found


def test_the_document_has_examples() -> None:
    assert len(examples()) == 7


@pytest.mark.parametrize("rules", re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE))
def test_every_rule_file_shown_is_valid(rules: str) -> None:
    assert [str(problem) for problem in problems("rules.md", rules)] == []


@pytest.mark.parametrize("example", examples(), ids=lambda example: re.findall(r"\w+Rule", example.rules)[0])
def test_examples(example: Example) -> None:
    data, settings = example.before.encode(), Settings(user_rules=(("rules.md", example.rules),))
    project = ProjectFacts.join([index_source(data, "example.py", settings)])
    result = migrate_source(data, "example.py", settings, project)
    assert result.data.decode() == example.after


def test_the_message_shown_is_the_one_given() -> None:
    text = '{"rules": {\n\n"ArgsModifyRule": [\n{"func_name": "f", "arg_idx": -1, "arg_new": "1"}]}}'
    (problem,) = problems("mine.json", text)
    assert str(problem) in DOCUMENT


def test_every_key_of_the_schema_is_described() -> None:
    for name, definition in read_table("schema.json")["$defs"].items():
        if name.endswith("_rule") or name in ("skip_if", "arguments", "common"):
            for key in definition["properties"]:
                assert f"`{key}`" in DOCUMENT or f'"{key}"' in DOCUMENT, key
