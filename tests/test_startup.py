"""What a command imports before it does anything: modules, no timings (`benchmarks/startup.py` measures)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import unmeasured

#: Costs more than the whole check of a small file, or serves other commands.
HEAVY = (
    "libcst", "openpyxl", "jsonschema", "jinja2", "rich", "torch", "multiprocessing.pool", "concurrent.futures.process",
    "transplt.proof", "transplt.fixers.distributed", "transplt.fixers.amp", "transplt.project.report.html",
    "transplt.project.tree", "transplt.engine.files.tokens",
)  # fmt: skip
PROGRAM = """
import runpy, sys
sys.argv = ["transplt", *sys.argv[1:]]
try:
    runpy.run_module("transplt", run_name="__main__")
except SystemExit as end:
    print(f"exit code {end.code}", file=sys.stderr)
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""

COMMON_EDITS = """\
import os
import torch
import torch.cuda.amp as amp
from torch.cuda.amp import autocast, GradScaler as Scaler

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
scaler = torch.amp.GradScaler()
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
card = torch.device(f"cuda:{torch.cuda.current_device()}")
torch.distributed.init_process_group("nccl")
x = torch.ones(1).to(device).cuda(non_blocking=True)
with autocast():
    print(x.is_cuda, torch . cuda . memory_allocated())
"""


def imported(source: str, tmp_path: Path, *arguments: str) -> tuple[set[str], str]:
    """The modules in memory after `transplt` with some arguments, in a folder with one file, and its output."""
    (tmp_path / "train.py").write_text(source)
    root = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{PROGRAM}", *arguments],
        cwd=tmp_path, env=unmeasured(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stderr.split("\n")), done.stdout


def heavy(modules: set[str]) -> list[str]:
    return [name for name in HEAVY if name in modules]


@pytest.mark.parametrize("source", ["import torch\nx = torch.ones(1)\n", "import torch\nx = torch.load('cuda.pt')\n"])
def test_a_check_that_shows_no_edit_imports_nothing_heavy(tmp_path: Path, source: str) -> None:
    modules, _ = imported(source, tmp_path, "check", "train.py")
    assert heavy(modules) == []


def test_a_clean_file_is_told_by_the_words_alone(tmp_path: Path) -> None:
    modules, _ = imported("import os\nprint(os.getcwd())\n", tmp_path, "check", "--no-cache", "train.py")
    looking = ("transplt.fixers.codemods.gates", "transplt.edits.work", "transplt.engine.engine", "transplt.flow.facts")
    assert heavy(modules) == [] and [name for name in looking if name in modules] == []


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif"])
def test_common_edits_are_shown_with_libcst_alone(tmp_path: Path, form: str) -> None:
    modules, out = imported(COMMON_EDITS, tmp_path, "check", "train.py", "--format", form)
    assert heavy(modules) == ["libcst"]
    assert "npu" in out


@pytest.mark.parametrize("option", ["--diff", "--fix"])
def test_common_edits_are_made_with_libcst_alone(tmp_path: Path, option: str) -> None:
    modules, out = imported(COMMON_EDITS, tmp_path, "check", "train.py", option, "--style", "npu", "--allow-dirty")
    assert heavy(modules) == ["libcst"]
    after = (tmp_path / "train.py").read_text() if option == "--fix" else out
    assert "torch . npu . memory_allocated()" in after
    assert ("cuda" in after.lower()) is (option == "--diff")


def test_a_migration_imports_what_it_writes_with_and_no_more(tmp_path: Path) -> None:
    modules, _ = imported(COMMON_EDITS, tmp_path, "-i", "train.py", "-o", "out", "--jobs", "0")
    assert (tmp_path / "out/train_msft/unsupported_op.xlsx").is_file()
    assert {"numpy", "transplt.project.main_file", "multiprocessing.context"} & modules == set()
    assert "libcst" in modules
    assert {"libcst.matchers", "libcst.codemod", "libcst.tool", "libcst.display"} & modules == set()


def test_help_imports_no_rule(tmp_path: Path) -> None:
    modules, _ = imported("", tmp_path, "--help")
    assert heavy(modules) == []
    assert "transplt.engine.engine" not in modules


def test_explain_imports_no_tuning_for_a_dotted_name(tmp_path: Path) -> None:
    modules, said = imported("", tmp_path, "explain", "torch.cuda.amp.autocast")
    assert "torch.npu.amp.autocast" in said
    assert heavy(modules) == []
    assert {name for name in modules if name.startswith("transplt.fixers.")} <= {
        "transplt.fixers.by_name", "transplt.fixers.tunings", "transplt.fixers.tunings.table",
        "transplt.fixers.adaptors", "transplt.fixers.adaptors.table",
    }  # fmt: skip
