"""Every face says the same of one tree: text, JSON, SARIF, a migration with its reports, a survey, agents, an editor.

What an edit mends is open to a check and done to a migration; all else is the same, with its place, and so are the
actions. The output of a migration, looked at again, leaves what was left.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from openpyxl import load_workbook

from scripts.regen_samples import SAMPLES
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import actions_of
from transplt.faces.cli.main import main
from transplt.faces.lsp.open_project import OpenProject
from transplt.faces.mcp.work_orders import work_orders
from transplt.project.options import Options, make_plan
from transplt.project.report.analysis_summary import summarize
from transplt.project.report.migration_record import RunResult
from transplt.project.survey.measure import row_of
from transplt.project.tree import analyse_tree, migrate_tree

#: (path, line, code, message) of what is left.
Left = Counter[tuple[str, int, str, str]]
TREES = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.glob("**/cuda") if path.is_dir())
#: What is said of a project as a whole stands in one of its files, and an editor shows one file at a time.
_OF_THE_WHOLE = ("NPU844", "NPU846")
OFFERED = "Apply the safe edits: transplt check --fix"


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments], standalone_mode=False, catch_exceptions=False)
    assert isinstance(done.return_value, int)
    return done.stdout


def left_of(result: RunResult) -> Left:
    return Counter((each.path, each.span.line, each.code, each.text) for each in result.open_findings)


def titles(actions: tuple[Action, ...]) -> list[str]:
    return [action.title for action in actions]


class Faces:
    """One tree, migrated once, and checked where it stands."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = folder
        self.migrated = migrate_tree(make_plan(Options(source=folder, out=out, analysis=True, jobs=0)))
        self.left = left_of(self.migrated)
        self.titles = titles(actions_of(self.migrated.findings))
        self.checked: dict[str, Any] = json.loads(self.check("json"))

    def check(self, form: str, folder: str = ".") -> str:
        return printed("check", folder, "--no-cache", "-q", "--format", form)

    def open(self, table: dict[str, Any]) -> list[dict[str, Any]]:
        return [each for each in table["findings"] if each["level"] != "info" and not each["known"]]


@pytest.fixture(scope="module", params=TREES)
def faces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Faces:
    folder = tmp_path_factory.mktemp("faces") / "project"
    shutil.copytree(SAMPLES / request.param, folder)
    (folder / ".git").mkdir()  # an editor reads what looks like a project
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return Faces(folder, tmp_path_factory.mktemp("out"))


@pytest.fixture(autouse=True)
def there(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths and titles are those of the project where it is checked from inside."""
    monkeypatch.chdir(faces.folder)


def test_a_check_leaves_what_a_migration_leaves(faces: Faces) -> None:
    rows = [each for each in faces.open(faces.checked) if each["edit"] is None]
    assert Counter((each["path"], each["line"], each["code"], each["message"]) for each in rows) == faces.left
    assert [each["title"] for each in faces.checked["actions"] if each["title"] != OFFERED] == faces.titles


def test_text_and_sarif_have_the_findings_of_json(faces: Faces) -> None:
    wanted = Counter((each["path"], each["line"], each["code"]) for each in faces.open(faces.checked))
    lines = re.findall(r"^(.+?):(\d+):\d+: (NPU\d{3}) ", faces.check("concise"), re.M)
    assert Counter((path, int(line), code) for path, line, code in lines) == wanted
    run = json.loads(faces.check("sarif"))["runs"][0]
    places = Counter(
        (
            each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            each["locations"][0]["physicalLocation"]["region"]["startLine"],
            each["ruleId"],
        )
        for each in run["results"]
        if each["level"] != "note"
    )
    assert places == wanted


def test_a_survey_finds_the_same(faces: Faces) -> None:
    result = analyse_tree(make_plan(Options(source=faces.folder, analysis=True, jobs=0)))
    codes = Counter((path, code) for path, _, code, _ in faces.left.elements())
    assert Counter((path, code) for path, _, code, _ in left_of(result).elements()) == codes
    assert [each["title"] for each in row_of(summarize(result))["actions"]] == faces.titles


def test_the_reports_have_the_actions(faces: Faces) -> None:
    out = faces.migrated.output
    page = (out / "report.html").read_text()
    book = load_workbook(io.BytesIO((out / "unsupported_op.xlsx").read_bytes()))
    rows = list(book["actions"].iter_rows(values_only=True))[1:] if "actions" in book.sheetnames else []
    assert [row[2] for row in rows if isinstance(row[0], int)] == faces.titles
    shown = re.findall(r'data-tick="([^"]*)"', page)
    parts = [part.title for action in actions_of(faces.migrated.findings) for part in (action, *action.parts)]
    assert [re.sub(r"&(?:#34|quot);", '"', each).replace("&amp;", "&").replace("&#39;", "'") for each in shown] == parts


def test_agents_get_the_actions_and_their_parts(faces: Faces) -> None:
    orders = [each["do"] for each in work_orders(faces.checked, ".")]
    actions = actions_of(faces.migrated.findings)
    parts = [part.title for action in actions for part in action.parts or (action,)]
    assert [each for each in orders if each != OFFERED] == [part[: len(each)] for part, each in zip(
        parts, [each for each in orders if each != OFFERED], strict=True
    )]  # fmt: skip


def test_an_editor_shows_the_same(faces: Faces) -> None:
    opened = OpenProject.around(faces.folder / "x.py", Options())
    opened.refresh()
    for record in faces.migrated.python_files:
        wanted = Counter(
            (line, code) for path, line, code, _ in faces.left.elements()
            if path == record.path and code not in _OF_THE_WHOLE
        )  # fmt: skip
        if not (faces.folder / record.path).is_file():
            continue  # the file that a migration adds
        found = opened.findings(faces.folder / record.path, (faces.folder / record.path).read_text())
        here = Counter((each.span.line, each.code) for each in found if each.open and each.edit is None)
        assert {code for _, code in here} == {code for _, code in wanted}, record.path


def test_what_is_left_stays_left_in_the_output(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(faces.migrated.output)
    again = faces.open(json.loads(faces.check("json")))
    wanted = Counter((path, code) for path, _, code, _ in faces.left.elements())
    assert Counter((each["path"], each["code"]) for each in again) == wanted
