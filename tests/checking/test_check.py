"""`transplt check`: what it says, what --fix writes and refuses to write, and its exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from tests.checking.conftest import FIXED, TRAIN, Call, commit_all, git
from transplt.base.settings import DEFAULT_TORCH_VERSION
from transplt.project.checking import check_run

FIRST = """train.py:2:1: NPU403 [*] import torch_npu is missing; the edits of this file need it
  |
1 | import torch
2 | import torch.nn as nn
  | ^ NPU403
3 |
  |
  = insert: import torch_npu  # noqa: F401

train.py:4:24: NPU201 [*] device string 'cuda' -> string 'npu'
  |
3 |
4 | device = torch.device("cuda")
  |                        ^^^^ NPU201
5 |
  |
  = edit: cuda -> npu

"""


def test_findings_with_their_source(project: Path, call: Call) -> None:
    code, out, err = call("check", "train.py")
    assert code == 1
    assert out.startswith(FIRST)
    assert "train.py:8:12: NPU507 torch.nn.DataParallel works on one NPU only\n" in out
    assert "8 |     return nn.DataParallel, model.to(device)\n  |            ^^^^^^^^^^^^^^^ NPU507\n" in out
    assert "  = help: several cards need one process per card" in out
    assert "(effort: hours)" in out
    assert err == (
        "found 3 findings in 1 file\n"
        "[*] --fix --style npu edits 2 of them\n"
        "    --style portable instead keeps the code running on CUDA too, and may edit other places\n"
    )
    assert (project / "train.py").read_text() == TRAIN


def test_a_line_is_hashed_once_however_many_findings_it_has(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook may be one line of megabytes."""
    hashed: list[int] = []
    real = hashlib.sha256
    monkeypatch.setattr(check_run.hashlib, "sha256", lambda data: hashed.append(len(data)) or real(data))
    text = "import torch\n" + "x.cuda(); " * 200
    (project / "long.py").write_text(text)
    call("check", "long.py", "--format=json")
    assert sum(hashed) < 3 * len(text)


def test_without_paths_the_current_folder_is_looked_at(project: Path, call: Call) -> None:
    (project / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    code, out, _ = call("check", "--format", "concise")
    assert code == 1
    assert {line.split(":")[0] for line in out.splitlines()} == {"train.py", "run.sh"}


def test_show_files_lists_what_would_be_looked_at(project: Path, call: Call) -> None:
    (project / "pyproject.toml").write_text('[tool.transplt]\nexclude = ["old/"]\n')
    for name in ("old/a.py", "new/b.py", "new/\u00e4.sh"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("print 'cuda'\n")
    names = ["new/b.py", "new/\u00e4.sh", "pyproject.toml", "setup.py", "train.py"]
    assert call("check", "--show-files") == (0, "".join(f"{name}\n" for name in names), "")
    assert call("check", "--show-files", "new", "--exclude", "b.py") == (0, "new/\u00e4.sh\n", "")
    assert call("check", "--show-files", "train.py", "old/a.py") == (0, "train.py\n", "")
    commit_all(project)
    (project / "train.py").write_text("x = 1\n")
    assert call("check", "--show-files", "--since", "HEAD") == (0, "train.py\n", "")


@pytest.mark.parametrize("more", [["-"], ["--fix"], ["--diff"], ["--watch"]])
def test_what_show_files_does_not_go_with(more: list[str], project: Path, call: Call) -> None:
    code, _, err = call("check", "--show-files", *more)
    assert code == 2 and "--show-files cannot be combined" in err


def test_nothing_left(project: Path, call: Call) -> None:
    (project / "train.py").write_text("import torch\n")
    assert call("check") == (0, "", "nothing left to do in 2 files\n")
    assert call("check", "-q", "setup.py") == (0, "", "")


def test_exit_zero(project: Path, call: Call) -> None:
    assert call("check", "--exit-zero")[0] == 0


@pytest.mark.parametrize("path", ["missing.py", "/dev/null"])
def test_a_path_that_is_no_file(path: str, project: Path, call: Call) -> None:
    code, out, err = call("check", path)
    assert (code, out) == (2, "")
    assert "Error: " in err and path in err


def test_a_file_that_python_cannot_read(project: Path, call: Call) -> None:
    (project / "old.py").write_text("print 'cuda'\n")
    code, out, _ = call("check", "old.py", "--format", "concise")
    assert code == 1
    assert out.startswith("old.py:1:1: NPU901 Python 2 code")


# --- fixing in place -------------------------------------------------------------------------------------------------


def test_fix_needs_a_style(project: Path, call: Call) -> None:
    code, out, err = call("check", "--fix")
    assert (code, out) == (2, "")
    assert "--style npu" in err and "[tool.transplt]" in err
    assert (project / "train.py").read_text() == TRAIN


def test_fix_writes_the_safe_edits_and_reports_the_rest_where_it_stands_now(project: Path, call: Call) -> None:
    (project / "pyproject.toml").write_text('[tool.transplt]\nstyle = "npu"\n')
    code, out, err = call("check", "--fix", "--format", "concise")
    assert code == 1
    assert (project / "train.py").read_text() == FIXED
    assert out.startswith("train.py:9:12: NPU507 ")
    assert out.count("\n") == 1
    assert err.startswith("fixed 2 edits in 1 file\nfound 1 finding in 1 file (3 files looked at)\n")


def test_fix_until_nothing_is_left(project: Path, call: Call) -> None:
    (project / "train.py").write_text("import torch\nx = torch.zeros(1).cuda()\n")
    assert call("check", "--fix", "--style", "npu")[0] == 0
    assert call("check") == (0, "", "nothing left to do in 2 files\n")


def test_portable_style_keeps_cuda(project: Path, call: Call) -> None:
    (project / "train.py").write_text("import torch\nprint(torch.cuda.is_available())\n")
    code, _, _ = call("check", "--fix", "--style", "portable")
    assert code == 0
    fixed = (project / "train.py").read_text()
    assert "device_module = getattr(torch, DEVICE_TYPE)\n" in fixed
    assert fixed.endswith("\nprint(device_module.is_available())\n")


def test_fix_keeps_the_mode_and_leaves_no_other_file(project: Path, call: Call) -> None:
    file = project / "train.py"
    file.chmod(0o754)
    before = sorted(os.listdir(project))
    call("check", "--fix", "--style", "npu")
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    assert sorted(os.listdir(project)) == before


def test_fix_goes_through_a_link(project: Path, call: Call) -> None:
    link = project / "link.py"
    link.symlink_to("train.py")
    call("check", "--fix", "--style", "npu", "link.py")
    assert link.is_symlink()
    assert (project / "train.py").read_text() == FIXED


def test_fix_refuses_uncommitted_changes(project: Path, call: Call) -> None:
    commit_all(project)
    (project / "setup.py").write_text("# changed\n")
    code, _, err = call("check", "--fix", "--style", "npu")
    assert code == 2
    assert "has uncommitted changes (setup.py)" in err and "--allow-dirty" in err
    assert (project / "train.py").read_text() == TRAIN
    assert call("check", "--fix", "--style", "npu", "--allow-dirty")[0] == 1
    assert (project / "train.py").read_text() == FIXED


def test_fix_refuses_a_file_that_git_cannot_restore(project: Path, call: Call) -> None:
    commit_all(project)
    (project / "new").mkdir()
    (project / "new" / "extra.py").write_text(TRAIN)
    code, _, err = call("check", "--fix", "--style", "npu")
    assert code == 2
    assert "(new/extra.py)" in err


def test_an_untracked_file_that_stays_as_it_is_does_not_matter(project: Path, call: Call) -> None:
    commit_all(project)
    (project / "notes.txt").write_text("x\n")
    assert call("check", "--fix", "--style", "npu")[0] == 1
    assert (project / "train.py").read_text() == FIXED


def test_unsafe_edits_are_offered_and_made_on_request(project: Path, call: Call) -> None:
    rule = {"old_name": "lib.f", "new_name": "lib.g", "level": "unsafe"}
    (project / "rules.json").write_text(json.dumps({"rules": {"FuncNameModifyRule": [rule]}}))
    (project / "train.py").write_text("import lib\nlib.f()\n")
    code, out, err = call("check", "-r", "rules.json", "train.py")
    assert code == 1
    assert "[unsafe] " in out
    assert "[unsafe] --fix --unsafe-fixes --style npu edits 1 of them" in err
    assert call("check", "-r", "rules.json", "--fix", "--style", "npu", "train.py")[0] == 1
    assert call("check", "-r", "rules.json", "--fix", "--style", "npu", "--unsafe-fixes", "train.py")[0] == 0
    assert (project / "train.py").read_text() == "import lib\nlib.g()\n"


def test_a_file_that_changed_meanwhile_is_left_alone(project: Path) -> None:
    from transplt.base.errors import CannotFinish
    from transplt.project.checking.in_place import write_changes
    from transplt.project.report.check_results import ChangedFile

    file = project / "train.py"
    with pytest.raises(CannotFinish, match="changed in the meantime"):
        write_changes([ChangedFile(file, "train.py", b"other", b"new", 1)])
    assert file.read_text() == TRAIN


# --- standard input --------------------------------------------------------------------------------------------------


def test_standard_input(project: Path, call: Call) -> None:
    given = ("check", "-", "--stdin-filename", "sub/train.py", "--format", "concise")
    code, out, _ = call(*given, stdin=TRAIN.encode())
    assert code == 1
    assert out.startswith("sub/train.py:2:1: NPU403")
    code, out, _ = call("check", "-", "--fix", "--style", "npu", stdin=TRAIN.encode())
    assert (code, out) == (1, FIXED)
    assert call("check", "-", "--fix", "--style", "npu", stdin=b"x = 1\n") == (
        0,
        "x = 1\n",
        "nothing left to do in 1 file\n",
    )


def test_standard_input_stands_alone(project: Path, call: Call) -> None:
    code, _, err = call("check", "-", "train.py")
    assert code == 2
    assert "`-` reads standard input" in err


def test_fix_only_says_nothing_of_what_is_left(project: Path, call: Call) -> None:
    assert call("check", "--fix-only", "--style", "npu") == (0, "", "fixed 2 edits in 1 file\n")
    assert (project / "train.py").read_text() == FIXED
    assert call("check", "--fix-only", "--style", "npu") == (0, "", "")
    assert call("check", "-", "--fix-only", "--style", "npu", stdin=TRAIN.encode())[:2] == (0, FIXED)
    assert call("check")[0] == 1


@pytest.mark.parametrize("more", [["--output-file", "x"], ["--statistics"], ["--diff"]])
def test_what_fix_only_does_not_go_with(more: list[str], project: Path, call: Call) -> None:
    code, _, err = call("check", "--fix-only", "--style", "npu", *more)
    assert code == 2 and "--fix-only cannot be combined" in err and (project / "train.py").read_text() == TRAIN


# --- diff ------------------------------------------------------------------------------------------------------------


def test_diff_is_what_fix_would_do(project: Path, call: Call) -> None:
    (project / "crlf.py").write_bytes(b"import torch\r\nx = torch.ones(1).cuda()")
    commit_all(project)
    code, patch, _ = call("check", "--diff")
    assert code == 1
    assert git(project, "status", "--porcelain") == ""
    call("check", "--fix", "--style", "npu")
    fixed = {name: (project / name).read_bytes() for name in ("train.py", "crlf.py")}
    assert fixed["crlf.py"] == b"import torch\r\nimport torch_npu  # noqa: F401\r\nx = torch.ones(1).npu()"
    git(project, "checkout", ".")
    (project / "../p.diff").write_bytes(patch.encode())
    git(project, "apply", "../p.diff")
    assert {name: (project / name).read_bytes() for name in fixed} == fixed


def test_diff_of_a_folder_names_paths_from_here(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    monkeypatch.chdir(project / "sub")
    assert "+++ b/a.py\n" in call("check", "--diff")[1]
    monkeypatch.chdir(project.parent)
    assert "+++ b/proj/sub/a.py\n" in call("check", "--diff", "proj/sub")[1]


# --- which findings --------------------------------------------------------------------------------------------------


def test_select_and_ignore_by_prefix(project: Path, call: Call) -> None:
    _, out, _ = call("check", "--select", "NPU5", "--format", "concise")
    assert [line.split()[1] for line in out.splitlines()] == ["NPU507"]
    _, out, _ = call("check", "--ignore", "NPU5,NPU4", "--format", "concise")
    # The import goes with the edits that need it, whatever its own code.
    assert [line.split()[1] for line in out.splitlines()] == ["NPU403", "NPU201"]
    call("check", "--fix", "--style", "npu", "--ignore", "NPU201")
    assert (project / "train.py").read_text() == TRAIN


@pytest.mark.parametrize(
    ("value", "message"), [("X1", "X1 is not a code; use one such as NPU201"), ("NPU999", "no code starts with")]
)
def test_codes_that_are_none(value: str, message: str, project: Path, call: Call) -> None:
    code, _, err = call("check", "--select", value)
    assert code == 2
    assert message in err


def test_statistics(project: Path, call: Call) -> None:
    code, out, _ = call("check", "--statistics")
    assert code == 1
    assert out.splitlines()[0] == "     1 NPU201 [*] A device string"
    assert "     1 NPU507 [ ] DataParallel over several cards\n" in out


def test_statistics_for_programs(project: Path, call: Call) -> None:
    code, out, _ = call("check", "--statistics", "--format", "json")
    rows = json.loads(out)
    assert code == 1
    assert {"code": "NPU201", "title": "A device string", "count": 1, "fixable": 1} in rows
    assert {"code": "NPU507", "title": "DataParallel over several cards", "count": 1, "fixable": 0} in rows
    _, lines, _ = call("check", "--statistics", "--format", "json-lines")
    assert [json.loads(line) for line in lines.splitlines()] == rows
    _, text, _ = call("check", "--statistics", "--format", "concise")
    assert text == call("check", "--statistics")[1]
    code, out, err = call("check", "--statistics", "--format", "sarif", "--fix", "--style", "npu")
    assert (code, out) == (2, "")
    assert "--statistics has no form in sarif; it works with text, concise, json, json-lines" in err
    assert (project / "train.py").read_text() == TRAIN


def test_files_with_findings_and_files_looked_at(project: Path, call: Call) -> None:
    assert call("check", "train.py")[2].startswith("found 3 findings in 1 file\n")
    assert call("check")[2].startswith("found 3 findings in 1 file (2 files looked at)\n")
    assert call("check", "setup.py")[2] == "nothing left to do in 1 file\n"


def test_settings_exclude_and_ignore(project: Path, call: Call) -> None:
    (project / "old").mkdir()
    (project / "old" / "a.py").write_text(TRAIN)
    text = '[tool.transplt]\nexclude = ["old/"]\n[tool.transplt.per-file-ignores]\n"train.py" = ["NPU2", "NPU4"]\n'
    (project / "pyproject.toml").write_text(text)
    for paths in ((), ("train.py", "old/a.py")):
        _, out, _ = call("check", "--format", "concise", *paths)
        assert [line[:16] for line in out.splitlines()] == ["train.py:8:12: N"]


def test_the_project_around_a_folder_is_known(project: Path, call: Call) -> None:
    """What another file of the project says decides here: a device that comes from a module of the project."""
    (project / "conf").mkdir()
    (project / "conf" / "__init__.py").write_text("")
    (project / "conf" / "base.py").write_text('NAME = "cuda"\n')
    (project / "use.py").write_text("import torch\nfrom conf.base import NAME\nx = torch.ones(1, device=NAME)\n")
    known = call("check", "conf", "--format", "concise")[1]
    assert "conf/base.py:1:9: NPU201 [*]" in known
    assert "use.py" not in known
    alone = call("check", "conf/base.py", "--format", "concise")[1]
    assert "[*]" not in alone


# --- baseline --------------------------------------------------------------------------------------------------------


def test_only_new_findings_fail(project: Path, call: Call) -> None:
    code, out, err = call("check", "--baseline", "base.json", "--update-baseline")
    assert (code, out, err) == (0, "", "3 findings written to base.json\n")
    nothing = "nothing left to do in 3 files, 3 more in the baseline\n"
    assert call("check", "--baseline", "base.json") == (0, "", nothing)
    moved = "# a line above\n\n" + TRAIN + "torch.cuda.synchronize()\n"
    (project / "train.py").write_text(moved)
    code, out, err = call("check", "--baseline", "base.json", "--format", "concise")
    assert code == 1
    assert out == "train.py:11:7: NPU101 [*] torch.cuda.synchronize -> torch.npu.synchronize\n"
    assert err.startswith("found 1 finding in 1 file (3 files looked at), 3 more in the baseline\n")


def test_a_baseline_is_the_same_from_everywhere(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call("check", "--baseline", "base.json", "--update-baseline")
    first = {row["fingerprint"] for row in json.loads((project / "base.json").read_text())["findings"]}
    monkeypatch.chdir(project.parent)
    _, out, _ = call("check", "proj/train.py", "--format", "json-lines")
    assert {json.loads(line)["fingerprint"] for line in out.splitlines()} == first


@pytest.mark.parametrize(
    ("text", "message"), [(None, "the baseline"), ("{", "is not a baseline"), ("[]", "is not a baseline")]
)
def test_a_baseline_that_is_none(text: str | None, message: str, project: Path, call: Call) -> None:
    if text is not None:
        (project / "base.json").write_text(text)
    code, _, err = call("check", "--baseline", "base.json")
    assert code == 2
    assert message in err


def test_update_baseline_needs_a_file(project: Path, call: Call) -> None:
    assert call("check", "--update-baseline")[0] == 2


# --- where it is written ---------------------------------------------------------------------------------------------


def test_output_file(project: Path, call: Call) -> None:
    code, out, _ = call("check", "--format", "json", "--output-file", "out.json", "train.py")
    assert (code, out) == (1, "")
    assert json.loads((project / "out.json").read_text())["summary"]["findings"] == 3
    assert call("check", "--output-file", "no/such/folder")[0] == 3


def test_config_shows_what_is_in_force_and_where_from(project: Path, call: Call) -> None:
    (project / "pyproject.toml").write_text('[tool.transplt]\nstyle = "portable"\n')
    (project / "requirements.txt").write_text("torch==2.8.0\n")
    code, out, _ = call("config")
    assert code == 0
    assert 'style            = "portable"  # pyproject.toml\n' in out
    assert 'torch-version    = "2.8"  # requirements.txt requires torch==2.8.0\n' in out
    assert "similar          = false  # default\n" in out
    table = json.loads(call("config", "--format=json", "train.py")[1])
    assert table["style"] == {"value": "portable", "source": "pyproject.toml"}
    (project / "pyproject.toml").write_text('[tool.transplt]\nstile = "portable"\n')
    code, _, err = call("config")
    assert code == 2
    assert "did you mean 'style'?" in err


def test_fix_removes_ignore_comments_that_ignore_nothing(project: Path, call: Call) -> None:
    first = "a = 1  # transplt: ignore[NPU201]\n"
    source = first + 'import torch\nb = torch.device("cuda")  # transplt: ignore[NPU201, NPU507]\n'
    (project / "train.py").write_text(source)
    (project / "run.sh").write_text("echo hi  # transplt: ignore[NPU801]\n")
    code, out, _ = call("check", "--format", "concise")
    assert code == 1
    assert out == (
        "run.sh:1:10: NPU612 this comment ignores nothing: this line has no finding with NPU801\n"
        "train.py:1:6: NPU612 [*] this comment ignores nothing: this line has no finding with NPU201\n"
        "train.py:3:46: NPU612 [*] this comment ignores codes without a finding: this line has no finding with NPU507\n"
    )
    assert call("check", "--ignore", "NPU612")[0] == 0
    assert call("check", "--select", "NPU5,NPU612", "--fix", "--style", "npu", "--allow-dirty")[0] == 0
    assert (project / "train.py").read_text() == source.replace(", NPU507", "")
    assert call("check", "train.py")[0] == 0  # one file alone does not show what others do to it
    call("check", "--fix", "--style", "npu", "--allow-dirty")
    assert (project / "train.py").read_text() == "a = 1\n" + source.replace(", NPU507", "").partition("\n")[2]
    assert (project / "run.sh").read_text().endswith("ignore[NPU801]\n")


def test_a_pin_that_torch_npu_does_not_have_is_named_once(project: Path, call: Call) -> None:
    (project / "requirements.txt").write_text("torch==1.8.1\n")
    says = (
        "requirements.txt requires torch==1.8.1, for which no torch_npu is supported; "
        "chosen: the newest torch with the fewest known blockers in this project"
    )
    _, _, err = call("check", "train.py")
    assert err.startswith(f"torch {DEFAULT_TORCH_VERSION} with torch_npu ")
    assert f": {says}\n" in err
    assert err.count("1.8.1") == 1
    assert "\n  changed in torch 2.0: " in call("check", "-v", "train.py")[2]
    _, out, _ = call("check", "--format", "json")
    row = {"version": DEFAULT_TORCH_VERSION, "why": says, "gap": True, "weighed": []}
    assert json.loads(out)["summary"]["torch"] == [row]


@pytest.mark.parametrize("pin", ["torch>=1.8", "torch==2.6.*", "numpy"])
def test_a_pin_that_torch_npu_has_is_not_said(project: Path, call: Call, pin: str) -> None:
    (project / "requirements.txt").write_text(f"{pin}\n")
    _, _, err = call("check", "train.py")
    assert err.startswith("found 3 findings")
