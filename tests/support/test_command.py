"""transplt analyze: what is printed, what is written, what is refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from openpyxl import load_workbook

from transplt.base.errors import CannotFinish, UsageError
from transplt.base.finding import Finding, Level, Span
from transplt.engine.actions.effort import FileEffort, effort_of, total
from transplt.engine.analysis.sheets import SHEETS as ANALYSIS_SHEETS
from transplt.engine.analysis.version_advice import advise
from transplt.faces.cli.analyze import check_target, read_library
from transplt.faces.cli.main import main
from transplt.project.options import Options, make_plan
from transplt.project.report.analysis_summary import summarize
from transplt.project.report.unsupported_op import SHEETS
from transplt.project.tree import analyse_tree

TRAIN = """import torch
import xformers.ops
from torch import nn


def train(loader):
    model = nn.DataParallel(nn.Linear(2, 2)).cuda()
    other = nn.parallel.DataParallel(model)
    for batch in loader:
        loss = nn.MultiLabelMarginLoss()(nn.RReLU()(model(batch.cuda())), batch)
        loss.backward()
        print(loss.item())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "=project"
    (folder / "ops").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "=odd.py").write_text("import torch\ntorch.poisson(1)\n")
    (folder / "broken.py").write_text("import torch\nprint(torch.ones(1)\n")
    (folder / "ops" / "blur.cu").write_text("__global__ void blur_kernel(float* x) {}\n")
    return folder


def run(*arguments: object) -> int:
    return main.main([str(each) for each in ("analyze", *arguments)], prog_name="transplt", standalone_mode=False)


@pytest.mark.parametrize("executor", ["inline", "processes:2"])
def test_an_executor_finds_the_same(project: Path, capsys: pytest.CaptureFixture[str], executor: str) -> None:
    run(project, "--format", "json")
    usual = capsys.readouterr().out
    run(project, "--format", "json", "--executor", executor)
    assert capsys.readouterr().out == usual


def test_what_is_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert run(project) == 1
    assert run(project, "--exit-zero", "-q") == 0
    text = capsys.readouterr().out
    assert "no torch version supports everything the project uses" in text
    first = text.split("  to do: ")[1].splitlines()[1]
    todo = "1. Replace torch.nn.MultiLabelMarginLoss: not supported on NPU (otherwise the program stops at"
    assert first.startswith(f"    {todo}")
    assert ". Fix what Python 3 cannot parse, and migrate again (" in text
    assert "transplt run --shapes" in text
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_aliases_agree(project: Path) -> None:
    plan = make_plan(Options(source=project, analysis=True, jobs=0))
    summary = summarize(analyse_tree(plan))
    uses = {use.api: (use.uses, use.status) for use in summary.apis}
    assert uses["torch.nn.DataParallel"] == (2, "converted")
    assert uses["torch.nn.RReLU"] == (1, "doubted")
    assert uses["torch.nn.MultiLabelMarginLoss"] == (1, "no")
    assert uses["torch.poisson"] == (1, "no")
    assert [each.count for each in summary.actions if "NPU507" in each.codes] == [2]  # on one NPU only


def test_what_is_written(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(project, "-o", out, "-q") == 1
    rows = list(csv.DictReader(io.StringIO((out / "unsupported.csv").read_text())))
    assert {(row["file"], row["api"], row["code"]) for row in rows} >= {
        ("train.py", "torch.nn.MultiLabelMarginLoss", "NPU520"),
        ("'=odd.py", "torch.poisson", "NPU520"),
    }
    document = json.loads((out / "analysis.json").read_text())
    assert document["tool"] == "transplt" and "CC BY 4.0" in document["source"]
    assert document["counts"] == {name: len(found) for name, found in document["findings"].items()}
    assert document["versions"]["lowest"] == ""
    book = load_workbook(out / "unsupported_op.xlsx")
    assert book.sheetnames == [
        name for name in ("actions", *SHEETS, *ANALYSIS_SHEETS, "other remarks", "summary") if name in book.sheetnames
    ]  # fmt: skip
    assert "unsupported" in book.sheetnames and "limited" in book.sheetnames
    for sheet in book:
        assert sheet.max_row > 1
        assert sheet.auto_filter.ref and sheet.freeze_panes == "A2"
        assert not any(cell.data_type == "f" for row in sheet.iter_rows() for cell in row)
    cell = book["unsupported"]["A2"]
    linked = (out / cell.hyperlink.target.replace("%3D", "=")).resolve()
    assert linked.is_file()
    assert run(project, "-o", out, "-q") == 1  # ours: replaced


@pytest.mark.parametrize("there", [False, True])
def test_a_disk_that_is_full_leaves_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    if there:
        out.mkdir()
    monkeypatch.setattr("transplt.project.report.analysis_reports.analysis_json", full)
    with pytest.raises(CannotFinish, match=r"cannot write .*No space left on device"):
        main.main(["analyze", str(project), "-o", str(out), "-q"], standalone_mode=False)
    assert not out.exists() or not any(out.iterdir())


def test_the_migration_has_the_same_sheets(project: Path, tmp_path: Path) -> None:
    arguments = ["-i", str(project), "-q", "--exit-zero", "-o"]
    main.main([*arguments, str(tmp_path / "with")], standalone_mode=False)
    main.main([*arguments, str(tmp_path / "without"), "--no-analysis"], standalone_mode=False)
    with_, without = (tmp_path / name / "=project_msft" for name in ("with", "without"))
    assert "limited" in load_workbook(with_ / "unsupported_op.xlsx").sheetnames
    assert "limited" not in load_workbook(without / "unsupported_op.xlsx").sheetnames
    assert (with_ / "train.py").read_bytes() == (without / "train.py").read_bytes()


def test_json_and_csv_on_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(project, "--format", "json")
    assert json.loads(capsys.readouterr().out)["project"] == "=project"
    run(project, "--format", "csv")
    assert next(csv.reader(io.StringIO(capsys.readouterr().out)))[0] == "sheet"


def test_several_projects_are_ranked(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    easy = tmp_path / "easy"
    easy.mkdir()
    (easy / "a.py").write_text("import torch\nx = torch.ones(1)\n")
    out = tmp_path / "out"
    assert run(project, easy, "-o", out) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["project", "easy", "=project"]
    rows = list(csv.DictReader(io.StringIO((out / "ranking.csv").read_text())))
    assert [row["project"] for row in rows] == ["easy", "'=project"]
    assert (out / "easy" / "analysis.json").is_file()
    run(project, easy, "--format", "csv")
    assert capsys.readouterr().out.startswith("project,")
    run(project, easy, "--format", "json")
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_saved_library(tmp_path: Path) -> None:
    library = tmp_path / "library"
    (library / "src" / "lib").mkdir(parents=True)
    (library / "src" / "lib" / "__init__.py").write_text("from .ops import f\n")
    (library / "src" / "lib" / "ops.py").write_text("import torch\ndef f(x):\n    return torch.ops.mine.f(x)\n")
    run(library, "-o", tmp_path / "saved", "-q")
    assert read_library(tmp_path / "saved")["lib.f"] == "torch.ops.mine"
    user = tmp_path / "user.py"
    user.write_text("import torch\nimport lib\ndef g(x):\n    return lib.f(x)\n")
    run(user, "--library", tmp_path / "saved", "-o", tmp_path / "out", "-q")
    document = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert [row["api"] for row in document["findings"]["extensions"]] == ["user.g"]


def test_what_is_refused(project: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for target in (tmp_path / "full", project / "out", project, tmp_path / "full" / "thesis.tex"):
        with pytest.raises(UsageError):
            check_target(target, [project])
    for path in (tmp_path / "full", project / "train.py"):
        with pytest.raises(UsageError):
            read_library(path)
    with pytest.raises(UsageError):
        run(project, "--torch-version", "1.5")


def test_version_advice() -> None:
    assert advise(["torch.abs"]).lowest == "2.1"
    assert advise(["torch.cdist", "torch.nn.GRU"]).lowest == "2.1"  # the documentation alone is against them
    found = advise(["torch.linalg.lstsq", "torch.abs"])
    assert found.lowest > "2.1" and found.unsupported["2.1"] == ("torch.linalg.lstsq",)
    assert found.lowest in found.text()
    none = advise(
        ["torch.poisson", "torch.heaviside", "torch.Tensor.mode", "torch.linalg.ldl_factor", "torch.linalg.lstsq"]
    )
    assert none.lowest == "" and none.best > "2.1" and "and 1 more" in none.text()


def test_effort() -> None:
    python, source = FileEffort("a.py", 1, 1, 0, 0, 0.25, 2, 1), FileEffort("b.cu", 0, 0, 1, 1, 9.5, 2)
    every = total([python, source], {"a.py"}, 8.25)
    assert every == FileEffort("all files", 1, 1, 1, 1, 8.25, 2, 1)
    assert (every.share, source.share) == (0.5, 0.0)  # no edit is ever made in CUDA sources
    assert effort_of("a", []).share == 1.0
    # What newer releases rename or refuse is no place bound to CUDA, edited or not.
    at = {line: Span(line, 1, line, 2, 0, 1) for line in (1, 2)}
    edits = [Finding("a.py", at[1], code, Level.SAFE, "", applied=True) for code in ("NPU210", "NPU153")]
    left = [Finding("a.py", at[2], code, Level.MANUAL, "") for code in ("NPU154", "NPU901", "NPU501")]
    one = effort_of("a.py", [*edits, *left])
    assert (one.automatic, one.left, one.done, one.counted) == (2, 3, 1, 2)
    # What is edited in notebooks is no part of what is Python: the share was 300 % before.
    assert total([python, FileEffort("c.ipynb", 5, 0, 0, 0, 0, 5, 5)], {"a.py"}, 0).share == 0.5


def test_libreoffice_opens_the_workbook(project: Path, tmp_path: Path) -> None:
    soffice = shutil.which("soffice") or shutil.which("libreoffice")
    if soffice is None:
        pytest.skip("LibreOffice is not installed: no soffice on the PATH")
    run(project, "-o", tmp_path / "out", "-q")
    command = [
        soffice,
        "--headless",
        "--convert-to",
        "csv",
        "--outdir",
        tmp_path,
        tmp_path / "out" / "unsupported_op.xlsx",
    ]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    assert "Replace torch.poisson: not supported on NPU" in (tmp_path / "unsupported_op.csv").read_text()
