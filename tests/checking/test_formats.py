"""What CI systems and editors read: valid against the schemas, complete, and safe with odd names and texts."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.checking.conftest import FIXED, TRAIN, Call
from transplt.base.finding import Effort, Finding, Level, Operation, Replacement, Span
from transplt.project.report.check_results import CheckedFinding, CheckResult
from transplt.project.report.formats import FORMATS, render

ROOT = Path(__file__).resolve().parent.parent.parent
SPAN = Span(3, 5, 3, 9, 40, 44)


def odd_items() -> CheckResult:
    """Findings whose texts hold what formats give a meaning to."""
    nasty = 'a,b:c%d "q" <&> \n\r\x1b[0m ]]> \ud800'.replace("\ud800", "\udcff")
    edit = Replacement(Operation.MODIFY, "cuda\n", "npu\r\n")
    return CheckResult(
        items=(
            CheckedFinding(
                Finding("dir/a b,c:%é.py", SPAN, "NPU201", Level.SAFE, nasty, edit=edit), "0" * 32, ((3, "  cuda"),)
            ),
            CheckedFinding(
                Finding("\udcff.py", SPAN, "NPU501", Level.MANUAL, nasty, "x", Effort.HIGH, nasty), "1" * 32
            ),
            CheckedFinding(Finding("z.py", SPAN, "NPU602", Level.UNKNOWN, "m"), "2" * 32, known=True),
        ),
        info=(CheckedFinding(Finding("z.py", SPAN, "NPU790", Level.INFO, "worth knowing"), "3" * 32),),
        files=3,
    )


def schema(path: str) -> jsonschema.protocols.Validator:
    table = json.loads((ROOT / path).read_text())
    kind = jsonschema.validators.validator_for(table)
    kind.check_schema(table)
    return kind(table)


def said_at(line: int, **more: Any) -> CheckedFinding:
    span = Span(line, 5, line, 9, line * 100, line * 100 + 4)
    finding = Finding("a.py", span, "NPU293", Level.MANUAL, "m", help="do")
    return CheckedFinding(replace(finding, **more), f"{line:032}", ((line, f"    call({line})"),))


def test_what_goes_before_a_line_says_so_for_several_places() -> None:
    import_ = Replacement(Operation.INSERT, "", "import torch_npu\n")
    items = tuple(said_at(line, edit=import_, level=Level.SAFE) for line in (3, 7))
    text = render(CheckResult(items=items, files=1), "text")
    assert "= insert: import torch_npu\n" in text
    assert text.endswith("= the same in 1 more place: (each line as it is now)\na.py:7:5: call(7)\n\n")


def test_a_whole_line_has_its_carets_below_it() -> None:
    edit = Replacement(Operation.DELETE, "  - cudatoolkit=11.8\n", "")
    finding = Finding("env.yml", Span(2, 1, 3, 1, 0, 0), "NPU842", Level.SAFE, "m", edit=edit)
    lines = (2, "  - cudatoolkit=11.8"), (3, "  - numpy")
    text = render(CheckResult(items=(CheckedFinding(finding, "0" * 32, lines),), files=1), "text")
    assert text.splitlines()[2:5] == ["2 |   - cudatoolkit=11.8", "  |   ^^^^^^^^^^^^^^^^^^ NPU842", "3 |   - numpy"]
    assert "= delete: - cudatoolkit=11.8\n" in text


def test_what_is_said_of_several_places_is_said_once() -> None:
    text = render(CheckResult(items=(said_at(3), said_at(7), said_at(9)), files=1), "text")
    assert text.count("NPU293 m") == text.count("= help: do") == 1
    assert text.endswith("= the same in 2 more places:\na.py:7:5: call(7)\na.py:9:5: call(9)\n\n")
    concise = render(CheckResult(items=(said_at(3), said_at(7)), files=1), "concise")
    assert concise.splitlines() == ["a.py:3:5: NPU293 m", "a.py:7:5: NPU293 m"]


@pytest.mark.parametrize("other", [{"message": "n"}, {"help": "do more"}, {"code": "NPU294"}, {"option": "--flag"}])
def test_what_differs_in_a_word_has_a_block_of_its_own(other: dict[str, Any]) -> None:
    text = render(CheckResult(items=(said_at(3), said_at(7, **other)), files=1), "text")
    assert "the same" not in text and text.count("= help: do") == 2


@pytest.mark.parametrize("name", FORMATS)
def test_odd_texts_can_be_written(name: str) -> None:
    text = render(odd_items(), name)
    assert text.encode("utf-8", "backslashreplace")
    assert "\x1b" not in text


def test_json_is_valid_and_gives_the_fixed_text(project: Path, call: Call) -> None:
    check = schema("docs/check.schema.json")
    check.validate(json.loads(render(odd_items(), "json")))
    table = json.loads(call("check", "train.py", "--format", "json")[1])
    check.validate(table)
    data = TRAIN.encode()
    for finding in reversed(table["findings"]):
        if finding["edit"]:
            assert data[finding["start"] : finding["end"]].decode() == finding["edit"]["before"]
            data = data[: finding["start"]] + finding["edit"]["after"].encode() + data[finding["end"] :]
    assert data.decode() == FIXED


def test_json_lines_are_the_findings(project: Path, call: Call) -> None:
    table = json.loads(call("check", "--format", "json")[1])
    lines = call("check", "--format", "json-lines")[1].splitlines()
    assert [json.loads(line) for line in lines] == table["findings"]


def test_the_example_of_the_document_is_valid() -> None:
    text = (ROOT / "docs" / "reference" / "json.md").read_text()
    example = json.loads(text.split("```json\n")[1].split("```")[0])
    schema("docs/check.schema.json").validate(example)
    properties = json.loads((ROOT / "docs/check.schema.json").read_text())["$defs"]["finding"]["properties"]
    for name in properties:
        assert f"`{name}`" in text, name


def test_sarif_is_valid_and_complete(project: Path, call: Call) -> None:
    check = schema("tests/data/sarif_subset.schema.json")
    check.validate(json.loads(render(odd_items(), "sarif")))
    table = json.loads(call("check", "--format", "sarif")[1])
    check.validate(table)
    (run,) = table["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["NPU403", "NPU201", "NPU507"]
    device = run["results"][1]
    region = {"startLine": 4, "startColumn": 24, "endLine": 4, "endColumn": 28}
    assert device["locations"][0]["physicalLocation"]["region"] == region
    (replacement,) = device["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement == {"deletedRegion": region, "insertedContent": {"text": "npu"}}
    assert "fixes" not in run["results"][2]


@pytest.mark.skipif("SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names no file with the official schema")
def test_sarif_is_valid_against_the_official_schema() -> None:
    table = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text())
    document = json.loads(render(odd_items(), "sarif"))
    root = {"$ref": "#/definitions/Root"} if "Root" in table["definitions"] else {}
    jsonschema.Draft7Validator({"definitions": table["definitions"], **(root or table)}).validate(document)


def test_fingerprints_stay_when_lines_move(project: Path, call: Call) -> None:
    def marks() -> list[str]:
        run = json.loads(call("check", "--format", "sarif")[1])["runs"][0]
        return [result["partialFingerprints"]["transplt/v1"] for result in run["results"]]

    before = marks()
    assert len(set(before)) == 3
    (project / "train.py").write_text("# above\n" + TRAIN)
    assert marks() == before


def test_github_escapes_what_separates() -> None:
    first, second = render(odd_items(), "github").splitlines()
    assert first.startswith("::error title=NPU201,file=dir/a b%2Cc%3A%25é.py,line=3,endLine=3,col=5,endColumn=9::")
    assert "%0A%0D" in first
    assert second.startswith("::error title=NPU501,file=\\xff.py,")


def test_gitlab_has_what_it_asks_for() -> None:
    issues: list[dict[str, Any]] = json.loads(render(odd_items(), "gitlab"))
    assert [issue["severity"] for issue in issues] == ["minor", "critical"]
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["location"]["lines"]["begin"] == 3


def test_junit_counts_and_parses() -> None:
    root = ElementTree.fromstring(render(odd_items(), "junit").encode("utf-8", "backslashreplace"))
    assert (root.get("tests"), root.get("failures")) == ("2", "2")
    assert len(root.findall(".//failure")) == 2
    empty = ElementTree.fromstring(render(CheckResult(), "junit").encode())
    assert (empty.get("tests"), empty.get("failures")) == ("1", "0")


def test_text_in_colour_and_with_what_is_worth_knowing() -> None:
    plain = render(odd_items(), "concise", verbose=True)
    assert "z.py:3:5: NPU790 worth knowing\n" in plain
    coloured = render(odd_items(), "text", color=True)
    assert "\x1b[" in coloured


@pytest.mark.parametrize(
    ("text", "span", "line", "carets"),
    [
        ("\tx = cuda()", (6, 10), "    x = cuda()", "        ^^^^"),
        ("x = '日本', cuda", (11, 15), "x = '日本', cuda", "            ^^^^"),
        ("a" * 200 + " cuda " + "b" * 200, (202, 206), None, " " * 58 + "^^^^"),
    ],
)
def test_carets_stand_below_the_place(text: str, span: tuple[int, int], line: str | None, carets: str) -> None:
    place = Span(1, span[0], 1, span[1], 0, 0)
    item = CheckedFinding(Finding("a.py", place, "NPU201", Level.MANUAL, "m"), "0" * 32, ((1, text),))
    lines = render(CheckResult(items=(item,)), "text").splitlines()
    assert lines[3] == f"  | {carets} NPU201"
    if line is not None:
        assert lines[2] == f"1 | {line}"
    else:
        assert lines[2][4:].startswith("...a") and lines[2].endswith("b...")
        assert lines[2][4:][58:62] == "cuda"
