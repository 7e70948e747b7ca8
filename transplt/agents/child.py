"""Starts a command of transplt in a process of its own: with a time limit, and without a way to our standard output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from transplt.errors import CannotFinish, reason

if TYPE_CHECKING:
    from anyio.abc import Process

#: The package that runs is the one that is started, and nothing in the folder where it works is imported.
_START = "import sys; sys.path[0] = {above!r}; from transplt.commands.main import entry_point; sys.exit(entry_point())"
_ABOVE = str(Path(__file__).resolve().parents[2])
#: Seconds that a process gets to clean up after SIGTERM.
_PATIENCE = 10.0
#: So much of what a command prints is kept; no JSON of a check is as large.
_MOST_BYTES = 256 * 1024 * 1024
_MOST_ERROR = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, what it printed, and what it said on stderr. `late`: it was stopped."""

    code: int
    out: bytes
    said: str
    late: bool = False


#: Process groups of the commands that are at work.
_RUNNING: set[int] = set()

#: Starts `transplt ARGUMENTS` in a folder, for so many seconds at most.
Start = Callable[[Sequence[str], Path, float], Awaitable[Ended]]


async def start(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
    """Runs the command to its end. CannotFinish when it cannot be started; it is ended, too, when we are cancelled."""
    import anyio

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        command = [sys.executable, "-c", _START.format(above=_ABOVE), *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        try:
            process = await anyio.open_process(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=error, cwd=folder, start_new_session=True,
                env={**environment, "NO_COLOR": "1"},
            )  # fmt: skip
        except OSError as why:
            raise CannotFinish(f"cannot start transplt: {reason(why)}") from why
        late = True
        _RUNNING.add(process.pid)
        try:
            with anyio.move_on_after(seconds):
                await process.wait()
                late = False
        finally:
            if process.returncode is None:
                await _end(process)
            _RUNNING.discard(process.pid)
        return Ended(process.returncode or 0, _read(out, _MOST_BYTES), _text(_read(error, _MOST_ERROR)), late)


def end_all() -> None:
    """Asks all commands that are at work to end; each cleans up by itself."""
    for group in _RUNNING:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)


async def _end(process: Process) -> None:
    """Ends a process and what it started: first it may clean up."""
    import anyio

    with anyio.CancelScope(shield=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with anyio.move_on_after(_PATIENCE):
                await process.wait()
                return


def _read(file: IO[bytes], most: int) -> bytes:
    file.seek(0)
    return file.read(most)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
