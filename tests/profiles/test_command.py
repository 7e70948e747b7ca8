"""The command: what it prints, its exit codes, the page, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.browser import browser
from tests.profiles.profiles import KERNELS, STEPS, asked, kernel, run_folder
from tests.test_html_report import in_browser
from transplt.base.errors import UsageError
from transplt.faces.cli.profile_read import profile_read
from transplt.rules.pages import load
from transplt.rules.profiles import Remedy, remedies, slows_text


def read(*arguments: object) -> Result:
    return CliRunner().invoke(profile_read, [str(each) for each in arguments], standalone_mode=False)


def refused(*arguments: object) -> str:
    result = read(*arguments)
    assert isinstance(result.exception, UsageError) and result.output == ""
    return str(result.exception)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src" / "net").mkdir(parents=True)
    (tmp_path / "src" / "net" / "model.py").write_text("def forward(x):\n    return x.permute(1, 0).contiguous()\n")
    return tmp_path / "src"


def test_a_run_with_the_sources(tmp_path: Path, project: Path) -> None:
    result = read(run_folder(tmp_path / "out"), "--project", project)
    assert result.return_value == 1
    assert "2 kernels, 1.3 ms on the card (kernel_details.csv, operator_details.csv, " in result.output
    assert "Where the time goes (1 step, 1.3 ms)" in result.output
    line = "net/model.py:2 in forward: return x.permute(1, 0).contiguous() (aten::contiguous, 1 call, 500 us on the"
    assert line in result.output and "[copies]" in result.output and "NPU723" in result.output


def test_an_operator_that_is_only_dear_changes_no_exit_code(tmp_path: Path) -> None:
    (tmp_path / "kernel_details.csv").write_text(KERNELS + kernel("m", "MatMulV2", "AI_CORE", 10, 800))
    result = read(tmp_path / "kernel_details.csv")
    assert result.return_value == 0 and "[top-operator]" in result.output


def test_json(tmp_path: Path) -> None:
    document = json.loads(read(run_folder(tmp_path), "--format=json").output)
    [profile] = document["profiles"]
    assert document["format"] == 1 and profile["name"] == "host_1_20260101_ascend_pt" and profile["card_us"] == 1300.0
    copies = next(each for each in profile["findings"] if each["name"] == "copies")
    assert copies["share"] == 0.3846 and copies["lines"][0]["path"] == "/job/net/model.py"


def test_the_page_shows_kinds_operators_and_findings(tmp_path: Path, project: Path) -> None:
    folder = run_folder(tmp_path / "out")
    hostile = kernel("<script>alert(1)</script>", "<b>\x1b[2J", "AI_CORE", 3000, 200)
    table = folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.write_text(table.read_text() + hostile)
    result = read(folder, "--report", tmp_path / "page.html", "--project", project)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert result.return_value == 1 and "&lt;b&gt;\\x1b[2J" in page and "<b>" not in page and "\x1b" not in page
    assert "<h3>By kind</h3>" in page and "TensorMove" in page and "Copies on the card" in page
    assert "http" not in page.replace("http-equiv", "") and "return x.permute(1, 0)" in page


def test_ranks_side_by_side(tmp_path: Path) -> None:
    for rank, computing in enumerate((900, 1500)):
        output = tmp_path / f"host_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "step_trace_time.csv").write_text(STEPS + f"{rank},1,{computing},0,0,0,1,{computing},0,0\n")
    result = read(tmp_path)
    assert result.output.startswith("transplt profile-read: 2 runs\n")
    assert "\ntransplt profile-read: host_1_ascend_pt: nothing on a card" in result.output and result.return_value == 0


def test_host_logs(tmp_path: Path) -> None:
    (tmp_path / "plog").mkdir()
    (tmp_path / "plog" / "plog-1.log").write_text(asked("TransData", "8", stored=(0, 3)) + "\n")
    result = read(tmp_path)
    assert result.return_value == 1 and "1 operator in host logs, 1 time" in result.output
    assert "NCHW -> NC1HWC0: 1 time" in result.output
    assert read(tmp_path, "--exit-zero").return_value == 0


def test_a_run_of_torch_npu_and_the_tables_of_cann_below_it_count_once(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    below = folder / "PROF_1" / "mindstudio_profiler_output"
    below.mkdir(parents=True)
    (below / "op_summary_2.csv").write_text(KERNELS + kernel("a", "Add", "AI_CORE", 1, 1))
    assert "2 kernels, 1.3 ms" in read(folder).output


def test_what_cannot_be_read_is_said_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    (folder / "ASCEND_PROFILER_OUTPUT" / "api_statistic.csv").write_bytes(b"\x89PNG")
    (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").write_text("nonsense")
    output = read(folder).output
    assert "note: api_statistic.csv is left out: " in output and "note: trace_view.json is left out: " in output
    assert "2 kernels" in output


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.csv", b"", "it is no table of a profiler"),
        ("a.csv", b"Component,Timestamp\nPTA,1\n", "its columns are of no table that says where time goes"),
        ("a.json", b"{}", "it holds no traceEvents"),
        ("a.json.gz", b"\x1f\x8b\x08\x00", "it is compressed; unpack it first"),
        ("a.db", b"SQLite format 3\x00", "it is a database"),
        ("a.log", b"epoch 1\n", "it holds no table of a profiler, and no lines of acl"),
        ("communication.json", b"[[[[", "it is no JSON"),
    ],
)
def test_files_that_say_nothing_are_refused(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert says in refused(tmp_path / name)


def test_folders_that_say_nothing_are_refused(tmp_path: Path) -> None:
    assert "it holds no file of a profiler" in refused(tmp_path)
    (tmp_path / "PROF_1").mkdir()
    assert "it is not analysed yet" in refused(tmp_path)
    (tmp_path / "PROF_1" / "op_summary_\x1b[2J.csv").write_bytes(b"\x89PNG")
    assert "op_summary_\\x1b[2J.csv is left out: it is no table of a profiler" in refused(tmp_path)
    (tmp_path / "PROF_1" / "op_summary_\x1b[2J.csv").unlink()
    (tmp_path / "ascend_pytorch_profiler_0.db").write_bytes(b"SQLite format 3\x00")
    assert "ExportType.Text" in refused(tmp_path)
    assert "does not exist" in refused(tmp_path / "nothere")
    assert "is not a folder" in refused(tmp_path, "--project", "x")


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    assert "cannot write" in str(read(run_folder(tmp_path), "--report", tmp_path / "no" / "p.html").exception)


@in_browser
def test_the_page_fits_a_narrow_screen_and_says_nothing_to_the_console(tmp_path: Path, project: Path) -> None:
    read(run_folder(tmp_path / "out"), "--report", tmp_path / "page.html", "--project", project)
    with browser(tmp_path) as page:
        page.open(tmp_path / "page.html")
        for width in (320, 1280):
            page.size(width, 900)
            assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.log() == []


@pytest.mark.torch
def test_the_trace_of_torch_itself(tmp_path: Path) -> None:
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        (torch.ones(4, 4) @ torch.ones(4, 4)).sum().item()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    (tmp_path / "table.log").write_text(f"epoch 1\n{profiler.key_averages().table()}\n")
    for name in ("trace.json", "table.log"):
        assert "aten::mm " in read(tmp_path / name).output


def row(each: Remedy) -> str:
    """A finding as docs/profile.md lists it."""
    codes = ", ".join(f"[{code}](../rules/diagnostics/{code}.md)" for code in each.codes)
    least = f"{each.least:.0f} %" if each.of else ""
    return f'| <a id="{each.name}"></a>`{each.name}` | {each.title} | {least} | {codes} |'


def test_the_document_lists_every_finding() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "profile.md").read_text("utf-8")
    assert [row(each) for each in remedies().values() if row(each) not in text] == []


def test_pages_of_findings_name_what_they_foretell() -> None:
    for each in remedies().values():
        for code in each.codes:
            assert f"- {each.name}: {each.title}\n" in slows_text(code) and load(code).title
    assert slows_text("NPU101") == ""
