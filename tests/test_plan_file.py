"""`transplt plan`, and a migration that does as the plan says: data that somebody edits, and that nothing executes."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.test_port import git
from transplt.base.errors import TranspltError, UsageError
from transplt.base.plan_decisions import matches
from transplt.base.text.source import read_source
from transplt.faces.cli.main import main
from transplt.project.options import Options, make_plan
from transplt.project.plan_file.form import MARKER, parse_plan
from transplt.project.plan_file.places import Lines

TRAIN = '''\
import torch
import torch.distributed as dist
from kernels import register

register("cuda", 1)


def main(data, kind):
    register("cuda", 2)
    dist.init_process_group("nccl")
    model = torch.nn.Linear(4, 2).cuda()
    if torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0):
        print("bf16 on cuda")
    for batch in data:
        model(batch.cuda()).sum().backward()


if __name__ == "__main__":
    main([], "cuda")
'''


KINDS = '''\
from kernels import take


def choose(kind, count):
    if kind not in ("cuda", "gpu"):
        count = 0
    elif isinstance(count, int) and kind == "cuda":
        count = take(count)
    return count


take("cuda")
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "vendor").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "vendor" / "lib.py").write_text('import torch\nx = torch.zeros(1, device="cuda")\n')
    (folder / "vendor" / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended, with all that it said."""

    exit_code: int
    output: str
    stdout: str


def call(*arguments: object) -> Ended:
    done = CliRunner().invoke(main, [str(each) for each in arguments], standalone_mode=False)
    error = done.exception
    if isinstance(error, TranspltError):
        return Ended(error.exit_code, f"{done.output}Error: {error}\n", done.stdout)
    assert error is None, done.exc_info
    return Ended(int(done.return_value or 0), done.output, done.stdout)


def planned(project: Path, *arguments: object) -> str:
    done = call("plan", project, "-q", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def decide(plan: str, **choices: str) -> str:
    """The plan with other choices for places of train.py: `at5="npu"`."""
    for line, choice in choices.items():
        plan = plan.replace(f"- open: train.py:{line[2:]} ", f"- {choice}: train.py:{line[2:]} ")
    return plan


def migrated(project: Path, plan: str, *arguments: object, name: str = "plan.md") -> tuple[Path, str]:
    """The output with this plan, and the summary."""
    file = project.parent / name
    file.write_text(plan)
    out = project.parent / "out"
    done = call("-i", project, "-o", out, "--plan", file, "--force", "--jobs", 0, "--exit-zero", *arguments)
    assert done.exit_code == 0, done.output
    return out / "project_msft", done.output


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_plan_reads_as_a_report_of_decisions(project: Path) -> None:
    text = planned(project)
    assert text.startswith(f"# Plan of a port to NPUs: project\n\n{MARKER}\n")
    assert "## Version of torch\n\nChosen because: the default, since no requirement file pins torch.\n" in text
    assert "\n- torch-version: " in text
    assert re.search(r'\n- open: train\.py:5 NPU203 [0-9a-f]{10}\+9 `register\("cuda", 1\)`\n', text)
    assert "- style: npu\n\n<!-- npu, portable -->\n" in text
    assert "## Left to do by hand (information)\n" in text
    assert "Scripts of the project, those that look like training first: train.py\n\n- main: none\n" in text
    assert "| Use hccl between cards." in text
    assert text == planned(project)


def test_scripts_that_are_called_so_train_before_modules_that_test_themselves(project: Path) -> None:
    (project / "lib").mkdir()
    (project / "lib/distance.py").write_text(TRAIN)
    assert "those that look like training first: train.py, lib/distance.py\n" in planned(project)


def test_a_plan_that_nobody_has_edited_changes_nothing(project: Path) -> None:
    out, said = migrated(project, planned(project))
    with_plan = tree(out)
    assert "plan.md says" not in said
    call("-i", project, "-o", project.parent / "out", "--force", "--jobs", 0)
    assert tree(out) == with_plan


def test_neither_does_one_of_a_project_with_settings(project: Path) -> None:
    settings = '[tool.transplt]\nstyle = "portable"\ntorch-version = "2.7"\nunsafe-fixes = true\n'
    (project / "pyproject.toml").write_text(settings)
    plan = planned(project)
    assert "- style: portable\n" in plan and "- unsafe-fixes: yes\n" in plan and "- torch-version: 2.7\n" in plan
    with_plan = tree(migrated(project, plan)[0])
    call("-i", project, "-o", project.parent / "out", "--force", "--jobs", 0)
    assert tree(project.parent / "out" / "project_msft") == with_plan


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("torch-version: 2.8", ("--torch-version", "2.8")),
        ("torch-version: `2.8.0` <!-- pinned -->", ("--torch-version", "2.8")),
        ("style: portable", ("--style", "portable")),
        ("torch-npu-import: each-file", ("--torch-npu-import", "each-file")),
        ("specify-device: yes", ("-s",)),
        ("similar: true", ("-sim",)),
        ("unsafe-fixes: on", ("--unsafe-fixes",)),
        ("texts: yes", ("--texts",)),
        ("docs: yes", ("--docs",)),
        ("amp: native\n- amp-dtype: bfloat16", ("--amp", "native", "--amp-dtype", "bfloat16")),
        ("tune: all", ("--tune", "all")),
        ("tune: all,-drop-last", ("--tune", "all,-drop-last")),
        ("Unsafe fixes: YES", ("--unsafe-fixes",)),
    ],
)
def test_each_setting_is_as_its_option(project: Path, line: str, option: tuple[str, ...]) -> None:
    key = line.partition(":")[0].lower().replace(" ", "-")
    plan = re.sub(rf"(?m)^- {key}: .*$", f"- {line}", planned(project))
    out, said = migrated(project, plan)
    first = re.sub(r" <!--.*|`|\n.*", "", line).partition(": ")[2]
    assert f"as plan.md says: {key} " in said and first
    with_plan = {path: data for path, data in tree(out).items() if path.endswith((".py", ".sh"))}
    call("-i", project, "-o", project.parent / "out", "--force", "--jobs", 0, *option)
    assert {path: data for path, data in tree(out).items() if path.endswith((".py", ".sh"))} == with_plan


def test_a_main_file_makes_the_program_distributed(project: Path) -> None:
    out, said = migrated(project, planned(project).replace("- main: none", "- main: train.py"))
    assert "as plan.md says: main train.py" in said
    call("-i", project, "-o", project.parent / "other", "distributed", "-m", project / "train.py")
    assert (out / "train.py").read_bytes() == (project.parent / "other" / "project_msft" / "train.py").read_bytes()


def test_a_string_in_question_is_decided(project: Path) -> None:
    plan = decide(planned(project), at5="npu", at9="leave")
    out, said = migrated(project, plan)
    text = (out / "train.py").read_text()
    assert 'register("npu", 1)' in text and 'register("cuda", 2)' in text
    assert "as plan.md says: 1 place: leave; 1 place: npu\n" in said
    log = (out / "msFmkTranspltlog.txt").read_text()
    assert "NPU203 [converted, unsafe] device 'cuda' -> 'npu', as plan.md says" in log
    assert "NPU203 [ignored: the plan keeps it unchanged]" in log
    assert "the plan keeps it unchanged" in (out / "tokens.csv").read_text()


def test_a_backend_in_question_is_decided(project: Path) -> None:
    (project / "back.py").write_text('import torch\nfrom kernels import send\nsend("nccl")\nsend("nccl ")\n')
    plan = planned(project)
    assert "- open: back.py:3 NPU302 " in plan, plan
    out, said = migrated(project, plan.replace("- open: back.py:3", "- hccl: back.py:3"))
    assert 'send("hccl")\nsend("nccl ")\n' in (out / "back.py").read_text()
    assert "1 place: hccl" in said


def test_strings_that_cannot_be_edited_are_not_offered(project: Path) -> None:
    """Neither are those that something is known of: they are edited, or stay for a reason."""
    lines = ("import torch", "from kernels import send", 'send("cu" "da")', 'send("\\x63uda")', 'print("cuda")')
    (project / "odd.py").write_text("\n".join((*lines, 'torch.device("cuda")\n')))
    assert ": odd.py" not in planned(project)


@given(st.text(st.sampled_from("- *+:#`~<!>\nNPU203opensty/.x1 \t\r"), max_size=60) | st.text(max_size=60))
def test_any_text_is_a_plan_or_is_refused(text: str) -> None:
    try:
        found = parse_plan(f"{MARKER}\n{text}", "plan.md", "plan.md")
    except UsageError as error:
        assert str(error).startswith("plan.md:")
    else:
        assert not any(".." in path.split("/") or path.startswith("/") for path in found.left)


def test_an_edit_on_offer_is_made_where_the_plan_says_so(project: Path) -> None:
    plan = planned(project)
    offered = re.search(r"(?m)^- open: train\.py:12 (NPU\d+) ", plan)
    assert offered is not None, plan
    made, said = migrated(project, decide(plan, at12="apply"))
    assert "as plan.md says: 1 place: apply\n" in said
    with_plan = (made / "train.py").read_bytes()
    assert f"{offered[1]} [converted, unsafe]" in (made / "msFmkTranspltlog.txt").read_text()
    call("-i", project, "-o", project.parent / "out", "--force", "--jobs", 0, "--unsafe-fixes")
    assert (made / "train.py").read_bytes() == with_plan
    left, said = migrated(project, decide(plan, at12="leave"))
    assert "get_device_capability() >= (8, 0)" in (left / "train.py").read_text()
    assert f"{offered[1]} [ignored: the plan keeps it unchanged]" in (left / "msFmkTranspltlog.txt").read_text()


def test_one_edit_is_left_of_all_that_are_unsafe(project: Path) -> None:
    plan = decide(planned(project), at12="leave")
    out, _ = migrated(project, plan.replace("- unsafe-fixes: no", "- unsafe-fixes: yes"))
    assert "get_device_capability() >= (8, 0)" in (out / "train.py").read_text()


@pytest.mark.parametrize("pattern", ["vendor/", "vendor", "vendor/*", "./vendor/", "ven*"])
def test_files_are_left_as_they_are(project: Path, pattern: str) -> None:
    out, said = migrated(project, planned(project).replace("- leave: none", f"- leave: {pattern}"))
    for name in ("lib.py", "run.sh"):
        assert (out / "vendor" / name).read_bytes() == (project / "vendor" / name).read_bytes()
    assert 'dist.init_process_group("hccl")' in (out / "train.py").read_text()
    assert f"2 files left unchanged ({pattern.removeprefix('./')})" in said
    rows = [row for row in (out / "tokens.csv").read_text().splitlines() if row.startswith("vendor/")]
    assert len(rows) == 2 and all("the plan keeps it unchanged" in row for row in rows)


def test_codes_are_left(project: Path) -> None:
    plan = planned(project)
    out, said = migrated(project, plan.replace("- leave: none", "- leave: NPU301\n- leave: NPU2 in vendor/*"))
    assert 'dist.init_process_group("nccl")' in (out / "train.py").read_text()
    assert 'device="cuda"' in (out / "vendor" / "lib.py").read_text()
    assert "NPU301 left; NPU2 left in vendor/*" in said and "--isolated ignores" not in said


def test_a_place_is_known_by_its_line(project: Path) -> None:
    plan = planned(project).replace("- open: train.py", "- npu: train.py")
    moved = "# new\n\n" + TRAIN.replace('    register("cuda", 2)', '    if data:\n        register("cuda", 2)')
    (project / "train.py").write_text(moved)
    out, said = migrated(project, re.sub(r"- npu: (.*:12 )", r"- open: \1", plan))
    assert (out / "train.py").read_text().count('register("npu"') == 2
    assert "not followed" not in said


def test_what_is_gone_is_not_followed_and_said(project: Path) -> None:
    plan = decide(planned(project), at5="npu", at9="leave")
    changed = TRAIN.replace('register("cuda", 1)', "pass").replace('register("cuda", 2)', 'register("cuda", 3)')
    (project / "train.py").write_text(changed)
    out, said = migrated(project, plan.replace("- leave: none", "- leave: gone/"))
    why = "this line no longer exists"
    places = [f"npu: train.py:5 NPU203: {why}", f"leave: train.py:9 NPU203: {why}"]
    for line in (*places, "leave: gone/: the project has no such file"):
        assert f"  not followed: {line}\n" in said
        assert f"not followed: {line}\n" in (out / "msFmkTranspltlog.txt").read_text()
    (project / "train.py").unlink()
    assert "not followed: npu: train.py:5 NPU203: the file does not exist" in migrated(project, plan)[1]


def test_equal_lines_are_not_taken_for_each_other(project: Path) -> None:
    plan = decide(planned(project), at5="npu")
    (project / "train.py").write_text('from kernels import register\nregister("cuda", 1)\n' + TRAIN)
    out, said = migrated(project, plan)
    assert "not followed: npu: train.py:5" in said
    assert 'register("npu"' not in (out / "train.py").read_text()


def test_what_the_style_speaks_against_is_not_followed(project: Path) -> None:
    plan = decide(planned(project), at5="npu").replace("- style: npu", "- style: portable")
    out, said = migrated(project, plan)
    assert 'register("cuda", 1)' in (out / "train.py").read_text()
    assert "not followed: npu: train.py:5 NPU203: it only writes for NPUs, but the style is portable" in said
    bad = call("-i", project, "--plan", _written(project, plan.replace("- texts: no", "- texts: yes")))
    assert bad.exit_code == 2
    assert "plan.md (style: portable, texts: yes): --texts only writes for NPUs" in bad.output


def _written(project: Path, text: str | bytes) -> Path:
    path = project.parent / "plan.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_command_line_wins_and_says_so(project: Path) -> None:
    plan = re.sub("(?m)^- torch-version: .*$", "- torch-version: 2.8", planned(project))
    plan = plan.replace("- tune: none", "- tune: all")
    _, said = migrated(project, plan, "--torch-version", "2.7", "--tune", "drop-last")
    assert "  torch 2.7 with torch_npu " in said
    assert "the command line overrides the plan: torch-version: 2.7, not 2.8" in said
    assert "the command line overrides the plan: tune: drop-last, not all" in said


def test_what_nobody_decided_is_no_contradiction(project: Path) -> None:
    _, said = migrated(project, planned(project), "--style", "portable", "--torch-version", "2.7")
    assert "  torch 2.7 with torch_npu " in said and "overrides the plan" not in said
    file = _written(project, planned(project))
    done = call("-i", project, "-o", project.parent / "two", "--plan", file, "distributed", "-m", project / "train.py")
    assert "overrides the plan" not in done.output and done.exit_code == 1


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("- stlye: npu", "plan.md:7: unknown key 'stlye'; did you mean 'style'?"),
        ("* run: rm -rf /", "plan.md:7: unknown key 'run'; known: torch-version, style"),
        ("- !command: make", "plan.md:7: a line with a bullet must be `- key: value`, not '!command: make'"),
        ("- !!python/object/apply:os.system ['id']", "plan.md:7: a line with a bullet must be"),
        ("- style: !!python/name:os.system", "plan.md:7: style must be one of npu, portable, not"),
        ("- style: $(id)", "plan.md:7: style must be one of npu, portable, not '$(id)'"),
        ("- style: &a npu", "plan.md:7: style must be one of npu, portable, not '&a npu'"),
        ("- think about it", "plan.md:7: a line with a bullet must be"),
        ("-", "plan.md:7: a line with a bullet must be"),
        ("- style: npu\n- style: portable", "plan.md:8: style is already in line 7"),
        ("- torch-version: 9.9", "plan.md:7: torch version '9.9' is not known"),
        ("- torch-version:", "plan.md:7: torch-version needs a value"),
        ("- tune: warp-speed", "plan.md:7: "),
        ("- unsafe-fixes: maybe", "plan.md:7: unsafe-fixes must be one of no, yes, not 'maybe'"),
        ("- main: ../evil.py", "plan.md:7: '../evil.py' is not a path inside the project"),
        ("- main: /etc/passwd", "plan.md:7: '/etc/passwd' is not a path inside the project"),
        ("- main: gone.py", "plan.md:7: the project has no file 'gone.py'"),
        ("- leave: ../other/*", "plan.md:7: '../other/*' is not a path inside the project"),
        ("- leave: C:\\windows", "plan.md:7: 'C:\\\\windows' is not a path inside the project"),
        ("- leave: ~/x", "plan.md:7: '~/x' is not a path inside the project"),
        ("- leave: **", "plan.md:7: '**' leaves the whole project unchanged"),
        ("- leave: NPU", "plan.md:7: 'NPU' leaves the whole project unchanged"),
        ("- leave: NPU99999", "plan.md:7: no code starts with 'NPU99999'"),
        ("- leave: NPU2 in ../x", "plan.md:7: '../x' is not a path inside the project"),
        ("- npu: train.py:5 NPU203", "plan.md:7: after `npu:` write the place as `transplt plan` does"),
        ("- npu: ../a.py:5 NPU203 0123456789+1", "plan.md:7: '../a.py' is not a path inside the project"),
        ("- npu: /a.py:5 NPU203 0123456789+1", "plan.md:7: '/a.py' is not a path inside the project"),
        ("- apply: a.py:5 NPU203 0123456789+1", "plan.md:7: NPU203 must be open, npu or leave, not apply"),
        ("- npu: a.py:5 NPU249 0123456789+1", "plan.md:7: NPU249 must be open, apply or leave, not npu"),
        ("- npu: a.py:5 NPU203 0123456789+1\n- leave: a.py:9 NPU203 0123456789+1", "plan.md:8: a.py:9 NPU203 is al"),
        ("- style: npu\x07", "plan.md:7: the character U+0007 is not allowed in a plan"),
        ("text \x1b[31m", "plan.md:7: the character U+001B is not allowed in a plan"),
        ("text \u202e", "plan.md:7: the character U+202E is not allowed in a plan"),
        ("- style: " + "npu " * 2000, "plan.md:7: a line of 8009 characters is too long for a decision"),
        ("- leave: a\n" * 1001, "plan.md:1007: more than 1000 lines leave something"),
        ("- main: train.py\n- leave: train.py", "plan.md:7: the same plan leaves train.py unchanged"),
        ("text \u2028- style: portable", "plan.md:7: the character U+2028 is not allowed in a plan"),
        ("```\n- style: portable", "plan.md:7: the block of code that begins here does not end"),
        ("<!-- - style: portable", "plan.md:7: the comment that begins here does not end"),
    ],
)
def test_what_nobody_knows_ends_the_run(project: Path, line: str, error: str) -> None:
    path = _written(project, f"# Plan\n\n{MARKER}\n\nSome words.\n\n{line}\n")
    done = call("-i", project, "-o", project.parent / "out", "--plan", path)
    assert done.exit_code == 2, done.output
    assert error in done.output
    assert not (project.parent / "out").exists()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "is not a plan of transplt"),
        (b"- style: portable\n", "is not a plan of transplt: it lacks the line"),
        (b"\x00\xff\xfe\x80", "is not a plan: not UTF-8"),
        (MARKER.encode() + b"\n\x00\n", "plan.md:2: the character U+0000 is not allowed in a plan"),
        (MARKER.encode() + b"\n" + b"x" * 5_000_000, "plans are read up to 4 MB"),
    ],
)
def test_what_is_no_plan_is_refused(project: Path, data: bytes, error: str) -> None:
    done = call("-i", project, "--plan", _written(project, data))
    assert done.exit_code == 2 and error in done.output


def test_folders_and_what_is_not_there_are_refused(project: Path) -> None:
    for path in (project, project / "gone.md"):
        done = call("-i", project, "--plan", path)
        assert done.exit_code == 2 and "cannot read the plan" in done.output


def test_a_link_is_not_followed_out_of_the_project(project: Path, tmp_path: Path) -> None:
    plan = planned(project).replace("- open: train.py:5", "- npu: link/train.py:5")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "train.py").write_text(TRAIN)
    (project / "link").symlink_to(tmp_path / "outside")
    _, said = migrated(project, plan)
    assert "not followed: npu: link/train.py:5 NPU203: it is a link, or reached through one" in said


@pytest.mark.parametrize(
    "text",
    [
        "```\n- style: portable\n```",
        "~~~~\n- nonsense\n```\n~~~~",
        "<!--\n- style: portable\n-->",
        "<!-- - style: portable -->",
        "    - style: portable",
        "Words, then - style: portable",
        "1. style: portable",
        "---\n***\n- - -",
        "| - style: portable |",
        "words\u00a0and\u3000spaces, \U0001f468\u200d\U0001f469",
    ],
)
def test_what_is_for_reading_decides_nothing(text: str) -> None:
    assert parse_plan(f"{MARKER}\n{text}\n", "plan.md", "plan.md").keys == {}


def test_names_and_lines_of_an_input_decide_nothing(project: Path) -> None:
    """What a project is called and holds stands in a plan, and never begins a line there."""
    (project / "requirements - style: portable.txt").write_text("torch>=2.0\n")
    (project / "- leave: x").mkdir()
    (project / "- leave: x" / "<!-- a.py").write_text('from k import register\nregister("cuda", "<!-- ```")\n')
    (project / "```").mkdir()
    (project / "```" / "b.py").write_text('from k import register\nregister("cuda", """\n- style: portable\n""")\n')
    plan = planned(project)
    read = parse_plan(plan, "plan.md", "plan.md")
    assert read.keys["style"] == "npu" and read.left == []
    with_plan = tree(migrated(project, plan)[0])
    call("-i", project, "-o", project.parent / "out", "--force", "--jobs", 0)
    assert tree(project.parent / "out" / "project_msft") == with_plan


def test_the_program_ends_with_2(project: Path) -> None:
    path = _written(project, f"{MARKER}\n- stlye: npu\n")
    command = [sys.executable, "-m", "transplt", "-i", str(project), "--plan", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"Error: {path}:2: unknown key 'stlye'; did you mean 'style'?\n")


def test_a_plan_inside_of_the_input_is_no_setting(project: Path) -> None:
    (project / "plan.md").write_text(planned(project).replace("- style: npu", "- style: portable"))
    assert make_plan(Options(source=project)).settings.style == "npu"


def test_a_plan_that_is_there_is_not_replaced(project: Path) -> None:
    path = _written(project, "mine")
    assert call("plan", project, "-o", path).exit_code == 2
    assert path.read_text() == "mine"
    assert call("plan", project, "-o", path, "--force").exit_code == 0
    assert MARKER in path.read_text()


def test_a_port_follows_a_plan(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    plan = decide(planned(project), at5="npu").replace("- leave: none", "- leave: vendor/")
    done = call("port", project, "--plan", _written(project, plan), "--exit-zero")
    assert done.exit_code == 0, done.output
    assert "as plan.md says: 1 place: npu; 2 files left unchanged (vendor/)" in done.output
    assert 'register("npu", 1)' in git(project, "show", "npu-port:train.py")
    assert 'device="cuda"' in git(project, "show", "npu-port:vendor/lib.py")
    done = call("port", project, "--plan", _written(project, plan.replace("- main: none", "- main: train.py")))
    assert done.exit_code == 2 and "makes no program distributed" in done.output


def test_a_port_lists_what_a_plan_leaves_open(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the place looks like CUDA's side of code for the NPU, since another was decided."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    (project / "kinds.py").write_text(KINDS)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    plan = planned(project)
    assert "- open: kinds.py:5 " in plan and "- open: kinds.py:7 " in plan
    path = _written(project, plan.replace("- open: kinds.py:5 ", "- npu: kinds.py:5 "))
    call("port", project, "--plan", path, "--exit-zero")
    code = git(project, "show", "npu-port:kinds.py").splitlines()
    line = next(number for number, text in enumerate(code, 1) if text.endswith('== "cuda":'))
    assert f"`kinds.py:{line}`" in git(project, "show", "npu-port:NPU_PORT.md")


def test_one_file_has_a_plan(project: Path) -> None:
    plan = decide(planned(project / "train.py"), at5="npu")
    out = project.parent / "one"
    call("-i", project / "train.py", "-o", out, "--plan", _written(project, plan))
    assert 'register("npu", 1)' in (out / "train_msft" / "train.py").read_text()


def test_marks_tell_equal_lines_apart() -> None:
    lines = Lines(read_source(b"a\n  b\na\n"))
    assert len({*lines.marks[:3]}) == 3
    assert lines.find(lines.mark(2, 3)) == (2, 3)
    assert Lines(read_source(b"a\n\n      b\na\n")).find(lines.mark(2, 3)) == (3, 7)
    assert Lines(read_source(b"a\n")).find(lines.mark(1, 1)) is None


def test_a_glob_means_paths_and_what_is_below() -> None:
    assert matches("a/b/c.py", "a") and matches("a/b/c.py", "a/") and matches("a/b/c.py", "*.py")
    assert not matches("ab/c.py", "a") and not matches("x/a/c.py", "a/") and not matches("A/c.py", "a")
