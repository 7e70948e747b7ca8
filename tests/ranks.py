"""Runs a migrated script with several processes, and compares what their optimizers did, step by step.

`run_ranks(folder, script, arguments, world=2)` starts the processes as torchrun would, each on the emulated NPU, and
reads what `tests/ranks_site/sitecustomize.py` wrote down in them: the sums of all parameters of every optimizer after
each step. `Ranks.faults()` are the sentences that say what is wrong; `differences(one, several)` compares one process
with several that got the same global batch. Nothing here asks the emulator what it thinks of the run.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "tests" / "ranks_site"
#: Sum, weighted sum and sum of absolute values of each parameter, after one step.
Sums = list[list[float]]
#: Float32 sums in another order, carried on over some ten steps; relative to the sum of absolute values.
ORDER = 5e-5
#: How long the others may go on when one process has failed.
_GRACE = 5.0
_LOST = ("Connection closed by peer", "Connection reset by peer")


@dataclass(frozen=True)
class Process:
    """One process of the script. `steps` holds the sums after each step, by optimizer; `skipped` counts those that a
    GradScaler left out; `groups` the process groups that began; `written` are files of the folder that it began anew;
    `code` is the exit code, None where it was stopped."""

    rank: int
    code: int | None
    output: str
    steps: dict[int, list[Sums]] = field(default_factory=dict)
    skipped: dict[int, int] = field(default_factory=dict)
    groups: int = 0
    alive: Sums = field(default_factory=list)
    written: frozenset[str] = frozenset()
    stack: str = ""

    def last_lines(self, number: int = 6) -> str:
        """Where it hung, or the end of what it printed."""
        # What the emulator has to say comes last and is not asked.
        printed = self.output.partition("\ntransplt run: ")[0].strip()
        return self.stack.strip() or "\n".join(printed.splitlines()[-number:])


@dataclass(frozen=True)
class Ranks:
    """One run of a script; `processes` by rank, those that it spawned itself included."""

    processes: list[Process]
    seconds: float
    timed_out: bool

    @property
    def failure(self) -> str:
        """The rank that failed first, or those that hang, with their last lines; empty when all ended well."""
        # A rank that lost the connection to one that failed tells less than that one.
        for process in sorted(self.processes, key=lambda process: any(word in process.output for word in _LOST)):
            if process.code is not None and process.code != 0 and not process.stack:
                return f"rank {process.rank} ended with {process.code}:\n{process.last_lines()}"
        if self.timed_out:
            return "\n".join(f"rank {process.rank} hangs:\n{process.last_lines()}" for process in self.processes)
        return "".join(f"rank {process.rank} was stopped" for process in self.processes if process.code != 0)

    @property
    def stepped(self) -> bool:
        """Whether any optimizer took a step."""
        return any(steps for process in self.processes for steps in process.steps.values())

    def faults(self) -> list[str]:
        """How the ranks differ, in the number of steps or in a parameter: the first place of each optimizer."""
        if self.failure:
            taken = {process.rank: sum(map(len, process.steps.values())) for process in self.processes}
            return [f"{self.failure}\nsteps taken by rank: {taken}"]
        first, *others = self.processes
        found = []
        for other in others:
            for number in sorted({*first.steps, *other.steps}):
                mine, theirs = first.steps.get(number, []), other.steps.get(number, [])
                label = f"optimizer {number}, ranks {first.rank} and {other.rank}"
                if len(mine) != len(theirs):
                    found.append(f"{label}: {len(mine)} and {len(theirs)} steps")
                left, right = first.skipped.get(number, 0), other.skipped.get(number, 0)
                if left != right:
                    found.append(f"{label}: {left} and {right} steps left out by the scaler")
                found += [f"{label}: {sentence}" for sentence in _apart(mine, theirs, 1e-9)]
            if not first.steps and not other.steps and _unlike(first.alive, other.alive, 1e-9):
                found.append(f"ranks {first.rank} and {other.rank} end with different parameters")
        return found

    def written_by_several(self) -> list[str]:
        """Files of the folder that more than one rank began anew."""
        every = [path for process in self.processes for path in process.written]
        return sorted({path for path in every if every.count(path) > 1})

    def final(self) -> list[float]:
        """All sums of rank 0 after the last steps, one after the other."""
        process = self.processes[0]
        last = [steps[-1] for _, steps in sorted(process.steps.items()) if steps] or [process.alive]
        return [value for sums in last for row in sums for value in row]


def differences(one: Ranks, several: Ranks, tolerance: float = ORDER) -> list[str]:
    """How several processes trained otherwise than one; both got the same global batches."""
    mine, theirs = one.processes[0], several.processes[0]
    found = []
    for number in sorted({*mine.steps, *theirs.steps}):
        left, right = mine.steps.get(number, []), theirs.steps.get(number, [])
        label = f"optimizer {number}, one process and {len(several.processes)}"
        if len(left) != len(right):
            found.append(f"{label}: {len(left)} and {len(right)} steps")
        found += [f"{label}: {sentence}" for sentence in _apart(left, right, tolerance)]
    return found


def _apart(mine: list[Sums], theirs: list[Sums], tolerance: float) -> Iterator[str]:
    for step, (left, right) in enumerate(zip(mine, theirs, strict=False), 1):
        wrong = _unlike(left, right, tolerance)
        if wrong:
            yield f"parameters differ after step {step}: {wrong}"
            return


def _unlike(mine: Sums, theirs: Sums, tolerance: float) -> str:
    if len(mine) != len(theirs):
        return f"{len(mine)} and {len(theirs)} of them"
    for place, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        bound = tolerance * max(abs(left[2]), 1e-3)
        # A NaN is like nothing, so it is looked for by what holds, not by what does not.
        if not all(abs(a - b) <= bound for a, b in zip(left, right, strict=True)):
            return f"number {place} has the sums {left[:2]} and {right[:2]}"
    return ""


def run_ranks(
    folder: Path,
    script: str,
    arguments: Sequence[str] = (),
    *,
    world: int = 1,
    plain: bool = False,
    even: bool = False,
    batch_times: int = 1,
    timeout: float = 120,
    grouped: bool = True,
    seed: int = 0,
) -> Ranks:
    """Run `script` of `folder` with `world` processes, in that folder.

    `plain` takes away dropout and shuffling, `even` also what batch norms and draws do by their share of a batch;
    `batch_times` multiplies the batch size of loaders. `grouped=False` starts one process without the variables of
    torchrun, for a script that starts the others itself. Where the script does not seed, the generators of each rank
    begin at `seed` and its number.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as records:
        port = free_port()
        started: list[_Start] = []
        for rank in range(world):
            place = Path(records) / str(rank)
            place.mkdir()
            environment = _environment(place, plain, even, batch_times, timeout) | {"RANKS_SEED": str(seed)}
            if grouped:
                environment |= {
                    "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world),
                    "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                }  # fmt: skip
                started.append(_forked(folder, script, arguments, environment, place))
            else:
                started.append(_started(folder, script, arguments, environment, place))
        timed_out = _wait(started, begun + timeout + 15)
        processes: list[Process] = []
        for rank, start in enumerate(started):
            processes += _processes(start.place, rank, start.code(), grouped)
        hung = timed_out or any(process.stack for process in processes)
        return Ranks(sorted(processes, key=lambda process: process.rank), time.monotonic() - begun, hung)


@dataclass(frozen=True)
class _Start:
    """A process of its own, or one that the warm server forked; `place` is the folder of its records."""

    place: Path
    process: subprocess.Popen[bytes] | None = None

    def code(self) -> int | None:
        """The exit code of the script, not of the emulator with its findings; None while it runs or was stopped."""
        if self.process is None:
            code = self._number("code")
            return None if code == -signal.SIGKILL else code
        code = self.process.poll()
        report = self.place / "report.json"
        if code is not None and code >= 0 and report.is_file():
            return int(json.loads(report.read_text(encoding="utf-8"))["script_exit_code"])
        return None if code == -signal.SIGKILL else code

    def stop(self) -> None:
        number = self.process.pid if self.process else self._number("pid")
        if number:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(number, signal.SIGKILL)
        if self.process:
            self.process.wait()

    def _number(self, name: str) -> int | None:
        path = self.place / name
        return int(path.read_text(encoding="utf-8")) if path.is_file() else None


_EMULATOR = [sys.executable, "-m", "transplt.proof", "--cpu-fallback", "ignore"]
#: The server of this process, by the process that started it: a worker that was forked needs its own.
_SERVERS: dict[int, subprocess.Popen[bytes]] = {}


def _environment(place: Path, plain: bool, even: bool, batch_times: int, timeout: float) -> dict[str, str]:
    environment = {
        "RANKS_RECORDS": str(place),
        "RANKS_SECONDS": str(timeout),
        "RANKS_BATCH_TIMES": str(batch_times),
    }
    return environment | ({"RANKS_PLAIN": "1"} if plain else {}) | ({"RANKS_EVEN": "1"} if even else {})


def _clean() -> dict[str, str]:
    """The environment without what a run sets, and without the measuring of lines."""
    gone = ("COVERAGE_PROCESS", "RANKS_", "RANK", "LOCAL_", "WORLD_SIZE", "MASTER_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(gone)}
    path = f"{SITE}{os.pathsep}{ROOT}"
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}


def _started(
    folder: Path, script: str, arguments: Sequence[str], environment: dict[str, str], place: Path
) -> _Start:
    # The exit code is to be the script's: what else the emulator finds is not asked here.
    command = [*_EMULATOR, "--report", str(place / "report.json"), script, *arguments]
    with open(place / "output", "wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=_clean() | environment, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    return _Start(place, process)


def _forked(folder: Path, script: str, arguments: Sequence[str], environment: dict[str, str], place: Path) -> _Start:
    server = _SERVERS.get(os.getpid())
    if server is None or server.poll() is not None:
        command = [*_EMULATOR, str(SITE / "warm.py")]
        server = subprocess.Popen(
            command, env=_clean(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _SERVERS[os.getpid()] = server
        atexit.register(_end, server)
    task = {
        "place": str(place), "folder": str(folder), "script": script, "arguments": list(arguments),
        "environment": environment,
    }  # fmt: skip
    assert server.stdin is not None
    server.stdin.write(json.dumps(task).encode() + b"\n")
    server.stdin.flush()
    return _Start(place)


def _end(server: subprocess.Popen[bytes]) -> None:
    """The server ends with its input."""
    if server.stdin is not None:
        server.stdin.close()
    server.wait()


def _wait(started: list[_Start], until: float) -> bool:
    """Wait for all; when one has failed the others get some seconds. True when the time was over."""
    failed = False
    while any(start.code() is None for start in started):
        if not failed and any(start.code() for start in started):
            failed, until = True, time.monotonic() + _GRACE
        if time.monotonic() > until:
            for start in started:
                if start.code() is None:
                    start.stop()
            return not failed
        time.sleep(0.05)
    return False


def _processes(place: Path, rank: int, code: int | None, grouped: bool) -> Iterator[Process]:
    """The processes of one start that stepped, or the script's own."""
    printed = place / "output"
    output = printed.read_text(encoding="utf-8", errors="replace") if printed.is_file() else ""
    stacks = "\n".join(path.read_text(encoding="utf-8").strip() for path in sorted(place.glob("*.stack"))).strip()
    kept = []
    for path in sorted(place.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]
        kept.append(_process(events, rank, code, output, stacks))
    working = [process for process in kept if process.steps or process.groups]
    if grouped or not working:
        # Workers of a loader and other children do not train.
        best = max(kept, key=lambda process: (bool(process.steps), process.groups, len(process.alive)), default=None)
        yield best or Process(rank, code, output, stack=stacks)
    else:
        yield from working


def _process(events: list[dict[str, Any]], rank: int, code: int | None, output: str, stack: str) -> Process:
    steps: dict[int, list[Sums]] = {}
    skipped: dict[int, int] = {}
    alive: Sums = []
    written: set[str] = set()
    groups = 0
    for event in events:
        rank = max(rank, event["rank"]) if event["event"] == "step" else rank
        if event["event"] == "step":
            steps.setdefault(event["optimizer"], []).append(event["sums"])
        elif event["event"] == "skipped":
            skipped[event["optimizer"]] = skipped.get(event["optimizer"], 0) + 1
        elif event["event"] == "group":
            groups += 1
        elif event["event"] == "wrote":
            written.add(event["path"])
        else:
            alive = event["alive"]
    return Process(rank, code, output, steps, skipped, groups, alive, frozenset(written), stack)


def free_port() -> int:
    """A port of this machine that nobody has taken."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
