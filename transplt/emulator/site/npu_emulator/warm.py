"""A process that has imported torch once, and forks a process for each run that is asked for.

What is imported is what every training imports, and nothing is computed before the fork; a forked process begins as
one that was started: with the settings, the environment, the arguments and the folder of its run. Several ranks are
forked with the variables that torchrun sets, and end together.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import multiprocessing.process
import os
import signal
import socket
import sys
import threading
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any, NoReturn

#: Names the socket, in the environment of the process that waits.
VARIABLE = "TRANSPLT_WARM"
#: Against which this process resolved the relative folders of PYTHONPATH; a run has one of its own.
_BEGAN_IN = os.getcwd()
#: That of the records writes one, which a process that only waits has not.
_leave = os._exit


def main() -> None:
    """Wait for runs until the parent is gone."""
    place = os.environ.pop(VARIABLE)
    import torch
    import torch._dynamo
    import torch.distributed  # noqa: F401

    server = socket.socket(socket.AF_UNIX)
    server.bind(place + ".part")
    server.listen()
    os.rename(place + ".part", place)  # it is there when it answers
    parent = os.getppid()
    gc.freeze()  # or a collection in a forked process would copy all of it
    server.settimeout(1.0)
    while os.getppid() == parent:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            asked = server.accept()[0]
        except TimeoutError:
            continue
        except OSError:
            return
        if not os.fork():
            server.close()
            _lead(asked)
        asked.close()


def _lead(asked: socket.socket) -> NoReturn:
    """Fork the processes of one run, and report how they end."""
    asked.setblocking(True)
    os.setsid()
    length, handles, _, _ = socket.recv_fds(asked, 8, 2)
    message = b""
    while len(message) < int(length):
        message += asked.recv(1 << 16)
    run: dict[str, Any] = json.loads(message)
    for handle, number in zip(handles, (1, 2), strict=True):
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(run["folder"])
    os.environ.clear()
    os.environ.update(run["environment"])
    ranks = [{}] if not run["nproc"] else _ranks(run["nproc"])
    children: dict[int, int] = {}
    for number, variables in enumerate(ranks):
        pid = os.fork()
        if not pid:
            asked.close()
            os.environ.update(variables)
            _to_its_end(run["script"], run["arguments"])
        children[pid] = number
    asked.sendall(f"{os.getpid()}\n".encode())
    code = _wait(children)
    with contextlib.suppress(OSError):
        asked.sendall(f"{code}\n".encode())
    _leave(0)


def _ranks(count: int) -> list[dict[str, str]]:
    """What torchrun sets for each of so many processes on one machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "ROLE_WORLD_SIZE": count, "GROUP_RANK": 0,
        "GROUP_WORLD_SIZE": 1, "ROLE_NAME": "default", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False", "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1,
    }  # fmt: skip
    each = ({**common, "RANK": rank, "LOCAL_RANK": rank, "ROLE_RANK": rank} for rank in range(count))
    return [{name: str(value) for name, value in variables.items()} for variables in each]


def _wait(children: dict[int, int]) -> int:
    """Wait for all; the exit status of the first that fails (negative: a signal), after which the others are ended."""
    code = 0
    several = len(children) > 1
    while children:
        pid, status = os.wait()
        if children.pop(pid, None) is None:
            continue
        ended = os.waitstatus_to_exitcode(status)
        if ended and not code:
            code = 1 if several else ended  # torchrun ends with 1
            _end(children)
    return code


def _end(children: dict[int, int]) -> None:
    """As torchrun ends the others: asked first, and made to after a while."""
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def kill() -> None:
        time.sleep(10)
        for pid in list(children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def _to_its_end(script: str, arguments: list[str]) -> NoReturn:
    """Run a script, and end as the interpreter does, but for taking all modules apart, which takes longer than many a
    script."""
    code = 0
    try:
        _begin(script, arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    vars(sys.modules["__main__"]).clear()  # files that the script left open are written
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    _leave(code & 0xFF)


def _begin(script: str, arguments: list[str]) -> None:
    """Be the process of a script: as the interpreter begins one, and to the script's own end."""
    from . import config
    from .record import record

    config.read_again()
    record.started = time.time()
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]
    sys.argv[:] = [script, *arguments]
    given = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and not os.path.isabs(each)]
    here = {os.path.normpath(os.path.join(_BEGAN_IN, each)): os.path.abspath(each) for each in given}
    sys.path[:] = [here.get(each, each) for each in sys.path]
    sys.path[0] = os.path.dirname(os.path.realpath(script))  # "" stands there, of `-c`
    try:
        from cuda_standin import start  # on the path of a CUDA host only
    except ImportError:
        from . import start  # type: ignore[no-redef]
    start.begin()
    module = ModuleType("__main__")
    path = os.path.abspath(script)
    loader = SourceFileLoader("__main__", path)
    vars(module).update(__file__=path, __loader__=loader, __cached__=None)
    sys.modules["__main__"] = module
    with open(path, "rb") as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), vars(module))
