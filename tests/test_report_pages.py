"""The form of report.html and of the pages beside it: contents, folds, links, what is pasted, whose the files are."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from transplt.base.disk.manifest import edited_since, read_manifest, reports_of
from transplt.base.errors import UsageError
from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.settings import Settings
from transplt.engine.actions.actions import actions_of
from transplt.project.options import Options, make_plan
from transplt.project.report.file_page import DiffRow, diff_rows
from transplt.project.report.html import render_report
from transplt.project.report.migration_record import FileRecord, RunResult
from transplt.project.report.snippets import snippets
from transplt.project.torch_version import TorchTarget
from transplt.project.tree import migrate_tree

VOID = frozenset({"meta", "link", "input"})


class Page(HTMLParser):
    """What a page consists of: `ids`, `links`, `headings` (level and text), `folds` (first element of each details)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.contents: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.folds: list[str] = []
        self.sections: list[str] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self._new_fold = False
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if self._new_fold:
            self.folds.append(tag)
        self._new_fold = tag == "details"
        if "id" in found:
            self.ids.append(found["id"] or "")
            if self._open[-2:] == ["section", "details"]:
                self.sections.append(found["id"] or "")
        if tag == "a":
            self.links.append(found["href"] or "")
            if "nav" in self._open:
                self.contents.append(found["href"] or "")
        if tag in ("h1", "h2", "h3"):
            self.headings.append((int(tag[1]), ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("h1", "h2", "h3"):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)


TRAIN = """import torch
from apex import amp

model = torch.nn.DataParallel(net).cuda()
print(torch.cuda.get_arch_list(), torch.cuda.nccl.version())
"""


@pytest.fixture(autouse=True)
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """A diff of 80 lines is a large one here."""
    monkeypatch.setattr("transplt.project.report.shown_files._LARGE_DIFF", 2_000)


def project(folder: Path, lines: int = 0) -> Path:
    source = folder / "proj"
    source.mkdir(parents=True)
    (source / "train.py").write_text(TRAIN)
    (source / "Dockerfile").write_text("FROM nvidia/cuda:12.2.0-runtime-ubuntu20.04\n")
    (source / "big <1>.py").write_text("import torch\n" + "".join(f"x{n} = y.to('cuda')\n" for n in range(lines)))
    return source


def migrated(folder: Path, lines: int = 0) -> Path:
    return migrate_tree(make_plan(Options(project(folder, lines), folder / "out", jobs=0))).output


def shown(file: Path) -> Page:
    return Page(file.read_text("utf-8"))


def test_contents_name_every_section_and_folds_have_a_summary(tmp_path: Path) -> None:
    page = shown(migrated(tmp_path) / "report.html")
    assert page.sections[:2] == ["do", "summary"] and "h-do" in page.ids
    assert [each for each in page.contents if not each.startswith("#do-")] == [f"#{each}" for each in page.sections]
    assert "#do-1" in page.contents
    assert page.folds and set(page.folds) == {"summary"}
    assert len(page.ids) == len({*page.ids})
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("lines", [0, 80])
def test_every_link_leads_somewhere(tmp_path: Path, lines: int) -> None:
    out = migrated(tmp_path, lines)
    pages = {file: shown(file) for file in [out / "report.html", *sorted((out / "report_files").glob("*"))]}
    assert len(pages) == 1 + (lines > 0)
    for file, page in pages.items():
        for link in page.links:
            name, _, anchor = link.partition("#")
            ids = pages[(file.parent / name).resolve() if name else file].ids
            # A line of a diff that stands in the report is found by its script; its file is there in any case.
            assert not anchor or anchor in ids or anchor.rpartition("-")[0] in ids, link


def test_a_large_diff_has_a_page_of_its_own(tmp_path: Path) -> None:
    out = migrated(tmp_path, 80)
    (file,) = (out / "report_files").iterdir()
    assert file.name.startswith("big_1_.py-") and file.name.endswith(".html")
    page = file.read_text("utf-8")
    assert '<div class="row" id="L81"><span class="no">81</span><span class="old cut">x79 = y.to(&#x27;cuda' in page
    assert "big &lt;1&gt;.py" in page and "<script" not in page and str(tmp_path) not in page
    report = (out / "report.html").read_text("utf-8")
    assert f'<a href="report_files/{file.name}">big &lt;1&gt;.py</a>' in report and "x79" not in report
    again = migrate_tree(make_plan(Options(tmp_path / "proj", tmp_path / "again", jobs=0))).output
    assert (again / "report_files" / file.name).read_text("utf-8") == page


def test_a_small_project_has_one_page(tmp_path: Path) -> None:
    out = migrated(tmp_path, 10)
    assert not (out / "report_files").exists()
    assert "x9 = y.to" in (out / "report.html").read_text("utf-8")


def test_many_diffs_have_a_page_each(tmp_path: Path) -> None:
    patch = b"--- a\n+++ b\n@@ -1 +1 @@\n-" + b"x" * 1500 + b"\n+y\n"
    records = tuple(FileRecord(f"a{n}.py", "python", "", patch=patch) for n in range(80))
    result = RunResult("p", Path("/p"), Path("/o"), Settings(), TorchTarget("2.8", ""), files=records)
    pages = dict(render_report(result).pages("report.html"))
    assert len(pages) == 80
    first, second = list(pages)[:2]
    assert f'rel="next" href="{second.rpartition("/")[2]}"'.encode() in pages[first]
    few = RunResult("p", Path("/p"), Path("/o"), Settings(), TorchTarget("2.8", ""), files=records[:60])
    assert list(render_report(few).pages("report.html")) == []


def test_the_pages_are_known_as_written_by_transplt(tmp_path: Path) -> None:
    out = migrated(tmp_path, 80)
    manifest = read_manifest(out)
    assert manifest is not None and edited_since(out, manifest) == []
    assert sum(path.startswith("report_files/") for path in manifest["reports"]) == 1
    plan = make_plan(Options(tmp_path / "proj", tmp_path / "out", force=True, jobs=0))
    assert migrate_tree(plan).output == out
    (file,) = (out / "report_files").iterdir()
    file.write_text("mine")
    assert edited_since(out, read_manifest(out) or {}) == [f"report_files/{file.name}"]
    with pytest.raises(UsageError, match="was edited"):
        migrate_tree(plan)


def test_an_output_that_is_migrated_again_leaves_its_pages_out(tmp_path: Path) -> None:
    out = migrated(tmp_path, 80)
    second = migrate_tree(make_plan(Options(out, tmp_path / "second", jobs=0)))
    assert [record.path for record in second.files] == ["Dockerfile", "big <1>.py", "npu_port.py", "train.py"]
    assert not (second.output / "report_files").exists()
    (out / "report_files" / "mine.txt").write_text("mine")
    assert "report_files" not in reports_of(out, read_manifest(out))
    third = migrate_tree(make_plan(Options(out, tmp_path / "third", jobs=0)))
    assert [path.name for path in (third.output / "report_files").iterdir()] == ["mine.txt"]


def test_a_folder_of_the_project_is_left_to_it(tmp_path: Path) -> None:
    source = project(tmp_path, 80)
    (source / "report_files").mkdir()
    (source / "report_files" / "a.txt").write_text("mine")
    out = migrate_tree(make_plan(Options(source, tmp_path / "out", jobs=0))).output
    assert [path.name for path in (out / "report_files").iterdir()] == ["a.txt"]
    assert len([*(out / "transplt_report_files").iterdir()]) == 1
    assert 'href="transplt_report_files/' in (out / "report.html").read_text("utf-8")


def test_without_html_there_are_no_pages(tmp_path: Path) -> None:
    plan = make_plan(Options(project(tmp_path, 80), tmp_path / "out", page=False, jobs=0))
    assert not (migrate_tree(plan).output / "report_files").exists()
    plan = make_plan(Options(tmp_path / "proj", tmp_path / "only", report_only=True, jobs=0))
    assert len([*(migrate_tree(plan).output / "report_files").iterdir()]) == 1


# --- rows of a diff --------------------------------------------------------------------------------------------------


def test_rows_of_a_diff_with_lines_that_it_does_not_have() -> None:
    patch = "@@ -3,3 +3,4 @@\n a\n-b\n+c\n+d\n e\n"
    assert diff_rows(patch, [(1, "first"), (4, "b"), (9, "last")]) == [
        DiffRow(1, "first", 1, "first", same=True),
        DiffRow(3, "a", 3, "a", same=True),
        DiffRow(4, "b", 4, "c"),
        DiffRow(None, "", 5, "d"),
        DiffRow(5, "e", 6, "e", same=True),
        DiffRow(9, "last", 10, "last", same=True),
    ]
    assert diff_rows("@@ -0,0 +1 @@\n+x\n") == [DiffRow(None, "", 1, "x")]
    assert diff_rows("") == []


# --- what is pasted --------------------------------------------------------------------------------------------------


def pasted(code: str, help_: str, level: Level = Level.MANUAL, adaptor: str = "") -> list[str]:
    finding = Finding("a.py", Span(1, 1, 1, 5, 0, 4), code, level, "m", "x", Effort.LOW, help_, adaptor=adaptor)
    (action,) = actions_of([finding])
    return [text for _, text in snippets(action)]


@pytest.mark.parametrize(
    ("code", "help_", "wanted"),
    [
        ("NPU850", "FROM quay.io/a/b:1, then RUN pip install torch==2.8.0 torch-npu==2.8.0; the tag is <CANN>",
         ["FROM quay.io/a/b:1\nRUN pip install torch==2.8.0 torch-npu==2.8.0"]),
        ("NPU844", 'add "torch-npu==2.14.0" to the list; it goes with torch 2.14.0', ["torch-npu==2.14.0"]),
        ("NPU512", "instead: vllm-ascend; versions are paired", ["vllm-ascend"]),
        ("NPU811", "write ASCEND_GLOBAL_LOG_LEVEL=2; levels differ: 0 debug", ["ASCEND_GLOBAL_LOG_LEVEL=2"]),
        ("NPU854", "in its place: options: --device /dev/davinci0, on a runner with NPUs, as github.com/x says",
         ["options: --device /dev/davinci0"]),
        ("NPU152", "add map_location", ['state = torch.load(path, map_location="cpu")']),
    ],
)  # fmt: skip
def test_lines_are_taken_from_helps_and_pages(code: str, help_: str, wanted: list[str]) -> None:
    assert pasted(code, help_) == wanted


@pytest.mark.parametrize(
    ("code", "help_"),
    [
        ("NPU512", "instead: torch_npu.optim fused optimizers; nothing else"),
        ("NPU510", "instead: flash-attn-npu; the import differs"),
        ("NPU203", "if it is a device, write npu; otherwise do not change it"),
        ("NPU200", "if the NPU needs it too, add its case beside it (for an NPU alone: torch.cuda.x -> torch.npu.x)"),
        ("NPU806", ""),
    ],
)
def test_nothing_is_pasted_that_nobody_is_sure_of(code: str, help_: str) -> None:
    assert pasted(code, help_) == []


def test_a_pin_is_raised_to_the_first_version_that_works(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "requirements.txt").write_text("torch==2.8.0\naccelerate==0.9.0\n")
    (tmp_path / "p" / "train.py").write_text("import torch\nimport accelerate\nx = torch.ones(1).cuda()\n")
    result = migrate_tree(make_plan(Options(tmp_path / "p", tmp_path / "out", jobs=0)))
    found = [text for action in actions_of(result.findings) for _, text in snippets(action)]
    assert any(text.startswith("accelerate>=0.2") for text in found), found


def test_options_come_first() -> None:
    assert pasted("NPU147", "ask for NPUs", adaptor="ray")[0] == "--adapt ray"
    assert pasted("NPU249", "write it (--unsafe-fixes does)", Level.UNSAFE)[0] == "--unsafe-fixes"


def test_what_is_pasted_stands_in_the_page(tmp_path: Path) -> None:
    page = (migrated(tmp_path) / "report.html").read_text("utf-8")
    assert '<pre class="paste" tabindex="0">FROM quay.io/ascend/cann:' in page
    nothing = RunResult("p", Path("/p"), Path("/o"), Settings(), TorchTarget("2.8", ""))
    empty = render_report(nothing).page.decode()
    assert 'class="paste"' not in empty and "Nothing is left." in empty
