"""Starts a script with the emulated NPU on its path, and gathers what its processes recorded."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from transplt.emulator.edits import EditedFile
from transplt.emulator.options import RunOptions, UsageError

SITE = Path(__file__).parent / "site"
#: What goes on the path of a process, by the host that it is to find: "cpu" is the machine as it is, without GPUs.
SITES = {"npu": SITE, "cuda": Path(__file__).parent / "site_cuda", "cpu": None}
READY_STUBS = SITE / "npu_emulator" / "ready_stubs"


@dataclass(frozen=True)
class ScriptRun:
    """What became of one start of the script. `code` is the exit status (negative: a signal), `output` its standard
    output where that was captured, `processes` the records of all its processes."""

    code: int
    processes: tuple[dict[str, Any], ...]
    seconds: float
    output: str = ""
    timed_out: bool = False


def ready_stubs() -> list[str]:
    """Names of the stub files that come with the emulator."""
    return sorted(path.stem for path in READY_STUBS.glob("*.py"))


def command_line(options: RunOptions, script: str | None = None) -> list[str]:
    """What is executed: the script itself, the interpreter with it, or torchrun with it."""
    target = ["-m", options.script] if options.module else [script or options.script]
    if options.shell and script is None:
        return ["bash", options.script, *options.arguments]
    if options.nproc:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(options.nproc)]
        return [options.python, *launcher, *target, *options.arguments]
    return [options.python, *target, *options.arguments]


def start(
    options: RunOptions,
    edited: tuple[EditedFile, ...] = (),
    *,
    script: str | None = None,
    cuda: str | None = None,
    capture: bool = False,
    echo: bool = True,
    host: str = "npu",
) -> ScriptRun:
    """Run the script to its end. `script` and `cuda` override the options (reference runs); `capture` keeps its
    output; `host` is one of SITES."""
    with tempfile.TemporaryDirectory(prefix="transplt-run-", ignore_cleanup_errors=True) as folder:
        records = Path(folder) / "records"
        records.mkdir()
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(_config(options, edited, records, cuda)), encoding="utf-8")
        begun = time.monotonic()
        code, output, timed_out = _execute(
            command_line(options, script), _environment(options, config, host), options.timeout, capture, echo
        )
        # A process that outlived the script (a worker whose parent was stopped) writes its record no more: it would do
        # so in the middle of our reading, or of deleting the folder.
        complete = records.rename(Path(folder) / "complete")
        processes = tuple(json.loads(path.read_text(encoding="utf-8")) for path in sorted(complete.glob("*.json")))
        shutil.rmtree(complete, ignore_errors=True)  # a first time: what was being made meanwhile goes with `folder`
        return ScriptRun(code, processes, time.monotonic() - begun, output, timed_out)


def _config(options: RunOptions, edited: tuple[EditedFile, ...], records: Path, cuda: str | None) -> dict[str, Any]:
    """The fields of npu_emulator.config.Config."""
    return {
        "npus": options.npus,
        "torch_version": options.torch_version,
        "cuda": cuda or options.cuda,
        "random": options.random,
        "probes": "info" if options.portable else "warning",
        "cpu_fallback": options.cpu_fallback if cuda is None else "ignore",
        "shapes": options.shapes and cuda is None,
        "saves": options.reference is not None,
        "records": str(records),
        "stubs": [_stub(name) for name in options.stubs],
        "watch": {os.path.realpath(file.path): file.watched for file in edited},
    }


def _stub(name: str) -> str:
    if Path(name).is_file():
        return str(Path(name).resolve())
    if name in ready_stubs():
        return str(READY_STUBS / f"{name}.py")
    raise UsageError(f"--stubs {name}: neither a file nor one of the ready stubs ({', '.join(ready_stubs())}).")


def _environment(options: RunOptions, config: Path, host: str) -> dict[str, str]:
    environment = dict(os.environ)
    site = SITES[host]
    if site is not None:
        inherited = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = str(site) + (os.pathsep + inherited if inherited else "")
    environment["PATH"] = (
        os.path.dirname(os.path.abspath(options.python)) + os.pathsep + environment.get("PATH", os.defpath)
    )
    environment["TRANSPLT_EMULATOR"] = str(config)
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    if host == "cuda":
        environment.pop("CUDA_VISIBLE_DEVICES", None)  # of the machine, and not of the emulated cards
    else:
        environment.pop("ASCEND_RT_VISIBLE_DEVICES", None)
        environment["CUDA_VISIBLE_DEVICES"] = ""  # a machine with GPUs looks like one without, as an NPU host does
    environment.pop("PYTHONSAFEPATH", None)
    return environment


def _execute(
    command: list[str], environment: dict[str, str], timeout: float | None, capture: bool, echo: bool
) -> tuple[int, str, bool]:
    sys.stdout.flush()
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE if capture else None,
            stderr=None if echo else subprocess.DEVNULL,
            start_new_session=timeout is not None,
        )
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}.") from error
    lines: list[bytes] = []
    reader = None
    if process.stdout is not None:
        reader = threading.Thread(target=_copy, args=(process.stdout, lines, echo), daemon=True)
        reader.start()
    timed_out = False
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        _stop(process)
    except KeyboardInterrupt:
        _stop(process)
        raise
    if reader is not None:
        reader.join(5)
    return process.returncode, b"".join(lines).decode("utf-8", "replace"), timed_out


def _copy(stream: IO[bytes], lines: list[bytes], echo: bool) -> None:
    with stream:
        for line in stream:
            lines.append(line)
            if echo:
                sys.stdout.write(line.decode("utf-8", "replace"))
                sys.stdout.flush()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the script and, where it has a session of its own, the processes it started."""

    def tell(number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)

    tell(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        tell(signal.SIGKILL)
        process.wait()
