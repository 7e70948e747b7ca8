"""Programs that tests run on an emulated host, forked from a process that has imported torch, as `prove` forks its own.

TRANSPLT_TESTS_COLD=1 starts each by itself, as the long checks do: what a forked run may differ in shows there.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any
from unittest import mock

import pytest

from tests.processes import measured_alone, unmeasured
from transplt.base.disk.cache_folder import cache_folder
from transplt.faces.cli.main import main as cli
from transplt.proof.launch import interpreter
from transplt.proof.launch.command import run_command
from transplt.proof.launch.device_backend import torch_npu_of
from transplt.proof.launch.options import RunOptions, TorchNpu, Trace, UsageError
from transplt.proof.launch.runner import CARD, SITE
from transplt.proof.launch.warm import Warm

ROOT = Path(__file__).resolve().parents[1]
#: Before a test gives itself another home.
_WHEELS = cache_folder() / "torch_npu"
#: Of each run, as a proof sets them: what differs in them is forked by another process, which imports torch anew.
SHARED = {"PYTHONHASHSEED": str(Trace().seed), "OMP_NUM_THREADS": "1"}
#: The processes that fork, by the process that asks: a worker of the test run that was forked needs its own.
_WARM: dict[int, Warm] = {}


def warm() -> Warm | None:
    """What forks the runs of this test process; None where each is to be started."""
    if os.environ.get("TRANSPLT_TESTS_COLD"):
        return None
    if os.getpid() not in _WARM:
        _WARM[os.getpid()] = Warm()
        atexit.register(_WARM[os.getpid()].close)
    return _WARM[os.getpid()]


def run(
    script: Path, arguments: tuple[str, ...], environment: dict[str, str], folder: Path, nproc: int = 0,
    timeout: float = 500.0,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run `script` in `folder` with so many ranks (0: without torchrun's variables), and without warnings."""
    environment = {**environment, **SHARED, "PYTHONWARNINGS": "ignore"}
    processes = warm()
    command = [sys.executable, str(script), *arguments]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        streams = (output.fileno(), errors.fileno())
        forked = processes.start(command, nproc, str(folder), environment, *streams) if processes else None
        if forked is not None:
            try:
                forked.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(forked.pid, signal.SIGKILL)
                raise
            code = forked.returncode or 0
        else:
            torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(nproc)] if nproc else []
            code = subprocess.run(
                [command[0], *torchrun, *command[1:]], env=environment, cwd=folder, timeout=timeout,
                stdout=output, stderr=errors, text=True, check=False,
            ).returncode  # fmt: skip
        return subprocess.CompletedProcess(command, code, _all(output), _all(errors))


@cache
def torch_npu() -> TorchNpu:
    """The torch_npu for this interpreter, with its driver. The test is skipped where it is not there."""
    options = RunOptions("", (), sys.executable)
    try:
        found = torch_npu_of(options, interpreter.versions_of(sys.executable), ROOT)
    except UsageError as why:
        pytest.skip(str(why))
    assert found is not None
    return found


def in_words_of_cann(error: str) -> str:
    """The text of an error without what torch_npu puts around CANN's words."""
    around = r"^[^\n]*NPU function error: (call \w+ failed, error code is \d+)\n\[ERROR\][^\n]*\n"
    return re.sub(around, lambda found: "[emulated npu] " + (found[1] + ". " if "EZ1001" in error else ""), error)


def on_npus(
    script: Path, arguments: tuple[str, ...], folder: Path, nproc: int = 0, timeout: float = 500.0,
    **config: Any,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run `script` on the emulated NPU, with these settings of npu_emulator.config.Config, kept in `folder`."""
    return run(script, arguments, {**unmeasured(), **npu_environment(folder, **config)}, folder, nproc, timeout)


def npu_environment(folder: Path, **config: Any) -> dict[str, str]:
    """The variables of a process on the emulated NPU, with these settings, kept in `folder`."""
    settings = folder / "config.json"
    own = torch_npu()
    settings.write_text(json.dumps({"driver": own.driver, "needs": own.needs, **config}), encoding="utf-8")
    path = os.pathsep.join([own.wheel, str(SITE), str(CARD)])
    return {"PYTHONPATH": path, "TRANSPLT_EMULATOR": str(settings)}


def cache_of_its_own(folder: Path) -> Path:
    """A folder for XDG_CACHE_HOME that has nothing in it but the torch_npu of this machine's cache."""
    place = folder / "transplt" / "torch_npu"
    if not place.exists():
        place.parent.mkdir(parents=True)
        place.symlink_to(_WHEELS)
    return folder


def transplt_run(words: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """`transplt run` with these words, typed in `folder`: exit code, output and errors, those of the script too."""
    return transplt(["run", *words], folder)


def transplt(words: Sequence[str], folder: Path, path: str = "") -> tuple[int, str, str]:
    """The command line with these words, typed in `folder`: exit code, output and errors, those of scripts too.

    It runs in this process, which forks those of the script, but for launch scripts and modules, and where a test has a
    cache or a `path` of its own, where Python looks for modules first: no other test could use what forks for these.
    """
    environment = {**unmeasured(), **SHARED, "NO_COLOR": "1"}
    processes = warm() if cache_folder() / "torch_npu" == _WHEELS and not path else None
    if processes is None or any(word == "-m" or word.endswith(".sh") for word in words):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [path, str(ROOT)]))
        done = subprocess.run(
            [*measured_alone("transplt"), *words], cwd=folder, env={**os.environ, **environment},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr
    here = os.getcwd()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        os.chdir(folder)
        try:
            with (
                mock.patch.dict(os.environ, environment, clear=True),
                mock.patch.object(Warm, "__enter__", return_value=processes),
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(errors),
            ):
                if words[0] == "run":
                    code: int = run_command.main(list(words[1:]), "transplt run", standalone_mode=False, obj=processes)
                else:
                    code = cli.main(list(words), "transplt", standalone_mode=False)
        finally:
            os.chdir(here)
        return code, _all(output), _all(errors)


def _all(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
