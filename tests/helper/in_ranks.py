"""Functions of tests that run in several processes at once, as `torchrun` would start them.

`each_rank(function, world)` runs `function(*arguments)` in so many processes, forked from one that has imported torch,
on the CPU (gloo) or on the emulated NPU (hccl), and gives what each returned. The function may use `torch`, `npu_port`
and what else it imports; it stands at the top of its test file, which imports no torch.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked import npu_environment

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("start", "ranks", "draws", "loaders", "models", "gradients", "values", "host", "checks")
#: How long the other ranks may go on when one has failed, and how long all may take, in seconds.
GRACE, LIMIT = 3.0, 60.0
#: The processes that fork, by the test process and the host.
_SERVERS: dict[tuple[int, str], subprocess.Popen[str]] = {}


class _Lazy:
    """A module that is imported when something of it is used."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __getattr__(self, name: str) -> Any:
        for module in map(importlib.import_module, self.names):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


torch = _Lazy("torch")
#: What a migrated project calls.
npu_port = _Lazy(*(f"transplt.helper.{name}" for name in MODULES))


@dataclass(frozen=True)
class Ended:
    """How the processes ended: exit codes (None: it had to be stopped), what they printed, and seconds."""

    codes: list[int | None]
    outputs: list[str]
    results: list[Any]
    seconds: float


def each_rank(
    function: Callable[..., Any],
    world: int,
    *arguments: Any,
    host: str = "cpu",
    seeds: Sequence[int] | None = None,
    launched: bool = True,
) -> list[Any]:
    """What `function` returned on each rank; every rank begins with random numbers of its own, or these seeds."""
    ended = run_ranks(function, world, *arguments, host=host, seeds=seeds, launched=launched)
    assert ended.codes == [0] * world, "\n".join(ended.outputs)
    return ended.results


def run_ranks(
    function: Callable[..., Any],
    world: int,
    *arguments: Any,
    host: str = "cpu",
    seeds: Sequence[int] | None = None,
    launched: bool = True,
) -> Ended:
    """As `each_rank`, however they end. `launched=False` leaves out torchrun's variables."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ranks-") as place:
        task = {
            "file": function.__code__.co_filename, "function": function.__name__, "world": world, "place": place,
            "seeds": list(seeds or range(1000, 1000 + world)), "launched": launched,
        }  # fmt: skip
        Path(place, "arguments").write_bytes(pickle.dumps(arguments))
        server = _server(host)
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(task) + "\n")
        server.stdin.flush()
        codes = json.loads(server.stdout.readline())
        outputs = [Path(place, f"{rank}.out").read_text(encoding="utf-8") for rank in range(world)]
        files = [Path(place, str(rank)) for rank in range(world)]
        results = [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]
    return Ended(codes, outputs, results, time.monotonic() - begun)


def _server(host: str) -> subprocess.Popen[str]:
    if (os.getpid(), host) not in _SERVERS:
        gone = ("COVERAGE_PROCESS", "TRANSPLT_EMULATOR", "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(gone)}
        environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        if host == "npu":
            settings = tempfile.TemporaryDirectory(prefix="ranks-")  # to the end of this process
            atexit.register(settings.cleanup)
            of_npus = npu_environment(Path(settings.name))
            environment |= {**of_npus, "PYTHONPATH": f"{ROOT}{os.pathsep}{of_npus['PYTHONPATH']}"}
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.helper.in_ranks", host], cwd=ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        _SERVERS[os.getpid(), host] = server
        atexit.register(_close, server)
    return _SERVERS[os.getpid(), host]


def _close(server: subprocess.Popen[str]) -> None:
    """The server ends with its input."""
    if server.stdin:
        server.stdin.close()
    server.wait()


def _serve(host: str) -> None:
    """Read a task a line, fork its ranks, and print their exit codes."""
    for name in ("pytest", "numpy", "torch.distributed", "torch._dynamo"):  # the first optimizer imports the last
        importlib.import_module(name)
    if host == "npu":
        importlib.import_module("torch_npu")
    gc.freeze()  # or a collection in a forked process would copy all of it
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(_ended(json.loads(line))), flush=True)


def _ended(task: dict[str, Any]) -> list[int | None]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = {}
    for rank in range(task["world"]):
        pid = os.fork()
        if pid == 0:
            _be(rank, port, task)
        children[pid] = rank
    return _wait(children)


def _wait(children: dict[int, int]) -> list[int | None]:
    codes: list[int | None] = [None] * len(children)
    until = time.monotonic() + LIMIT
    running = dict(children)
    while running and time.monotonic() < until:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in running:
            code = codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)
            until = min(until, time.monotonic() + GRACE) if code else until
        else:
            time.sleep(0.003)
    for pid in running:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return codes


def _be(rank: int, port: int, task: dict[str, Any]) -> None:
    """One rank, from its beginning to its end, as an interpreter would run it."""
    os.setpgid(0, 0)
    output = os.open(os.path.join(task["place"], f"{rank}.out"), os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if task["launched"]:
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(task["world"]), MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )  # fmt: skip
    torch.manual_seed(task["seeds"][rank])
    random.seed(rank)
    sys.modules["numpy"].random.seed(rank)
    code = 0
    try:
        os.chdir(task["place"])
        spec = importlib.util.spec_from_file_location("test_in_rank", task["file"])
        assert spec and spec.loader
        module = sys.modules["test_in_rank"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        result = getattr(module, task["function"])(*pickle.loads(Path("arguments").read_bytes()))
        Path(str(rank)).write_bytes(pickle.dumps(result))
        npu_port.wait()  # a rank that ends closes connections
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException as error:
        code = 1
        sys.last_value = error
        traceback.print_exc()
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
