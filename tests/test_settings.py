"""From the command line to `Settings` and `Plan`: many lines, and what each came to when options went there one by one.

tests/data/settings.json has a row a line: what differs from the defaults, or the error that ends it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

import transplt.engine.engine
import transplt.project.checking.inputs
import transplt.project.options
from tests.test_config import EVERYTHING
from transplt.base.errors import TranspltError
from transplt.base.settings import TORCH_VERSIONS, Settings, TorchTarget, listed
from transplt.faces.cli import library
from transplt.faces.cli.main import main
from transplt.fixers.tunings.table import parse_tunings
from transplt.project.config import Config
from transplt.project.options import Options, Plan

ROWS = json.loads(
    (Path(__file__).parent / "data" / "settings.json").read_text().replace("NEWEST", TORCH_VERSIONS[-1])
)
RULES = '{"rules": {"FuncNameModifyRule": [{"old_name": "lib.f", "new_name": "lib.g"}]}}'
DEFAULTS = Settings()


class Seen(Exception):
    """Ends a run as soon as it has its settings."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    top, here = tmp_path_factory.mktemp("lines"), os.getcwd()
    for name in ("plain", "own"):
        (top / name / "inner").mkdir(parents=True)
        (top / name / ".git").mkdir()
        (top / name / "train.py").write_text("import torch\n")
        (top / name / "inner" / "a.py").write_text("import torch\n")
        (top / name / "requirements.txt").write_text("torch==2.6.0\n")
    (top / "own" / "pyproject.toml").write_text(EVERYTHING)
    for name in ("own/rules.json", "more.json"):
        (top / name).write_text(RULES)
    (top / "saved").mkdir()
    (top / "saved" / "analysis.json").write_text('{"extensions": {"lib.op": "_C"}}')
    os.chdir(top)
    yield top
    os.chdir(here)


def short(value: Any) -> Any:
    return [short(each) for each in value] if isinstance(value, (list, tuple)) else value


def of_settings(settings: Settings) -> dict[str, Any]:
    row = {field.name: short(getattr(settings, field.name)) for field in fields(Settings)}
    row = {name: value for name, value in row.items() if value != short(getattr(DEFAULTS, name))}
    row.pop("helper_file", None)  # of a plan; see there
    if row.get("pins") == [["torch", "==2.6.0"]]:  # the folder's own, in every row
        del row["pins"]
    if "user_rules" in row:
        row["user_rules"] = [name for name, _ in row["user_rules"]]
    for named in {"tune", "adapt"} & row.keys():
        row[named] = listed(row[named])
    if row.get("per_file_ignores") == [["tests/*", ["NPU3", "NPU501"]]]:
        row["per_file_ignores"] = "own"
    return row


def of_plan(plan: Plan) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if plan.torch.version != plan.settings.torch_version:
        row["torch"] = plan.torch.version
    if plan.torch.why != "requirements.txt requires torch==2.6.0":
        row["why"] = plan.torch.why
    row["source"] = os.path.relpath(plan.source)
    if str(plan.target) != str(plan.source.with_suffix("")) + "_msft":
        row["target"] = os.path.relpath(plan.target)
    given, plain = plan.options, Options()
    assert plan.settings.helper_file is not (plan.single or given.inline)
    for name in ("exclude", "inline", "force", "discard_edits", "jobs", "report_only", "page"):
        if short(getattr(given, name)) != short(getattr(plain, name)):
            row[name] = short(getattr(given, name))
    if plan.config.exclude:
        row["project_exclude"] = short(plan.config.exclude)
    if plan.copy_all:
        row["copy_all"] = True
    return {**row, **of_settings(plan.settings)}


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a row comes to."""
    seen: list[dict[str, Any]] = []
    make_plan, settings_of = transplt.project.options.make_plan, transplt.project.checking.inputs.settings_of

    def planned(options: Options) -> None:
        seen.append(of_plan(make_plan(options)))
        raise Seen

    def settled(options: Options, config: Config, torch: TorchTarget, folder: Path) -> None:
        seen.append(of_settings(settings_of(options, config, torch, folder)))
        raise Seen

    def migrated(data: bytes, path: str, settings: Settings, project: object = None) -> None:
        seen.append(of_settings(settings))
        raise Seen

    monkeypatch.setattr(transplt.project.options, "make_plan", planned)
    monkeypatch.setattr(transplt.project.checking.inputs, "settings_of", settled)
    monkeypatch.setattr(transplt.engine.engine, "migrate_source", migrated)

    def outcome(row: dict[str, Any]) -> dict[str, Any]:
        seen.clear()
        try:
            if "run" in row:
                main.main(shlex.split(row["run"]), prog_name="transplt", standalone_mode=False)
            else:
                getattr(library, row["call"])(row["path"], **row["given"])
        except Seen:
            return seen[0]
        except TranspltError as error:
            return {"error": str(error)}
        except click.ClickException as error:
            return {"error": error.format_message()}
        raise AssertionError("no settings were made")

    return outcome


def test_each_line_comes_to_what_it_came_to(
    folder: Path, outcome: Callable[[dict[str, Any]], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(ROWS) > 300
    wrong = {}
    for row in ROWS:
        line = {name: row[name] for name in ("run", "call", "path", "given") if name in row}
        wanted = {name: value for name, value in row.items() if name not in line}
        if "tune" in wanted:  # a list as `--tune` takes it
            wanted["tune"] = listed(parse_tunings(wanted["tune"], wanted.get("torch_version", TORCH_VERSIONS[-1])))
        found = outcome(row)
        if found != wanted:
            wrong[json.dumps(line)] = (found, wanted)
    assert wrong == {}


def test_every_setting_that_is_asked_for_has_its_option() -> None:
    """An option goes to the settings by its name: a name that is spelled otherwise would go nowhere."""
    made_elsewhere = {"user_rules", "per_file_ignores", "base", "show", "refusal", "in_place", "pins", "only_lines"}
    made_elsewhere |= {"picked"}  # by `check --pick`
    made_elsewhere |= {"helper_file", "own_card", "decided"}  # by `inline`; what card-read wrote; by a plan
    made_elsewhere |= {"completes"}  # what other files take from a module of the project
    made_elsewhere |= {"oldest_torch", "line_length"}  # what the requirements of the project and its formatters say
    assert {field.name for field in fields(Settings)} - made_elsewhere <= {field.name for field in fields(Options)}
    taken = {option.name for option in main.params} - {"diff", "exit_zero", "language", "verbose", "quiet", "version"}
    taken -= {"prove", "stubs", "data", "card_pack", "python", "compiled"}  # of the proof
    assert taken <= {field.name for field in fields(Options)}
