"""Migrate a project with `distributed`, and run it on the emulated NPU through its launch script."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

from tests.forked import transplt_run, warm
from transplt.faces.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "run_distributed_npu.sh"
#: torchrun puts `[default0]:` before what local rank 0 prints.
_RANK = "[default"


def transplt(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "transplt", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def in_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, in another folder."""
    out, err = io.StringIO(), io.StringIO()
    here = os.getcwd()
    os.chdir(cwd)
    try:
        with (
            mock.patch.object(sys, "argv", ["transplt", *arguments]),
            mock.patch.object(cli, "_catch_signals", lambda: None),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = cli.entry_point()
    finally:
        os.chdir(here)
    return subprocess.CompletedProcess(list(arguments), code, out.getvalue(), err.getvalue())


def migrated(source: Path, out: Path, *options: str) -> Path:
    """The output folder of a migration; `options` go behind -i and -o."""
    out.parent.mkdir(parents=True, exist_ok=True)
    done = in_process("-i", str(source), "-o", str(out), "--no-html", "--jobs", "0", *options, cwd=out.parent)
    assert done.returncode in (0, 1), done.stderr
    return out / f"{source.stem if source.is_file() else source.name}_msft"


def precise(folder: Path) -> Path:
    """The folder, whose scripts now print what float16 and float32 differ in."""
    for path in folder.glob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace(":.4f}", ":.8f}"), encoding="utf-8")
    return folder


def emulated(folder: Path, *script: str, stubs: str = "") -> list[str]:
    """Run a script of `folder` on the emulated NPU without a finding; the lines it printed, without names of ranks."""
    report = folder / "report.json"
    options = ["--stubs", stubs] if stubs else []
    _, output, errors = transplt_run(["--report", str(report), *options, *script], folder)
    assert report.exists(), output + errors
    told = json.loads(report.read_text(encoding="utf-8"))
    assert (told["verdict"], told["reasons"]) == ("runs", []), output + errors
    return [line.partition("]:")[2] if line.startswith(_RANK) else line for line in output.splitlines()]


def launched(folder: Path, nproc: int, *arguments: str, stubs: str = "") -> list[str]:
    """Run the launch script of `folder` with `nproc` processes.

    Where runs are forked, so are the ranks of its program, each of which imports torch otherwise: that launch scripts
    start them is shown in tests/emulator/test_run.py, and with --full here.
    """
    if warm() is None:
        return emulated(folder, SCRIPT, "--nproc", str(nproc), "--", *arguments, stubs=stubs)
    (program,) = re.findall(r'^main="\$here"/(.+)$', (folder / SCRIPT).read_text(encoding="utf-8"), re.M)
    return emulated(folder, "--nproc", str(nproc), *shlex.split(program), *arguments, stubs=stubs)
