"""The table of the adaptors: names, what `--adapt` takes, their pages, and the findings that they answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt
from transplt.base.errors import UsageError
from transplt.base.finding import Level
from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.fixer import fixers_of
from transplt.fixers.adaptors.table import adaptors, parse_adaptors
from transplt.rules.pages import all_codes, load
from transplt.rules.tables import read_table, rules_dir

ADAPTORS = adaptors()
ROWS = {row["name"]: row for row in read_table("support/adaptors.json")["adaptors"]}


@pytest.mark.parametrize("fixer", fixers_of("transplt.fixers.adaptors"), ids=lambda fixer: fixer.name)
def test_each_looks_before_the_migration_and_has_a_page(fixer: object) -> None:
    assert fixer.visits and fixer.rank < 0 and fixer.needs  # type: ignore[attr-defined]
    name = fixer.theme.removeprefix("adapt:")  # type: ignore[attr-defined]
    assert name in ADAPTORS
    page = load(fixer.code)  # type: ignore[attr-defined]
    why = page.sections["Why"]
    assert f"adaptor `{name}`" in why
    for what in ("What differs:", "Speed:", "Source:"):
        assert f"- {what}" in why, what
    assert page.level is Level.SAFE


def test_what_they_answer_are_codes_of_findings() -> None:
    assert [*ROWS] == sorted(ROWS) and {*ROWS} == {*ADAPTORS}
    for row in ROWS.values():
        assert row["codes"] and {*row["codes"]} <= {*all_codes()}


def test_the_document_has_a_row_for_each() -> None:
    page, _, portable = (rules_dir().parent / "docs" / "adaptors.md").read_text(encoding="utf-8").partition("\n### In ")
    rows = [*page.splitlines(), *portable.partition("\n## ")[2].splitlines()]
    assert sorted(row.split("`")[1] for row in rows if row.startswith("| `")) == sorted(ADAPTORS)


def test_names_of_the_option() -> None:
    version = TORCH_VERSIONS[-1]
    every = tuple((name, "") for name, each in ADAPTORS.items() if not each.on_request)
    assert parse_adaptors("", version) == ()
    assert parse_adaptors("all", version) == every
    assert parse_adaptors("timm", version) == (("timm", ""),)
    assert parse_adaptors("all,-timm", version) == tuple(each for each in every if each[0] != "timm")
    for text, words in (("tim", "did you mean 'timm'?"), ("timm=3", "it takes no value")):
        with pytest.raises(UsageError, match="--adapt") as raised:
            parse_adaptors(text, version)
        assert words in str(raised.value)


def test_rules_lists_them(tmp_path: Path) -> None:
    done = transplt("rules", "--adaptors", "--format=json", cwd=tmp_path)
    assert [row["name"] for row in json.loads(done.stdout)] == [*ADAPTORS]
    assert "timm" in transplt("rules", "--adaptors", cwd=tmp_path).stdout


def test_it_is_no_key_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.transplt]\nadapt = "all"\n')
    (tmp_path / "train.py").write_text("import torch\n")
    done = transplt("check", ".", cwd=tmp_path)
    assert done.returncode == 2 and "adapt" in done.stderr
