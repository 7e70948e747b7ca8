"""Commands of transplt for tools: each in a process of its own, with a time limit, ended with the call that asked."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from transplt.base.disk.child import end_group, started
from transplt.base.errors import CannotFinish, reason

#: Seconds that a process gets to clean up after SIGTERM.
_PATIENCE = 10.0
#: So much of what a command prints is kept; no JSON of a check is as large.
_MOST_BYTES = 256 * 1024 * 1024
_MOST_ERROR = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, what it printed, and what it printed to stderr. `late`: it was stopped."""

    code: int
    out: bytes
    stderr: str
    late: bool = False


#: Processes of the commands that are at work.
_RUNNING: set[int] = set()

#: Told what a command says while it works; the call that asked sets it.
says: ContextVar[Callable[[str], Awaitable[None]] | None] = ContextVar("says", default=None)
#: Seconds between two looks at what it says.
_LOOK = 0.5

#: Starts `transplt ARGUMENTS` in a folder, for so many seconds at most.
Start = Callable[[Sequence[str], Path, float], Awaitable[Ended]]


async def start(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
    """Runs the command to its end. CannotFinish when it cannot be started; it is ended, too, when we are cancelled."""
    import anyio
    from anyio.to_thread import run_sync

    try:
        with started("transplt.faces.cli.main:entry_point", arguments, folder, {"NO_COLOR": "1"}) as child:
            process = child.process
            _RUNNING.add(process.pid)
            try:
                with anyio.move_on_after(seconds) as limit:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(_tell, child.error.fileno(), arguments[0])
                        await run_sync(child.wait, abandon_on_cancel=True)
                        tasks.cancel_scope.cancel()
            finally:
                if process.poll() is None:
                    with anyio.CancelScope(shield=True):
                        await run_sync(child.end, _PATIENCE)
                _RUNNING.discard(process.pid)
            late = limit.cancelled_caught
            return Ended(process.returncode, child.printed(_MOST_BYTES), child.errors(_MOST_ERROR), late)
    except OSError as why:
        raise CannotFinish(f"cannot start transplt: {reason(why)}") from why


async def _tell(error: int, command: str) -> None:
    """Passes on the last line that the command has written to stderr, whenever there is another one."""
    import anyio

    tell, told, at = says.get(), f"transplt {command}", 0
    while tell is not None:
        if told:
            await tell(told)
        await anyio.sleep(_LOOK)
        new = os.pread(error, _MOST_ERROR, at)  # seeking would move the command's own place in the file
        at += len(new)
        told = (new.decode("utf-8", "replace").strip().splitlines() or [""])[-1]


def end_all() -> None:
    """Asks all commands that are at work to end; each cleans up by itself."""
    for number in _RUNNING:
        end_group(number, signal.SIGTERM)
