"""transplt in a process of its own, with all that it starts: where it is found, where its output goes, how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import transplt

#: It finds what we have found, transplt itself first; nothing is imported from the folder in which it works.
_START = "import sys; sys.path[:] = {path!a}; from {module} import {function}; sys.exit({function}())"
_SIGNALS = (signal.SIGTERM, signal.SIGKILL) if sys.platform != "win32" else (signal.SIGTERM,)


@dataclass(slots=True)
class Child:
    """A process in a session of its own, and the files that it prints into."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    error: IO[bytes]

    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit code; None when it is still at work after so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def end(self, patience: float = 0) -> None:
        """Ends it and what it started, git included; for so many seconds it may clean up first."""
        for number in _SIGNALS if patience else _SIGNALS[-1:]:
            end_group(self.process.pid, number)
            if self.wait(patience or None) is not None:
                return

    def printed(self, most: int) -> bytes:
        """What it wrote to its standard output, so many bytes of it."""
        return _read(self.out, most)

    def errors(self, most: int) -> str:
        """What it wrote to stderr."""
        return _read(self.error, most).decode("utf-8", "backslashreplace")


@contextlib.contextmanager
def started(
    entry: str, arguments: Sequence[str], folder: str | Path, environment: Mapping[str, str], *, talks: bool = False
) -> Iterator[Child]:
    """`module:function` in a process that works in `folder`. OSError if it cannot be.

    One that `talks` has pipes as standard input and output; else the input is empty, and the output goes into a file.

    Who starts it ends it, or waits for it: here only its files are closed.
    """
    path = [os.path.abspath(each) for each in sys.path if each and os.path.isdir(each)]
    path.insert(0, str(Path(transplt.__file__).resolve().parent.parent))
    module, _, function = entry.partition(":")
    code = _START.format(path=list(dict.fromkeys(path)), module=module, function=function)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], cwd=folder, env={**os.environ, **environment},
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL, stdout=subprocess.PIPE if talks else out,
            stderr=error, start_new_session=True,
        )  # fmt: skip
        try:
            yield Child(process, out, error)
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def end_group(number: int, how: signal.Signals) -> None:
    """Sends a signal to a process that was started here, and to all of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(number, how)
        else:
            os.kill(number, how)


def _read(file: IO[bytes], most: int) -> bytes:
    file.seek(0)
    return file.read(most)


def end_with(life: int) -> None:
    """Ends this process, whatever it does, once the other end of a pipe is closed: with the process that holds it.

    The system does it (fcntl(2), `O_ASYNC`; the default action of SIGIO is to end): also while Python waits for a
    parser that never comes back.
    """
    if sys.platform != "linux":
        return
    import fcntl
    import select

    signal.signal(signal.SIGIO, signal.SIG_DFL)
    # Opened anew: what is set holds for all processes that have inherited one opening.
    own = os.open(f"/proc/self/fd/{life}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(own, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:  # it was closed before
        os._exit(1)
    os.close(life)


def leave_signals() -> None:
    """In a worker: the process that started it hears of Ctrl-C and ends it, without a traceback for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
