"""Every face says the same of one tree: text, JSON, SARIF, a migration with its reports, a survey, agents, an editor.

What an edit mends is open to a check and done to a migration; all else is the same, with its place, and so are the
actions. The output of a migration, looked at again, leaves what was left.
"""

from __future__ import annotations

import html
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from openpyxl import load_workbook

from scripts.regen_samples import SAMPLES
from tests.many_actions import write_many
from transplt.base.render.cell import many
from transplt.engine.actions.action import BLOCKS_TEXT, Action
from transplt.engine.actions.actions import actions_of, separate, total_hours
from transplt.faces.cli.main import main
from transplt.faces.lsp.open_project import OpenProject
from transplt.faces.mcp.work_orders import work_orders
from transplt.project.options import Options, make_plan
from transplt.project.port.checklist import checklist
from transplt.project.report.action_lines import about, hours_of
from transplt.project.report.analysis_summary import summarize
from transplt.project.report.html import action_groups
from transplt.project.report.migration_record import RunResult
from transplt.project.report.summary import summary
from transplt.project.survey.measure import row_of
from transplt.project.survey.survey_text import survey_text
from transplt.project.tree import analyse_tree, migrate_tree

#: (path, line, code, message) of what is left.
Left = Counter[tuple[str, int, str, str]]
TREES = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.glob("**/cuda") if path.is_dir())
#: One of each kind every day; the others with the long checks.
_DAILY = ("adaptors/points", "amp_apex/project", "distributed/function", "image_classifier", "portable", "precision")
#: What is said of a project as a whole stands in one of its files, and an editor shows one file at a time.
_OF_THE_WHOLE = ("NPU844", "NPU846")
OFFERED = "Apply the safe edits: transplt check --fix"


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments], standalone_mode=False, catch_exceptions=False)
    assert isinstance(done.return_value, int)
    return done.stdout


def left_of(result: RunResult) -> Left:
    return Counter((each.path, each.span.line, each.code, each.text) for each in result.open_findings)


def titles(actions: Iterable[Action]) -> list[str]:
    return [action.title for action in actions]


class Faces:
    """One tree, migrated once, and checked where it stands."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = folder
        self.migrated = migrate_tree(make_plan(Options(source=folder, out=out, analysis=True, jobs=0)))
        self.left = left_of(self.migrated)
        self.actions = actions_of(self.migrated.findings)
        self.titles = titles(self.actions)
        self.checked: dict[str, Any] = json.loads(self.check("json"))

    def check(self, form: str, folder: str = ".") -> str:
        return printed("check", folder, "--no-cache", "-q", "--format", form)

    def open(self, table: dict[str, Any]) -> list[dict[str, Any]]:
        return [each for each in table["findings"] if each["level"] != "info" and not each["known"]]


@pytest.fixture(scope="module", params=[
    *(pytest.param(each, marks=() if each.startswith(_DAILY) else pytest.mark.slow) for each in TREES),
    "many",
])
def faces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Faces:
    folder = tmp_path_factory.mktemp("faces") / "project"
    if request.param == "many":
        write_many(folder)
    else:
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
    assert [each["title"] for each in row_of(summarize(result))["actions"]] == titles(separate(faces.actions))


def test_the_reports_have_the_actions(faces: Faces) -> None:
    out = faces.migrated.output
    page = (out / "report.html").read_text()
    book = load_workbook(io.BytesIO((out / "unsupported_op.xlsx").read_bytes()))
    rows = list(book["actions"].iter_rows(values_only=True))[1:] if "actions" in book.sheetnames else []
    assert [row[2] for row in rows if isinstance(row[0], int)] == faces.titles
    shown = [html.unescape(each) for each in re.findall(r'data-tick="([^"]*)"', page)]
    parts = [part.title for action in faces.actions for part in (action, *action.parts)]
    assert shown == parts


def standing(actions: Iterable[Action]) -> list[tuple[str, str]]:
    """Titles, with the words of what each blocks."""
    return [(action.title, action.blocking) for action in actions]


def test_one_number_and_one_class_of_the_actions_in_every_face(faces: Faces, tmp_path: Path) -> None:
    wanted = standing(separate(faces.actions))
    classes = [(text, same) for text in BLOCKS_TEXT.values() if (same := sum(text == each for _, each in wanted))]
    head = f"{many(len(wanted), 'action')}, {hours_of(faces.actions)}" if wanted else ""
    tops = [*dict.fromkeys(action.heading for action in faces.actions)]
    assert [each.partition(":")[0] for each in tops] == [text for text, _ in classes]

    for lines in (summary(faces.migrated), summary(faces.migrated, 1)):
        assert (text := "\n".join(lines)) and f"to do: {head}" * bool(head) in text
    assert [line.strip() for line in summary(faces.migrated, 1) if line.strip() in tops] == tops
    plan = printed("plan", ".").partition("## Left to do by hand")[2]
    assert head in plan and [each.lower() for each in re.findall(r"^### (.*)", plan, re.M)] == [*map(str.lower, tops)]

    page = html.unescape((faces.migrated.output / "report.html").read_text())
    assert (f"{len(wanted)} action" in page and hours_of(faces.actions) in page) or not wanted
    assert [(each["short"], each["count"]) for each in action_groups(faces.actions, {})] == classes
    book = load_workbook(io.BytesIO((faces.migrated.output / "unsupported_op.xlsx").read_bytes()))
    rows = list(book["actions"].iter_rows(values_only=True))[1:] if wanted else []
    joined = {str(row[0]).partition(".")[0] for row in rows if not isinstance(row[0], int)}
    assert [(row[2], row[1]) for row in rows if str(row[0]) not in joined] == wanted

    done = CliRunner().invoke(main, ["survey", ".", "-q", "-o", str(tmp_path / "survey"), "--exit-zero"])
    value = json.loads((tmp_path / "survey/survey.json").read_text())
    (row,) = value["repositories"]
    assert done.exit_code == 0 and [(each["title"], BLOCKS_TEXT[each["blocks"]]) for each in row["actions"]] == wanted
    for counted in (row["blocks"], value["total"]["blocks"]):
        assert {BLOCKS_TEXT[kind]: count for kind, count in counted.items() if count} == dict(classes)
    sheet = load_workbook(tmp_path / "survey/survey.xlsx")["actions"]
    assert [(row[1], row[2]) for row in [*sheet.iter_rows(values_only=True)][1:]] == wanted
    said = f", {about(total_hours(faces.actions))} of work" if wanted else "; left in all files: nothing"
    assert said in survey_text(value)

    orders = [(each["do"], each["blocks"]) for each in work_orders(faces.checked, ".") if each["do"] != OFFERED]
    assert [each for _, each in orders] == [each for _, each in wanted]
    boxes = checklist(faces.migrated, faces.actions, b"", {})
    assert re.findall(r"^- \[ \] \*\*(.+)\*\* \(", boxes, re.M) == [title.replace("*", "\\*") for title, _ in wanted]
    assert [each.lower() for each in re.findall(r"^## (.*)", boxes, re.M)] == [*map(str.lower, tops)]


def test_agents_get_the_actions_and_their_parts(faces: Faces) -> None:
    orders = [each["do"] for each in work_orders(faces.checked, ".")]
    parts = titles(separate(faces.actions))
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
