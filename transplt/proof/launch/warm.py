"""Processes with torch in them, which fork those of the runs: the import is most of what a short run costs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

#: What torch_npu reads when it is loaded begins so.
_READ_AT_LOAD = ("ACL_", "ASCEND_", "HCCL_", "PYTORCH_NPU_", "TASK_QUEUE_", "TORCH_NPU_")
_CODE = "from npu_emulator import warm; warm.main()"


class Forked:
    """A run that was forked, as far as `subprocess.Popen` is asked for it: its pid leads a session of its own."""

    def __init__(self, connection: socket.socket, command: list[str]) -> None:
        self.args = command
        self.returncode: int | None = None
        self._connection = connection
        self._read = b""
        self.pid = int(self._line(30.0))

    def wait(self, timeout: float | None = None) -> int:
        """The exit status (negative: a signal). subprocess.TimeoutExpired when the time is over."""
        if self.returncode is None:
            self.returncode = int(self._line(timeout) or -9)
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _line(self, timeout: float | None) -> bytes:
        end = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._read:
            self._connection.settimeout(None if end is None else max(end - time.monotonic(), 0.001))
            try:
                more = self._connection.recv(64)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            if not more:
                return b""
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line


class Warm:
    """`with Warm() as warm:` starts such a process for each kind of host when it is first asked for, and ends all."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="transplt-warm-")
        self._waiting: dict[tuple[str, ...], tuple[subprocess.Popen[bytes], str]] = {}
        self._begins = threading.Lock()  # two runs at once wait for one process

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process, _ in self._waiting.values()]

    def close(self) -> None:
        """End the processes that wait; runs that they forked have ended, or are ended by who began them."""
        for process, place in self._waiting.values():
            process.kill()
            process.wait()
            Path(place).unlink(missing_ok=True)
        self._waiting.clear()
        with contextlib.suppress(OSError):
            os.rmdir(self._folder)

    def start(
        self, command: list[str], nproc: int, folder: str, environment: dict[str, str], output: int, errors: int
    ) -> Forked | None:
        """Fork a run of `command` (interpreter, script, arguments) with `nproc` ranks (0: one without torchrun's).

        None where there is no process to fork it, so that it has to be started otherwise.
        """
        settings = [environment.get(name, "") for name in ("PYTHONPATH", "PYTHONHASHSEED", "OMP_NUM_THREADS")]
        settings += sorted(f"{name}={value}" for name, value in environment.items() if name.startswith(_READ_AT_LOAD))
        with self._begins:
            place = self._begun((command[0], *settings), command[0], environment)
        if place is None:
            return None
        _, script, *arguments = command
        run = {
            "script": script, "arguments": arguments, "nproc": nproc, "folder": folder, "environment": environment,
        }  # fmt: skip
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(place)
            message = json.dumps(run).encode()
            socket.send_fds(connection, [f"{len(message):8}".encode()], [output, errors])
            connection.sendall(message)
            return Forked(connection, command)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            connection.close()
            return None

    def _begun(self, key: tuple[str, ...], python: str, environment: dict[str, str]) -> str | None:
        if key not in self._waiting:
            place = str(Path(self._folder) / str(len(self._waiting)))
            process = subprocess.Popen(
                [python, "-c", _CODE], env={**environment, "TRANSPLT_WARM": place}, cwd=self._folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            self._waiting[key] = (process, place)
            while process.poll() is None and not os.path.exists(place):
                time.sleep(0.05)
        process, place = self._waiting[key]
        return place if process.poll() is None else None
