"""The command line: how options are read, what comes out where, and the exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import transplt
from transplt.base.settings import TORCH_VERSIONS
from transplt.faces.cli import command
from transplt.faces.cli import main as cli

NEWEST = TORCH_VERSIONS[-1]

ROOT = Path(__file__).parent.parent
USES_CUDA = "import torch\nprint(torch.cuda.is_available())\n"


def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command, in this process."""
    monkeypatch.setattr(sys, "argv", ["transplt", *map(str, arguments)])
    monkeypatch.setattr(cli, "_catch_signals", lambda: None)
    code = cli.entry_point()
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "a.py").write_text(USES_CUDA)
    return folder


def test_a_migration_says_what_it_did_on_stderr(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(monkeypatch, capsys, "-i", project)
    assert code == 0
    assert out == ""
    assert f"migrated to {project}_msft" in err
    assert err.splitlines()[1].startswith(f"  torch {NEWEST} with torch_npu {NEWEST}")
    assert err.splitlines()[1].endswith(": the default, since no requirement file pins torch")
    assert "  nothing left to do\n  converted: 2 edits in 1 of 1 file\n" in err
    assert (Path(f"{project}_msft") / "a.py").read_text().startswith("import torch\nimport torch_npu")


def test_the_portable_style_names_the_module_that_it_wrote(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, err = call(monkeypatch, capsys, "-i", project, "--style", "portable")
    assert "\n  device.py: chooses the accelerator" in err and "npu_port" not in err


def test_what_is_left_makes_exit_code_1(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "run.sh").write_text("NCCL_DEBUG=INFO python a.py\n")
    code, _, err = call(monkeypatch, capsys, "-i", project)
    assert code == 1
    assert "  to do: 1 action, less than an hour:\n    1. " in err
    assert "  more in report.html, unsupported_op.xlsx, msFmkTranspltlog.txt, or with -v; line numbers are " in err
    assert re.search(r"  to install .*, and check .*:\n    transplt run --setup \S+\n    transplt prove \S+ \S+", err)
    code, _, err = call(monkeypatch, capsys, "-i", project, "--force", "--exit-zero", "-q")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["-sims"],
        ["-is", "x"],
        ["-si"],
        ["-s-sim"],
        ["-i=proj"],
        ["explain", "-sims"],
        ["rules", "list", "-sim2"],
    ],
)
def test_bundles_are_refused(
    arguments: list[str], project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.parent)
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert out == ""
    assert "Error: " in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-sims"], "No such option: -sims (short options cannot be combined)"),
        (["-i=proj"], "write -i 'proj' with a space instead of '-i=proj'"),
        (["check", "-r=rules.json"], "write -r 'rules.json' with a space instead of '-r=rules.json'"),
        (["-i", "proj", "-oout"], "write -o 'out' with a space instead of '-oout'"),
        (["-i", "proj", "-out", "x"], "No such option: -out; did you mean --output DIR (-o DIR)?"),
        (["distributed", "-main", "a.py"], "No such option: -main; did you mean --main FILE (-m FILE)?"),
        (["convert", "-force", "a.npy"], "No such option: -force; did you mean --force?"),
        (["check", "-exclude", "a"], "No such option: -exclude; did you mean --exclude"),
    ],
)
def test_what_is_said_of_a_bundle(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in call(monkeypatch, capsys, *arguments)[2]


@pytest.mark.parametrize("name", [name for name in command.LAZY_COMMANDS if name != "run"])
def test_every_command_refuses_a_letter_with_more_behind_it(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-out DIR` is no `-o ut`: nothing is written, wherever it stands."""
    monkeypatch.chdir(project.parent)
    before = {*project.parent.rglob("*")}
    for arguments in ([name, "-out", "x", "proj"], [name, "proj", "-out", "x"]):
        assert call(monkeypatch, capsys, *arguments)[0] == 2
    assert {*project.parent.rglob("*")} == before


@pytest.mark.parametrize("given", [["-vv"], ["-v", "-v"], ["-sim", "-s"], ["--exclude", "-out"]])
def test_what_is_no_bundle(
    given: list[str], project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, capsys, "-i", project, "-o", project.parent / "out", *given)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (["-s"], {"specify_device": True}),
        (["-sim"], {"similar": True}),
        (["-s", "-sim"], {"specify_device": True, "similar": True}),
        (["--similar", "--unsafe-fixes", "--annotate"], {"similar": True, "unsafe_fixes": True, "annotate": True}),
        (["--torch-version", "2.8"], {"torch_version": "2.8"}),
        (["--torch-version", "2.8.0"], {"torch_version": "2.8"}),
        ([], {"torch_version": NEWEST, "specify_device": False, "similar": False}),
    ],
)
def test_options_reach_the_settings(
    arguments: list[str],
    settings: dict[str, object],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import transplt.project.options

    seen = []
    real = transplt.project.options.make_plan

    def make_plan(options: transplt.project.options.Options) -> transplt.project.options.Plan:
        seen.append(real(options))
        return seen[0]

    monkeypatch.setattr(transplt.project.options, "make_plan", make_plan)
    call(monkeypatch, capsys, *arguments, "-i", project, "-q")
    assert {name: getattr(seen[0].settings, name) for name in settings} == settings


def test_wrong_usage_is_exit_code_2(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, text in (
        ([], "Usage: transplt"),
        (["-o", "x"], "Missing option '-i'"),
        (["proj"], "no command 'proj'; to migrate a project: transplt -i proj -o OUT"),
        (["chek"], "no command 'chek'; did you mean 'check'?\n"),
        (["-i", project, "--nonsense"], "No such option"),
        (["-i", project, "--torch-version", "1.4"], f"torch version '1.4' is not known; choose one of 2.1 to {NEWEST}"),
        (["-i", project, "-r", "none.json"], "none.json: no such rule file"),
        (["-i", project, "explain", "NPU101"], "-i/--input: not for 'explain'"),
        (["-i", project, "--jobs", "-1"], "Invalid value for '--jobs'"),
        (["explain", "NPU000"], "NPU000 is not a code of transplt"),
        (["rules", "nothing"], "No such command"),
    ):
        code, _, err = call(monkeypatch, capsys, *arguments)
        assert code == 2, arguments
        assert text in err, arguments
    assert sorted(os.listdir(project.parent)) == ["proj"]


def test_a_bad_rule_file_writes_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": {\n "FuncNameModifyRule": [{"old_name": "f"}]}}')
    code, _, err = call(monkeypatch, capsys, "-i", project, "-r", rules)
    assert code == 2
    assert f"{rules}:2" in err
    assert not Path(f"{project}_msft").exists()
    code, _, err = call(monkeypatch, capsys, "rules", "validate", rules)
    assert code == 2
    assert f"{rules}:2" in err
    rules.write_text('{"rules": {"FuncNameModifyRule": [{"old_name": "f", "new_name": "g"}]}}')
    assert call(monkeypatch, capsys, "rules", "validate", rules)[:2] == (0, f"{rules}: valid\n")


def test_user_rules_are_applied(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "a.py").write_text("import lib\nlib.old(1)\n")
    for name, new in (("first.json", "one"), ("second.json", "two")):
        rule = f'{{"rules": {{"FuncNameModifyRule": [{{"old_name": "lib.old", "new_name": "{new}"}}]}}}}'
        (tmp_path / name).write_text(rule)
    call(monkeypatch, capsys, "-i", project, "-r", tmp_path / "first.json", "-r", tmp_path / "second.json")
    assert (Path(f"{project}_msft") / "a.py").read_text() == "import lib\nlib.two(1)\n"


def test_explain_and_the_list_of_rules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(monkeypatch, capsys, "explain", "npu101")
    assert (code, err) == (0, "")
    assert out.startswith("# NPU101: ")
    code, out, err = call(monkeypatch, capsys, "rules", "list", "--torch-version", "2.8")
    assert (code, err) == (0, "")
    assert "torch.cuda.is_available -> torch.npu.is_available" in out
    assert out.splitlines() == sorted(out.splitlines(), key=lambda line: line.split()[0])


def test_help_and_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("-h", "--help"):
        code, out, _ = call(monkeypatch, capsys, flag)
        assert code == 0
        assert "-sim, --similar" in out
        assert call(monkeypatch, capsys, "explain", flag)[0] == 0
    code, out, _ = call(monkeypatch, capsys, "--version")
    assert (code, out) == (0, f"transplt, version {transplt.__version__}\n")


def test_run_hands_its_arguments_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import types

    seen = []

    def run_command(arguments: list[str]) -> int:
        seen.append(arguments)
        return 1

    module = types.ModuleType("transplt.faces.cli.run")
    module.run_command = run_command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transplt.faces.cli.run", module)
    code, _, _ = call(monkeypatch, capsys, "run", "--npus", "2", "main.py", "-sims", "-i=3", "--help")
    assert code == 1
    assert seen == [["--npus", "2", "main.py", "-sims", "-i=3", "--help"]]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    others = {name: each for name, each in command.LAZY_COMMANDS.items() if name != "explain"}
    monkeypatch.setattr(command, "LAZY_COMMANDS", others)
    monkeypatch.setitem(
        cli.main.commands, "explain", command.Command("explain", callback=lambda: __import__("nothere"))
    )
    code, _, err = call(monkeypatch, capsys, "explain")
    assert code == 2
    assert err == "Error: this needs the package 'nothere', which is not installed\n"


def test_a_defect_is_exit_code_3(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr("transplt.project.tree.migrate_tree", broken)
    code, _, err = call(monkeypatch, capsys, "-i", project)
    assert code == 3
    assert "an internal error of transplt (RuntimeError); no partial output is left. The fault is not" in err


def test_a_run_that_cannot_finish_is_exit_code_3(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(fd: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transplt.base.disk.mirror._write_all", full)
    code, _, err = call(monkeypatch, capsys, "-i", project)
    assert code == 3
    assert "No space left on device; nothing was left behind" in err


def start(*arguments: object, script: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script] if script else [sys.executable, "-m", "transplt"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*command, *map(str, arguments)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_exit_code_130_and_leaves_nothing(project: Path, number: signal.Signals) -> None:
    (project / "b.py").write_text("# is slow\n")
    script = (
        "import sys, transplt.engine.engine\nfrom tests import standin_engine\n"
        "transplt.engine.engine = standin_engine\n"
        "from transplt.faces.cli.main import entry_point\nsys.exit(entry_point())\n"
    )
    process = start("-i", project, script=script)
    deadline = time.monotonic() + 30
    while not any(name.startswith(".proj_msft.") for name in os.listdir(project.parent)):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == "interrupted; no partial output is left"
    assert os.listdir(project.parent) == ["proj"]


def test_the_module_is_the_command(project: Path) -> None:
    process = start("-i", project, "-o", project.parent / "out")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    assert "\n  nothing left to do\n" in err
    assert "\x1b" not in err


def test_a_reader_that_goes_away_gets_no_traceback() -> None:
    process = start("rules", "list")
    assert process.stdout is not None
    process.stdout.close()
    process.wait(30)
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_progress_bar_in_a_long_run_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from transplt.project.report import console

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.progress_bar(True) as progress:
        progress(1, 10)
        assert terminal.getvalue() == ""
        now[0] = 2.0
        progress(5, 10)
        now[0] = 3.0
        progress(6, 10)
    assert "6/10" in terminal.getvalue()
    silent = Terminal()
    monkeypatch.setattr(sys, "stderr", silent)
    with console.progress_bar(False) as progress:
        now[0] = 9.0
        progress(5, 10)
    assert silent.getvalue() == ""


def test_the_list_of_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(monkeypatch, capsys, "rules")
    assert code == 0
    assert f"NPU101 safe             2.1-{NEWEST}         A function of torch.cuda that torch.npu also has\n" in out
    assert re.search(r"^NPU501 manual \(\w+\) ", out, re.MULTILINE)
    table = json.loads(call(monkeypatch, capsys, "rules", "--format=json")[1])
    assert [row["code"] for row in table] == [line.split()[0] for line in out.splitlines()]
    rename = next(row for row in table if row["code"] == "NPU101")
    assert rename["level"] == "safe" and rename["effort"] is None and rename["rules"] > 10


def test_the_rules_have_versions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    table = json.loads(call(monkeypatch, capsys, "rules", "list", "--format=json")[1])
    synchronize = [row for row in table if row["old"] == "torch.cuda.synchronize"]
    assert [row["new"] for row in synchronize] == ["torch.npu.synchronize"]
    assert synchronize[0]["versions"] == list(TORCH_VERSIONS)
    assert any(len(row["versions"]) < len(TORCH_VERSIONS) for row in table)
    one = json.loads(call(monkeypatch, capsys, "rules", "list", "--format=json", "--torch-version", "2.1")[1])
    assert {tuple(row["versions"]) for row in one} == {("2.1",)}


def test_the_help_shows_what_people_need_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, told, _ = call(monkeypatch, capsys, "--help")
    commands = told[told.index("Commands:") : told.index("Options of a migration")].splitlines()[1:-1]
    assert [line.split()[0] for line in commands if line.startswith("  ") and line[2] != " "] == [
        "migrate", "check", "analyze", "survey", "plan", "distributed", "run", "emulator", "compiler", "prove",
        "judge", "instrument", "port", "loss", "compare", "replay", "show", "anomalies", "convert", "diagnose",
        "profile-read",
        "doctor", "card-read", "mcp", "lsp", "explain", "rules", "config", "facts", "cache",
    ]  # fmt: skip
    first = [told.index(f"transplt {words}") for words in ("check PROJECT", "-i PROJECT -o OUT", "run OUT")]
    assert first == sorted(first) and first[-1] < told.index("Commands:")


@pytest.mark.parametrize("columns", [80, 40])
def test_without_a_word_the_three_commands_are_told_in_the_width_of_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, _, told = call(monkeypatch, capsys)
    for words in ("check PROJECT", "-i PROJECT -o OUT", "run OUT/NAME_msft/train.py"):
        assert f"transplt {words}\n" in told
    assert code == 2 and len(told.splitlines()) < 24
    _, long, _ = call(monkeypatch, capsys, "--help")
    too_wide = [line for line in (told + long).splitlines() if len(line) > columns]
    assert all(line.split()[0] == "--torch-npu-import" for line in too_wide)  # one word, longer than 40


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device"), 3, "Error: cannot write standard output: No space left on device\n"),
        (OSError(27, "File too large", "a.csv"), 3, "Error: cannot write a.csv: File too large\n"),
        (MemoryError(), 3, "Error: not enough memory; no partial output is left\n"),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
    ],
)
def test_what_the_system_refuses_is_one_sentence(
    error: Exception, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the command was doing: `transplt explain NPU201 > /dev/full`, `transplt rules | head -1`."""

    def refused(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(cli.main, "main", refused)
    monkeypatch.setattr(cli.os, "dup2", lambda *_: 0)
    assert cli.entry_point() == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("arguments", [("check",), ("check", "a.py"), ("-i", "p", "-o", "q"), ("config", ".")])
def test_a_current_folder_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, err = call(monkeypatch, capsys, *arguments)
    assert code == 2 and len(err.splitlines()) == 1


@pytest.mark.parametrize("options", [("--output-file", "a.py"), ("--baseline", "a.py", "--update-baseline")])
def test_a_check_writes_nothing_over_its_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    code, _, err = call(monkeypatch, capsys, "check", "a.py", *options)
    assert code == 2 and "a.py is the input; name another file" in err
    assert Path("a.py").read_text() == "import torch\ntorch.cuda.synchronize()\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_streams_that_are_closed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    command = f"'{sys.executable}' -m transplt -i '{tmp_path}/a.py' -o '{tmp_path}/out' --jobs 0 <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert (tmp_path / "out/a_msft/a.py").read_text().endswith("\ntorch.npu.synchronize()\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "words", ["explain NPU201", "check a.py", "check a.py --format json", "rules", "--help"]
)
def test_a_full_device(words: str, buffered: bool, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "" if buffered else "1"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "transplt", *words.split()],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path, env=environment,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "Error: cannot write standard output: No space left on device\n")


def test_a_terminal_that_cannot_show_everything(tmp_path: Path) -> None:
    (tmp_path / "你.py").write_text("import torch\nprint(torch.cuda.is_available(), torch.poisson(torch.ones(2)))\n")
    command = [sys.executable, "-m", "transplt", "analyze", str(tmp_path), "--format", "csv"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "COLUMNS": "40", "NO_COLOR": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"\\u4f60.py" in done.stdout
    assert b"Traceback" not in done.stderr and b"\x1b" not in done.stdout + done.stderr


def test_files_that_are_not_python_are_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "a.py").write_text(USES_CUDA)
    (tmp_path / "proj" / "requirements.txt").write_text("torch\n")
    _, _, err = call(monkeypatch, capsys, "-i", tmp_path / "proj", "-o", tmp_path / "out")
    assert "converted: 3 edits in 2 of 2 files" in err
