"""--force replaces what transplt wrote, nothing else, and never throws edits away unasked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import transplt.base.disk.publish
import transplt.engine.engine
from tests import standin_engine
from transplt.base.disk.manifest import edited_since, read_manifest
from transplt.base.errors import CannotFinish, UsageError
from transplt.base.settings import TORCH_VERSIONS
from transplt.project.options import Options, make_plan
from transplt.project.report.migration_record import RunResult
from transplt.project.tree import migrate_tree


@pytest.fixture(autouse=True)
def standin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transplt.engine, "engine", standin_engine)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_text("torch.cuda\n")
    (folder / "b.txt").write_text("b\n")
    (folder / "link.py").symlink_to("pkg/a.py")
    return folder


def run(source: Path, **options: bool) -> RunResult:
    return migrate_tree(make_plan(Options(source, jobs=0, **options)))  # type: ignore[arg-type]


def test_an_existing_output_is_an_error(project: Path) -> None:
    run(project)
    with pytest.raises(UsageError, match="exists; --force replaces it if transplt wrote it"):
        run(project)


def test_force_replaces_an_untouched_output(project: Path, tmp_path: Path) -> None:
    out = run(project).output
    (project / "pkg" / "a.py").write_text("torch.cuda.x\n")
    (project / "b.txt").unlink()
    run(project, force=True)
    assert (out / "pkg" / "a.py").read_text() == "torch.npu.x\n"
    assert not (out / "b.txt").exists()
    assert sorted(os.listdir(tmp_path)) == ["proj", "proj_msft"]


@pytest.mark.parametrize("change", ["edited", "link", "report"])
def test_edits_need_discard_edits(project: Path, change: str) -> None:
    out = run(project).output
    if change == "edited":
        (out / "pkg" / "a.py").write_text("mine\n")
        name = "pkg/a.py"
    elif change == "report":
        with open(out / "change_list.csv", "a") as file:
            file.write("a note of mine\n")
        name = "change_list.csv"
    else:
        (out / "link.py").unlink()
        (out / "link.py").write_text("mine\n")
        name = "link.py"
    with pytest.raises(UsageError, match=rf"was edited after transplt wrote it \({name}\): .* --discard-edits$"):
        run(project, force=True)
    assert os.path.lexists(out / name)
    run(project, force=True, discard_edits=True)
    assert (out / "pkg" / "a.py").read_text() == "torch.npu\n"


def test_many_edits_are_counted(project: Path) -> None:
    for number in range(8):
        (project / f"old{number}.py").write_text("old\n")
    out = run(project).output
    for number in range(8):
        (out / f"old{number}.py").write_text("mine\n")
    with pytest.raises(UsageError, match="and 3 more"):
        run(project, force=True)


def test_what_was_added_is_kept_and_said(project: Path, tmp_path: Path) -> None:
    out = run(project).output
    (out / "runs" / "1").mkdir(parents=True)
    (out / "runs" / "1" / "model.pt").write_bytes(b"weights")
    (out / "runs").chmod(0o700)
    (out / "pkg" / "mine.py").write_text("mine\n")
    (out / "data").symlink_to(tmp_path)
    (project / "pkg" / "a.py").write_text("torch.cuda.x\n")
    (project / "b.txt").unlink()
    for _ in range(2):
        said = "kept 3 files of the old output that transplt did not write: data, pkg/mine.py, runs/1/model.pt"
        assert run(project, force=True).notes == (said,)
    assert (out / "pkg" / "a.py").read_text() == "torch.npu.x\n"
    assert (out / "runs" / "1" / "model.pt").read_bytes() == b"weights"
    assert (out / "runs").stat().st_mode & 0o777 == 0o700
    assert (out / "data").is_symlink() and not (out / "b.txt").exists()
    assert sorted(os.listdir(tmp_path)) == ["proj", "proj_msft"]
    assert run(project, force=True, discard_edits=True).notes == ()
    assert sorted(os.listdir(out / "pkg")) == ["a.py"] and not (out / "runs").exists()


def test_what_the_new_output_has_too_is_not_in_the_way(project: Path) -> None:
    out = run(project).output
    (project / "data").mkdir()
    for path in (project / "data" / "a.csv", project / "c.txt", out / "c.txt"):
        path.write_text("1\n")
    (out / "data").symlink_to(project / "data")
    assert run(project, force=True).notes == ()
    assert not (out / "data").is_symlink() and (out / "data" / "a.csv").read_text() == "1\n"


@pytest.mark.parametrize(("added", "new"), [("new.txt", "new.txt"), ("new/a", "new"), ("reports", "reports/a")])
def test_what_was_added_stands_in_the_way_of_what_is_new(project: Path, added: str, new: str) -> None:
    out = run(project).output
    for path in (out / added, project / new):
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(path))
    with pytest.raises(UsageError, match=f"^{added} was added to .*: move yours away, or throw it away with --discard"):
        run(project, force=True)
    assert (out / added).read_text() == str(out / added)
    run(project, force=True, discard_edits=True)
    assert (out / new).read_text() == str(project / new)


def test_what_running_leaves_behind_is_no_edit(project: Path) -> None:
    out = run(project).output
    (out / "pkg" / "__pycache__").mkdir()
    (out / "pkg" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"\0")
    run(project, force=True)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{",
        "[]",
        '{"tool": "other", "format": 1, "files": {}, "reports": {}}',
        '{"tool": "transplt", "format": 99, "files": {}, "reports": {}}',
        '{"tool": "transplt", "format": 1, "files": [], "reports": {}}',
        '{"tool": "transplt", "format": 1, "files": {"a": 1}, "reports": {}}',
        '{"tool": "transplt", "format": 1, "files": {}, "reports": {"a": 1}}',
        '{"tool": "transplt", "format": 1, "files": {}, "reports": {}, "links": null}',
        '{"tool": "transplt", "format": 1, "files": {}, "reports": {}, "left_out": [[]]}',
    ],
)
def test_force_leaves_other_folders_alone(project: Path, tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "proj_msft"
    (folder / ".transplt").mkdir(parents=True)
    (folder / "precious").write_text("p")
    if content is not None:
        (folder / ".transplt" / "manifest.json").write_text(content)
    for discard in (False, True):
        with pytest.raises(UsageError, match="was not written by transplt, so --force does not replace it"):
            run(project, force=True, discard_edits=discard)
    assert (folder / "precious").read_text() == "p"


def test_force_does_not_follow_a_link(project: Path, tmp_path: Path) -> None:
    elsewhere = run(project).output.rename(tmp_path / "elsewhere")
    (tmp_path / "proj_msft").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="was not written by transplt"):
        run(project, force=True)
    assert (elsewhere / "b.txt").exists()


def test_a_failure_puts_the_old_output_back(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = run(project).output
    (project / "pkg" / "a.py").write_text("torch.cuda.x\n")
    real = os.rename

    def rename(old: str | Path, new: str | Path) -> None:
        if Path(new) == out and Path(old).name.startswith(".proj_msft.") and ".old." not in Path(old).name:
            raise OSError(18, "Invalid cross-device link")
        real(old, new)

    monkeypatch.setattr(transplt.base.disk.publish.os, "rename", rename)
    with pytest.raises(CannotFinish, match=r"cannot put the output at .*: Invalid cross-device link"):
        run(project, force=True)
    assert (out / "pkg" / "a.py").read_text() == "torch.npu\n"
    assert sorted(os.listdir(tmp_path)) == ["proj", "proj_msft"]


def test_an_output_that_appears_meanwhile_is_left_alone(project: Path, tmp_path: Path) -> None:
    def appear(done: int, total: int) -> None:
        (tmp_path / "proj_msft").mkdir(exist_ok=True)

    with pytest.raises(UsageError, match="appeared during the migration"):
        migrate_tree(make_plan(Options(project)), appear)
    assert os.listdir(tmp_path / "proj_msft") == []
    assert sorted(os.listdir(tmp_path)) == ["proj", "proj_msft"]


def test_what_the_manifest_holds(project: Path) -> None:
    out = run(project).output
    table = json.loads((out / ".transplt" / "manifest.json").read_text())
    assert sorted(table["files"]) == ["b.txt", "pkg/a.py"]
    assert table["links"] == ["link.py"]
    assert table["torch"] == TORCH_VERSIONS[-1]
    assert read_manifest(out) == table
    assert edited_since(out, table) == []
    (out / "b.txt").unlink()
    assert edited_since(out, table) == []
