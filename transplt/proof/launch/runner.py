"""Starts a script with the emulated NPU on its path, and gathers what its processes recorded."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from transplt.base.errors import shown
from transplt.base.render.cell import many
from transplt.proof.launch.card_list import put_card_list
from transplt.proof.launch.edits import EditedFile
from transplt.proof.launch.hangs import Watch
from transplt.proof.launch.options import RunOptions, Trace, UsageError
from transplt.proof.launch.ranks import Waits, lives, place, with_endings
from transplt.proof.launch.warm import Forked, Warm
from transplt.rules.own_card import own_errors

_Process = subprocess.Popen[bytes] | Forked

_EMULATOR = Path(__file__).parents[2] / "emulator"
SITE = _EMULATOR / "site"
#: What the vendor's torch_npu needs on the path besides.
CARD = _EMULATOR / "card"
#: What goes on the path of a process, by the host that it is to find: "cpu" is the machine as it is, without GPUs.
SITES = {"npu": SITE, "cuda": _EMULATOR / "site_cuda", "cpu": None}
#: How often the traces of a running script are looked at, in seconds.
_LOOK = 0.5
#: Asks a process for its stacks. Scripts use the named ones for themselves.
STACK_SIGNAL = int(getattr(signal, "SIGRTMAX", signal.SIGUSR2 + 1)) - 1
READY_STUBS = SITE / "npu_emulator" / "ready_stubs"
#: After so many seconds of a traced run, again and again, the user is told how far it is.
_TELLS = 30.0
#: What is kept of the end of standard error, in bytes.
_MOST_ERRORS = 8192
#: The runs that are going on, of all threads.
_running: set[_Process] = set()


@dataclass(frozen=True)
class ScriptRun:
    """What became of one start of the script. `code` is the exit status (negative: a signal), `output` its standard
    output where that was captured, `errors` the end of standard error where nobody else saw it, `processes` the records
    of all its processes, `traces` the events of each; `hung`: its ranks waited for one another, and it was stopped;
    `waits` are sentences on ranks that waited for long."""

    code: int
    processes: tuple[dict[str, Any], ...]
    seconds: float
    output: str = ""
    timed_out: bool = False
    traces: tuple[list[dict[str, Any]], ...] = ()
    hung: bool = False
    errors: str = ""
    waits: tuple[str, ...] = ()


def ready_stubs() -> dict[str, str]:
    """The stub files that come with the emulator, and the line that says what each stands for."""
    files = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(READY_STUBS.glob("*.py"))}
    return {name: (ast.get_docstring(tree) or "").partition("\n")[0] for name, tree in files.items()}


def emulated_packages() -> list[str]:
    """The packages that the emulator stands in for where the environment has none of that name."""
    return sorted(path.name for path in (SITE / "npu_emulator" / "packages").iterdir() if path.name.isidentifier())


def command_line(options: RunOptions) -> list[str]:
    """What is executed: the script itself, the interpreter with it, or torchrun with it."""
    target = ["-m", options.script] if options.module else [options.script]
    if options.shell:
        return ["bash", options.script, *options.arguments]
    if options.nproc:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(options.nproc)]
        return [options.python, *launcher, *target, *options.arguments]
    return [options.python, *target, *options.arguments]


def start(
    options: RunOptions,
    edited: tuple[EditedFile, ...] = (),
    *,
    cuda: str | None = None,
    capture: bool = False,
    echo: bool = True,
    host: str = "npu",
    warm: Warm | None = None,
) -> ScriptRun:
    """Run the script to its end. `cuda` overrides the option (reference runs); `capture` keeps its output; `host` is
    one of SITES; `warm` forks the processes of a script where it can."""
    options = options if host == "npu" else replace(options, torch_npu=None, compiled=False)
    with tempfile.TemporaryDirectory(prefix="transplt-run-", ignore_cleanup_errors=True) as folder:
        records = Path(folder) / "records"
        records.mkdir()
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(_config(options, edited, records, cuda)), encoding="utf-8")
        environment = _environment(options, config, host)
        if options.shell and host == "npu":
            # A launch script counts the cards; what the machine itself has is no part of the emulated host.
            environment["PATH"] = f"{put_card_list(Path(folder), options.npus)}{os.pathsep}{environment['PATH']}"
        begun = time.monotonic()
        errors = None if echo else Path(folder) / "errors"
        waits = Waits(records, _ask_for_stacks)
        ended = _execute(command_line(options), environment, options, waits, capture, errors, warm)
        # A process that outlived the script (a worker whose parent was stopped) writes its record no more: it would do
        # so in the middle of our reading, or of deleting the folder.
        complete = records.rename(Path(folder) / "complete")
        processes = with_endings(_record(path, waits.heard) for path in sorted(complete.glob("*.json")))
        traces = tuple(
            # The last line of a process that was killed may be cut.
            [json.loads(line) for line in path.read_text("utf-8", "replace").splitlines() if line.endswith("}")]
            for path in sorted(complete.glob("*.trace"))
        )
        shutil.rmtree(complete, ignore_errors=True)  # a first time: what was being made meanwhile goes with `folder`
        seconds = time.monotonic() - begun
        told = errors.read_bytes()[-_MOST_ERRORS:].decode("utf-8", "replace") if errors is not None else ""
        waited = tuple(waits.told)
        return replace(ended, processes=processes, seconds=seconds, traces=traces, errors=told, waits=waited)


def _record(path: Path, heard: dict[str, int]) -> dict[str, Any]:
    """What a process wrote of itself; `stack` is what it wrote of where it stood, "" of one that ended by itself, and
    without what was `heard` while it ran; `place` is where it was seen last, None of one that was no rank."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    stack, last = path.with_suffix(".stack"), place(path.with_suffix(".place"))
    text = ""
    if record["status"] == "running" and stack.is_file():
        text = stack.read_text(encoding="utf-8", errors="replace")
        text = text.partition("\n")[0] + "\n" + text[heard[path.stem] :] if path.stem in heard else text
    if last is not None and record["rank"] is None and last["world"] > 1:
        record["rank"] = last["rank"]
    return {**record, "stack": text, "place": last}


def _config(options: RunOptions, edited: tuple[EditedFile, ...], records: Path, cuda: str | None) -> dict[str, Any]:
    """The fields of npu_emulator.config.Config."""
    return {
        "npus": options.npus,
        "torch_version": options.torch_version,
        "card": options.card,
        "own": own_errors(options.card, options.torch_version),
        "cuda": cuda or ("off" if options.redirected else options.cuda),
        "random": options.random,
        "probes": "info" if options.portable else "warning",
        "cpu_fallback": options.cpu_fallback if cuda is None else "ignore",
        "shapes": options.shapes and cuda is None,
        "saves": options.reference is not None or options.trace is not None,
        "records": str(records),
        "stack_signal": STACK_SIGNAL,
        "stubs": [stub_of(name)[0] for name in options.stubs],
        "pictures": {path: count for path, count in map(stub_of, options.stubs) if count},
        "watch": {os.path.realpath(file.path): file.watched for file in edited},
        "trace": _trace(options.trace, records.parent) if options.trace is not None else None,
        "dump": options.dump.as_config() if options.dump is not None and cuda is None else None,
        "driver": options.torch_npu.driver if options.torch_npu is not None else "",
        "needs": options.torch_npu.needs if options.torch_npu is not None else "",
        "redirected": options.redirected,
        "compile": options.compiled and cuda is None,
        "models": options.models,
    }


def _trace(trace: Trace, folder: Path) -> dict[str, Any]:
    replay = folder / "replay.json"
    if trace.replay is not None:
        replay.write_text(json.dumps(trace.replay), encoding="utf-8")
    return {
        "seed": trace.seed if trace.seeded else None, "steps": trace.steps, "detail": trace.detail,
        "replay": str(replay) if trace.replay is not None else "", "replay_all": trace.replay_all,
        "left_out": sorted(trace.left_out.items()),
        "shake": trace.shake, "again": trace.again, "lengths": sorted(trace.lengths.items()),
        "inserted": trace.inserted, "delays": trace.seed if trace.delayed else None,
    }  # fmt: skip


def stub_of(given: str) -> tuple[str, int]:
    """The file that `--stubs` means, and how many pictures each of its data sets has (0: as many as it likes)."""
    if Path(given).is_file():
        return str(Path(given).resolve()), 0
    name, equals, count = given.partition("=")
    if name not in ready_stubs():
        raise UsageError(f"--stubs {shown(given)}: neither a file nor a built-in stub ({', '.join(ready_stubs())}).")
    if equals and re.fullmatch("[1-9][0-9]{0,5}", count) is None:
        raise UsageError(f"--stubs {shown(given)}: write the number of images after =, such as {name}=256.")
    return str(READY_STUBS / f"{name}.py"), int(count or 0)


def _environment(options: RunOptions, config: Path, host: str) -> dict[str, str]:
    environment = dict(os.environ)
    site, own = SITES[host], options.torch_npu
    if site is not None:
        folders = [str(site)] if own is None else [own.wheel, str(site), str(CARD)]
        environment["PYTHONPATH"] = os.pathsep.join([*folders, *filter(None, [environment.get("PYTHONPATH")])])
    environment["PATH"] = (
        os.path.dirname(os.path.abspath(options.python)) + os.pathsep + environment.get("PATH", os.defpath)
    )
    environment["TRANSPLT_EMULATOR"] = str(config)
    if own is None:
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    else:
        environment.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)  # it loads itself, as on a card
    if options.trace is not None:
        # The order of sets of strings, or words would have other numbers in each run.
        environment["PYTHONHASHSEED"] = str(options.trace.seed)
        environment.setdefault("WANDB_MODE", "disabled")  # it asks for a key, and these runs are none to keep
    elif options.dump is not None:
        environment["PYTHONHASHSEED"] = str(options.dump.seed)
    if host == "cuda":
        environment.pop("CUDA_VISIBLE_DEVICES", None)  # of the machine, and not of the emulated cards
    else:
        if options.trace is not None:  # a proof gives both programs all cards
            environment.pop("ASCEND_RT_VISIBLE_DEVICES", None)
        environment["CUDA_VISIBLE_DEVICES"] = ""  # a machine with GPUs looks like one without, as an NPU host does
    environment.pop("PYTHONSAFEPATH", None)
    if options.threads:
        environment |= {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return environment


def _execute(
    command: list[str],
    environment: dict[str, str],
    options: RunOptions,
    waits: Waits,
    capture: bool,
    errors: Path | None,
    warm: Warm | None,
) -> ScriptRun:
    sys.stdout.flush()
    process, output = None, None
    with contextlib.nullcontext() if errors is None else errors.open("wb") as stderr:
        if warm is not None and not options.module and not options.shell:
            process, output = _fork(environment, options, capture, stderr, warm)
        if process is None:
            process, output = _begin(command, environment, options, capture, stderr)
    lines: list[bytes] = []
    reader = None
    if output is not None:
        reader = threading.Thread(target=_copy, args=(output, lines, errors is None), daemon=True)
        reader.start()
    timed_out = hung = False
    _running.add(process)
    try:
        look = _counting(Watch(waits.records)) if options.trace is not None else _telling(waits, errors is None)
        hung = _wait_watching(process, options.timeout, look)
    except subprocess.TimeoutExpired:
        timed_out = True
        _ask_for_stacks([*waits.records.glob("*.stack")])
    except KeyboardInterrupt:
        _stop(process)
        raise
    finally:
        _running.discard(process)
    if timed_out or hung:
        _stop(process)
        for path in waits.records.glob("*.stack"):
            if lives(path):  # a rank that outlived its launcher: those of torchrun have sessions of their own
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(path.stem), signal.SIGKILL)
    if reader is not None:
        reader.join(5)
    printed = b"".join(lines).decode("utf-8", "replace")
    return ScriptRun(process.returncode or 0, (), 0.0, printed, timed_out, hung=hung)


def _begin(
    command: list[str], environment: dict[str, str], options: RunOptions, capture: bool, stderr: IO[bytes] | None
) -> tuple[_Process, IO[bytes] | None]:
    """Start the command: the process, and its output where that is captured."""
    try:
        process = subprocess.Popen(
            command, env=environment, cwd=options.folder or None,
            stdout=subprocess.PIPE if capture else None, stderr=stderr,
            start_new_session=options.timeout is not None or options.trace is not None,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}.") from error
    return process, process.stdout


def _fork(
    environment: dict[str, str], options: RunOptions, capture: bool, stderr: IO[bytes] | None, warm: Warm
) -> tuple[_Process | None, IO[bytes] | None]:
    """As `_begin`, by a process that has imported torch; (None, None) where that cannot be. Nothing is read from
    standard input."""
    command = [options.python, options.script, *options.arguments]
    with contextlib.ExitStack() as streams:
        read = write = None
        if capture:
            read, write = os.pipe()
            streams.callback(os.close, write)
        process = warm.start(
            command, options.nproc, options.folder or os.getcwd(), environment,
            sys.stdout.fileno() if write is None else write, (stderr or sys.stderr).fileno(),
        )  # fmt: skip
    if read is None:
        return process, None
    if process is None:
        os.close(read)
        return None, None
    return process, os.fdopen(read, "rb")


def _telling(waits: Waits, echo: bool) -> Callable[[], bool]:
    """Says which ranks wait for long; they may be right to, so that nothing hangs for that."""

    def look() -> bool:
        told = waits.look()
        if told and echo:
            print(f"transplt run: {told}", file=sys.stderr, flush=True)
        return False

    return look


def _counting(watch: Watch) -> Callable[[], bool]:
    """Says how far a traced run is, again and again, and whether it hangs."""
    begun = time.monotonic()
    tells = begun + _TELLS

    def look() -> bool:
        nonlocal tells
        hung = watch.hung()
        if (now := time.monotonic()) >= tells:
            tells += _TELLS
            told = f"  {now - begun:.0f} s, {many(watch.steps, 'step')} of an optimizer so far"
            print(told, file=sys.stderr, flush=True)
        return hung

    return look


def _wait_watching(process: _Process, timeout: float | None, hangs: Callable[[], bool]) -> bool:
    """Wait for the end of a script, or until it hangs: True. TimeoutExpired when the time is over."""
    begun = time.monotonic()
    while True:
        left = timeout - (time.monotonic() - begun) if timeout is not None else _LOOK
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(min(left, _LOOK), 0.0))
            return False
        if left <= 0:
            raise subprocess.TimeoutExpired(process.args, timeout or 0.0)
        if hangs():
            return True


def _copy(stream: IO[bytes], lines: list[bytes], echo: bool) -> None:
    with stream:
        for line in stream:
            lines.append(line)
            if echo:
                sys.stdout.write(line.decode("utf-8", "replace"))
                sys.stdout.flush()


def _ask_for_stacks(files: list[Path], patience: float = 2.0) -> None:
    """Let the processes of these that still live write where they stand (see npu_emulator.stacks), which takes them no
    time."""
    asked: dict[Path, int] = {}
    for path in files:
        if lives(path):  # else it has ended, and the number may be another's by now
            asked[path] = path.stat().st_size
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(path.stem), STACK_SIGNAL)
    end = time.monotonic() + patience
    while time.monotonic() < end and any(path.stat().st_size == size for path, size in asked.items()):
        time.sleep(0.05)
    time.sleep(0.05)  # the last one may still be at it


def stop_all() -> None:
    """End the runs that go on in other threads, which see no interrupt."""
    for process in [*_running]:
        _stop(process)


def _stop(process: _Process) -> None:
    """End the script and, where it has a session of its own, the processes it started."""

    def send(number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)

    send(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        send(signal.SIGKILL)
        process.wait()
