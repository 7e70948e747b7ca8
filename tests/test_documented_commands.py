"""Every command that README and docs show is run; the site builds; completion works in the shells it speaks of."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.checking.conftest import commit_all
from tests.processes import unmeasured
from transplt.faces.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
WITH_COMMANDS = [path for path in DOCUMENTS if "```console" in path.read_text("utf-8")]


def commands(path: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    # What runs a program needs torch and the program's arguments: tests/test_quick_start.py runs such lines.
    return [line for line in lines if not line.startswith(("transplt run ", "transplt prove ", "transplt emulator "))]


def environment(bin_folder: Path) -> dict[str, str]:
    """A PATH in which `transplt` is the program of this checkout."""
    bin_folder.mkdir()
    command = bin_folder / "transplt"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m transplt "$@"\n')
    command.chmod(0o755)
    kept = {name: value for name, value in unmeasured().items() if not name.startswith("GIT_")}
    return {**kept, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}


#: Pages with most commands; what these do is shown in tests/checking, tests/test_plan_file.py, tests/test_port.py.
LONG = ("check.md", "porting.md", "device_agnostic.md", "adaptors.md")


@pytest.mark.parametrize(
    "document",
    [pytest.param(path, id=path.name, marks=[pytest.mark.slow] * (path.name in LONG)) for path in WITH_COMMANDS],
)
def test_the_commands_of_a_document_work(document: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "samples" / "image_classifier" / "cuda", tmp_path / "work" / "project")
    commit_all(tmp_path / "work" / "project")
    script = "set -u\n" + "".join(f'{command}\necho "__status $?" >&2\n' for command in commands(document))
    where, variables = tmp_path / "work", environment(tmp_path / "bin")
    done = subprocess.run(
        ["bash", "-c", script], cwd=where, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    statuses = re.findall(r"__status (\d+)", done.stderr)
    assert len(statuses) == len(commands(document)), done.stderr
    for command, status in zip(commands(document), statuses, strict=True):
        # 1: something is left for a person, as it should be in this project.
        assert status in ("0", "1"), f"{command} ended with {status}\n{done.stderr}"
    assert "Traceback" not in done.stderr and "Error:" not in done.stderr


def test_the_documents_show_enough_commands() -> None:
    assert {path.name for path in WITH_COMMANDS} >= {"README.md", "index.md", "porting.md", "check.md", "settings.md"}
    assert sum(len(commands(path)) for path in WITH_COMMANDS) >= 30


#: Documents that speak of options of other commands, and of scripts.
SCRIPTS_OPTIONS = (
    "emulator.md", "coverage.md", "architecture.md", "rules.md", "real_projects.md", "measured.md", "inside.md",
    "quick_start.md", "quick_start_zh.md", "proof.md", "other_files.md",
)  # fmt: skip


#: Those whose options stand in documents by themselves; "" is the migration.
COMMANDS = (
    "", "check", "run", "prove", "judge", "analyze", "config", "compare", "replay", "show", "anomalies", "loss",
    "convert",
    "diagnose", "profile-read", "doctor", "card-read", "lsp", "mcp", "survey", "distributed", "plan", "instrument",
    "port",
)  # fmt: skip


#: Options of the launch script and of programs, which the guide's command has.
LAUNCH = ("--addr", "--device-list", "--device", "--multiprocessing-distributed", "--dist-url")


def test_options_in_the_documents_exist() -> None:
    """Options that stand in code spans, of the migration or of check."""
    shown = ""
    for name in COMMANDS:
        command = [*([name] if name else []), "--help"]
        shown += CliRunner().invoke(main, command, prog_name="transplt", catch_exceptions=False).stdout
    for document in DOCUMENTS:
        if document.name in SCRIPTS_OPTIONS:
            continue
        text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
        for option in re.findall(r"`(?:transplt |check )?(--[a-z][a-z-]+)[ `]", text):
            if option not in ("--no-cuda", "--full", "--dry-run", "--nproc", "--no-format", *LAUNCH):
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown), f"{document.name}: {option}"


@pytest.mark.extra
@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="needs the extra `docs`")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "A device string" in (tmp_path / "site" / "diagnostics" / "NPU201" / "index.html").read_text("utf-8")
    assert not re.search(r'(?:src|href)="https?://fonts', (tmp_path / "site" / "index.html").read_text("utf-8"))


ASK = {
    "bash": """
eval "$(_TRANSPLT_COMPLETE=bash_source transplt)"
COMP_WORDS=(transplt {words}); COMP_CWORD={count}
_transplt_completion transplt
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """
autoload -U compinit && compinit -u -D
eval "$(_TRANSPLT_COMPLETE=zsh_source transplt)"
whence -w _transplt_completion
env COMP_WORDS="transplt {words}" COMP_CWORD={count} _TRANSPLT_COMPLETE=zsh_complete transplt
""",
    "fish": """
_TRANSPLT_COMPLETE=fish_source transplt | source
complete -C "transplt {words}"
""",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("che", "check"),
        ("check --for", "--format"),
        ("check --format sar", "sarif"),
        ("--sty", "--style"),
        ("--amp nat", "native"),
        ("--tune fused-o", "fused-optimizer"),
        ("--tune all,-drop", "all,-drop-last"),
        ("explain NPU20", "NPU201"),
    ],
)
@pytest.mark.parametrize(
    "shell", [pytest.param(shell, marks=[] if shell == "bash" else [pytest.mark.extra]) for shell in ASK]
)
def test_completion(shell: str, words: str, expected: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    if shell == "fish" and "," in words:
        pytest.skip("click's script for fish takes a comma for the end of a value")
    script = ASK[shell].format(words=words, count=len(words.split()))
    done = subprocess.run(
        [shell, "-c", script], cwd=tmp_path, env={**environment(tmp_path / "bin"), "HOME": str(tmp_path)},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert re.search(rf"^{re.escape(expected)}\b", done.stdout, re.MULTILINE), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "kind"), [("-i pro", "file"), ("-o o", "dir"), ("check pro", "file"), ("run tr", "file")]
)
def test_the_shell_completes_places(words: str, kind: str, tmp_path: Path) -> None:
    variables = {"COMP_WORDS": f"transplt {words}", "COMP_CWORD": str(len(words.split()))}
    done = subprocess.run(
        ["transplt"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**environment(tmp_path / "bin"), **variables, "_TRANSPLT_COMPLETE": "bash_complete"},
    )  # fmt: skip
    assert done.stdout.strip() == f"{kind},{words.split()[-1]}"
