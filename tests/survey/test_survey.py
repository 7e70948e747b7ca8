"""`transplt survey` over small repositories: what it keeps, says and refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.browser import browser
from tests.test_html_report import in_browser
from transplt.base.errors import UsageError
from transplt.base.extras import install_command
from transplt.faces.cli.survey import survey
from transplt.project.survey import alone
from transplt.project.survey.alone import analyse
from transplt.project.survey.sources import projects_in, read_list, sources_of
from transplt.project.survey.task import Task


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(text, encoding="utf-8")
    return folder


def run(*arguments: object) -> tuple[int, str, str]:
    given = [*map(str, arguments), "--executor", "inline"]
    result = CliRunner().invoke(survey, given, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout, result.stderr


def document(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "survey.json").read_bytes()))


def test_a_survey_keeps_what_it_knows_and_names_what_fails(tmp_path: Path) -> None:
    free = project(tmp_path / "free", "import torch\nx = torch.ones(1).cuda()\n")
    bound = project(tmp_path / "bound", "import torch\nimport tutel\nx = torch.ones(1).cuda()\n")
    out = tmp_path / "out"
    code, said, progress = run(free, bound, tmp_path / "gone", "-o", out)
    assert code == 1
    assert "2 analyzed now, 0 unchanged" in progress and "failed: no such folder" in progress
    assert "2 repositories analyzed, 1 failed" in said
    value = document(out)
    assert [row["name"] for row in value["repositories"]] == ["free", "bound"]
    assert [(row["name"], row["reason"]) for row in value["failed"]] == [("gone", "no such folder")]
    assert value["total"]["nothing_stops"] == 1
    (first,) = value["unblocking"]
    assert (first["kind"], first["name"], first["only"], first["blocks"]) == ("package", "tutel", ["bound"], ["bound"])
    (package,) = value["packages"]
    assert package["package"] == "tutel" and package["open_in"] == ["bound"] and package["instead"]
    page = (out / "report.html").read_text("utf-8")
    assert "http:" not in page and "https:" not in page and "tutel" in page
    before = (out / "survey.json").read_bytes(), (out / "survey.xlsx").read_bytes()
    # A second run asks nobody; a change is seen by the content.
    _, _, progress = run(free, bound, tmp_path / "gone", "-o", out)
    assert "0 analyzed now, 2 unchanged" in progress
    assert ((out / "survey.json").read_bytes(), (out / "survey.xlsx").read_bytes()) == before
    (bound / "train.py").write_text("import torch\nx = torch.ones(1).cuda()\n", encoding="utf-8")
    old = tmp_path / "old.json"
    old.write_bytes(before[0])
    # What was kept is taken only if it is what was written.
    (state,) = (out / "repositories").glob("free-*")
    kept = state.read_bytes()
    state.write_bytes(kept[: len(kept) // 2])
    code, said, progress = run(free, bound, "-o", out, "--since", old)
    assert code == 0 and "2 analyzed now, 0 unchanged" in progress
    assert json.loads(state.read_bytes())["row"] == json.loads(kept)["row"]
    assert "nothing stops: 1, 2" in said and "nothing missing: 1, 2" in said and "no longer: Replace tutel" in said


def test_each_api_is_a_thing_of_its_own_and_torch_is_no_package(tmp_path: Path) -> None:
    text = "from torch._six import int_classes\nfrom torch import heaviside, poisson\n"
    folder = project(tmp_path / "one", f"{text}heaviside(p, p)\npoisson(p)\n")
    row = json.loads(analyse(Task("one", str(folder), torch_version="2.5")).row)
    names = {each["name"] for each in row["things"] if each["kind"] == "api"}
    assert {"torch._six", "torch.heaviside", "torch.poisson"} <= names
    assert "torch._six.int_classes" not in names  # the module is gone with all its names: one thing
    assert row["packages"] == []


@in_browser
def test_the_page_fits_screens_of_any_width(tmp_path: Path) -> None:
    """Whatever the width nothing but the table of figures scrolls, and what is known of a package is on the screen."""
    bound = project(tmp_path / "a_repository_of_a_long_name", "import torch\nimport apex, bitsandbytes, flash_attn\n")
    run(bound, tmp_path / "gone", "-o", tmp_path / "out")
    beyond = "return [...document.querySelectorAll('{}')].filter(e => e.getBoundingClientRect().right > {}).length"
    with browser(tmp_path) as page:
        page.open(tmp_path / "out" / "report.html")
        for width in (320, 800, 1280):
            page.size(width, 900)
            assert page.run("return document.documentElement.scrollWidth") <= width
            assert page.run("return document.querySelectorAll('td.what').length") >= 4
            assert page.run(beyond.format("td.what, .lines td.number, p, li", width)) == 0
        assert page.log() == []


def test_a_repository_from_git_by_its_commit(tmp_path: Path) -> None:
    origin = project(tmp_path / "origin", "import torch\nx = torch.ones(1).cuda()\n")
    git = ["git", "-C", str(origin), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True)
    answer = analyse(Task("origin", f"file://{origin}", is_url=True))
    assert answer.failed == ""
    row = json.loads(answer.row)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert row["commit"] == head and row["automatic"] == 1
    assert analyse(Task("origin", f"file://{origin}", is_url=True, known=answer.key)).same


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each has a process of its own there")
def test_many_repositories_need_one_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[object] = []
    starting = alone.started
    monkeypatch.setattr(alone, "started", lambda *given, **named: starts.append(given) or starting(*given, **named))
    monkeypatch.setattr(alone, "_idle", [])
    one = project(tmp_path / "one", "import torch\nx = torch.ones(1).cuda()\n")
    answers = [analyse(Task(name, str(one))) for name in ("first", "second", "third")]
    for ready in alone._idle:
        ready.close()
    assert len(starts) == 1
    assert not any(answer.failed for answer in answers)
    assert len({answer.key for answer in answers}) == 1


def test_limits_cost_a_repository_only_itself(tmp_path: Path) -> None:
    folder = str(project(tmp_path / "one", "import torch\n"))
    assert analyse(Task("one", folder, seconds=0)).failed == "it took longer than 0 s"
    answer = analyse(Task("one", folder, memory_mb=24))
    assert answer.failed and not answer.row
    (tmp_path / "one/data.bin").write_bytes(bytes(1024 * 1024 + 1))
    assert analyse(Task("one", folder, most_mb=1)).failed == "it holds 1 MB, more than the limit of 1 MB"


@pytest.mark.parametrize(
    "text",
    ["ext::sh -c id", "http://host/x.git", "git://host/x", "https://-oProxyCommand=id/x", "-uid", "fd::7", "ssh://-x/y"],
)
def test_what_is_cloned_from_nowhere(text: str) -> None:
    with pytest.raises(UsageError):
        sources_of([text])


def test_sources_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# all\nhttps://u:p@host/a/net.git  # with a password\n\nb/net\n./b/other\n")
    sources = sources_of(read_list(tmp_path / "list"))
    assert [(each.name, each.is_url) for each in sources] == [("a/net", True), ("b/net", False), ("other", False)]
    assert sources[0].shown == "https://host/a/net.git"
    assert sources[1].text == os.path.realpath(tmp_path / "b/net")
    assert [each.is_url for each in sources_of(["git@host:a/b", "ssh://host/a", "file:///a"])] == [True] * 3
    assert len(sources_of([str(tmp_path), f"{tmp_path}/.", str(tmp_path)])) == 1


@pytest.mark.parametrize("name", ["inside", "full", "file"])
def test_folders_that_are_no_survey_stay(tmp_path: Path, name: str) -> None:
    source = project(tmp_path / "source", "import torch\n")
    project(tmp_path / "full", "x = 1\n")
    (tmp_path / "file").write_text("x")
    out = source / "out" if name == "inside" else tmp_path / name
    with pytest.raises(UsageError):
        run(source, "-o", out)
    assert not (source / "out").exists() and sorted(os.listdir(tmp_path / "full")) == ["train.py"]


def test_nothing_to_survey_and_no_survey_before(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to survey"):
        run("-o", tmp_path / "out")
    (tmp_path / "old.json").write_text("{}")
    with pytest.raises(UsageError, match="is not a survey by transplt"):
        run(tmp_path, "-o", tmp_path / "out", "--since", tmp_path / "old.json")


def test_parquet_is_asked_for_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=re.escape(install_command("parquet"))):
        run(project(tmp_path / "one", "x = 1\n"), "-o", tmp_path / "out", "--parquet")
    assert not (tmp_path / "out").exists()


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore")
def test_parquet_has_the_rows_of_the_first_sheet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    run(project(tmp_path / "one", "import tutel\n"), tmp_path / "gone", "-o", tmp_path / "out", "--parquet")
    rows = parquet.read_table(tmp_path / "out/survey.parquet").to_pylist()
    assert [(row["repository"], row["packages"], row["failed"]) for row in rows] == [
        ("one", "tutel", ""),
        ("gone", None, "no such folder"),
    ]


def test_a_folder_of_projects_counts_as_one(tmp_path: Path) -> None:
    for name in ("a", "b", "notes"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "setup.py").touch()
    assert projects_in(tmp_path) == ["a", "b"]
    assert projects_in(tmp_path / "a") == projects_in(tmp_path / "none") == []
    (tmp_path / "README.md").touch()
    assert projects_in(tmp_path) == []
