"""A small pool of processes: a file stays with its worker, and a worker that dies costs one file only."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import TYPE_CHECKING, Any

from transplt.base import stages
from transplt.base.disk.child import end_with, leave_signals
from transplt.base.disk.walk import Entry
from transplt.project.budget_watch import LOOK, Watched, can_watch
from transplt.project.garbage_collection import collect_rarely, collect_some
from transplt.project.unread_files import Died
from transplt.syntax.files import WAITING

if TYPE_CHECKING:
    # Imported where processes are started: a run without them saves the time.
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

    from transplt.project.worker import FileWorker

#: Less Python than this is done by one worker: a second one would cost more than it saves.
SMALL_TREE_BYTES = 1024 * 1024
_MOST_JOBS = 4
#: Such a file is looked at without a process of its own where it is the only one.
_SMALL_FILE_BYTES = 16 * 1024
#: A file that is not Python is this much cheaper than Python of the same size.
_OTHER_COST = 20
_FILE_COST = 500
_SAFE_PATH = "PYTHONSAFEPATH"


def default_jobs(entries: Iterable[Entry]) -> int:
    """How many worker processes to use; 0 is none, the work is done in this process."""
    small = sum(entry.size for entry in entries if entry.is_python) < SMALL_TREE_BYTES
    if not _can_fork():
        return 0 if small else min(os.cpu_count() or 1, _MOST_JOBS)
    return 1 if small else min(len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1, _MOST_JOBS)


def jobs_for_one(size: int) -> int:
    """How many processes one file of so many bytes is worth: a small one cannot cost much, whatever it holds."""
    return int(can_watch() and size > _SMALL_FILE_BYTES)


def share_out(entries: Iterable[Entry], jobs: int) -> list[list[Entry]]:
    """The entries dealt to the workers by size, always the same way, the largest first."""
    shares: list[list[Entry]] = [[] for _ in range(max(jobs, 1))]
    loads = [0] * len(shares)
    for entry in sorted(entries, key=lambda entry: (-entry.size, entry.path)):
        lightest = loads.index(min(loads))
        shares[lightest].append(entry)
        loads[lightest] += _FILE_COST + (entry.size if entry.is_python else entry.size // _OTHER_COST)
    return shares


@dataclass(slots=True)
class _Process:
    process: BaseProcess
    connection: Connection
    life: int  # our end of a pipe that nobody writes into: it is closed when we are gone
    stage: mmap | None
    watched: Watched
    waiting: list[Entry] = field(default_factory=list)
    over: str = ""
    killed: bool = False

    def close(self) -> None:
        """Gives back what the process had of ours."""
        if self.life >= 0:
            os.close(self.life)
            self.life = -1
        if self.stage is not None:
            self.stage.close()


class Pool:
    """Worker processes around copies of one `FileWorker`; with no jobs the work is done here."""

    def __init__(
        self, worker: FileWorker[Any], jobs: int, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """`meanwhile` is called once, here, when the processes have their first work."""
        self._worker = worker
        self._meanwhile = meanwhile
        self._looked = 0.0
        self._project = b""
        self._processes: list[_Process] = []
        if jobs > 1 and _can_fork():
            # What every process needs is read and imported once, and shared. A single one does it when it needs it.
            worker.prepare()
        if jobs:
            worker.files.room = WAITING // jobs
            gc.freeze()
        for _ in range(jobs):
            self._processes.append(self._start())

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for each in self._processes:
            each.connection.close()
            if kind is not None:
                each.process.terminate()
        for each in self._processes:
            each.process.join()
            each.close()

    def set_project(self, project: Any) -> None:
        """Gives the facts of the project to all workers, also those that have to be started later."""
        self._worker.project = project
        if self._worker.large and _can_fork():
            self._renew()
        elif self._processes:
            self._project = pickle.dumps(("project", project), pickle.HIGHEST_PROTOCOL)
            for position, each in enumerate(self._processes):
                try:
                    each.connection.send_bytes(self._project)
                except OSError:
                    self._replace(position)

    def _renew(self) -> None:
        """Starts workers anew, which share with this process what it knows, in place of those that are idle."""
        for each in self._processes:
            each.connection.close()
        for each in self._processes:
            each.process.join()
            each.close()
        self._worker.prepare()
        gc.freeze()
        count = len(self._processes)
        self._processes.clear()
        for _ in range(count):
            self._processes.append(self._start())

    def run(self, method: str, shares: Sequence[Sequence[Entry]]) -> Iterator[tuple[Entry, Any]]:
        """Calls `FileWorker.<method>` for every entry, each share in its worker; results in no order.

        Yields the entry and the result, or `Died`. What a worker raises is raised here.
        """
        if not self._processes:
            yield from ((entry, getattr(self._worker, method)(entry)) for share in shares for entry in share)
            return
        for position, share in enumerate(shares):
            if share:
                self._send(position, method, list(share))
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()
        while busy := [position for position, each in enumerate(self._processes) if each.waiting]:
            from multiprocessing.connection import wait

            ready = wait([self._processes[position].connection for position in busy], LOOK if can_watch() else None)
            for position in self._over(busy):
                if self._processes[position].connection not in ready:
                    self._processes[position].killed = True
                    self._processes[position].process.kill()
            for position in busy:
                if self._processes[position].connection in ready:
                    yield from self._receive(position, method)

    def _over(self, busy: Iterable[int]) -> Iterator[int]:
        """The processes that have used up the budget of the file that they have."""
        now = time.monotonic()
        if now - self._looked < LOOK or not can_watch():
            return
        self._looked = now
        for each in busy:
            process = self._processes[each]
            process.over = process.over or process.watched.over(self._worker.budget)
            if process.over:
                yield each

    def _receive(self, position: int, method: str) -> Iterator[tuple[Entry, Any]]:
        each = self._processes[position]
        entry = each.waiting[0]
        try:
            failed, value = each.connection.recv()
        except (EOFError, OSError):
            died = self._replace(position)
            rest = each.waiting[1:]
            if rest:
                self._send(position, method, rest)
            yield entry, died
            return
        each.waiting.pop(0)
        each.watched.next_file()
        each.over = ""
        if each.killed:  # too late: it had done its file, and is not there for the next one
            self._replace(position)
            self._send(position, method, each.waiting)
        if failed:
            raise value
        yield entry, value

    def _send(self, position: int, method: str, entries: list[Entry]) -> None:
        self._processes[position].waiting = entries
        self._processes[position].watched.next_file()
        # A worker that died before it got the message is found when its answer is read.
        with contextlib.suppress(OSError):
            self._processes[position].connection.send(("run", method, tuple(entries)))

    def _replace(self, position: int) -> Died:
        """Puts a new worker in the place of one that ended."""
        gone = self._processes[position]
        gone.connection.close()
        gone.process.join()
        code, stage = gone.process.exitcode, stages.words_of(gone.stage)
        gone.close()
        self._processes[position] = self._start()
        if self._project:
            self._processes[position].connection.send_bytes(self._project)
        why = f"the process that worked on it ended with {exit_name(code)}"
        if gone.over:
            why = f"the budget of a file, {gone.over}, was used up"
        return Died(f"{why} {stage}" if stage else why, over=bool(gone.over))

    def _start(self) -> _Process:
        import multiprocessing

        context: BaseContext = multiprocessing.get_context("fork" if _can_fork() else "spawn")
        ours, theirs = context.Pipe()
        # With fork a worker inherits our ends of the other pipes, and would keep them open after we are gone.
        inherited = (ours, *(each.connection for each in self._processes)) if _can_fork() else ()
        life = os.pipe() if _can_fork() else (-1, -1)
        stage = mmap(-1, 1) if _can_fork() else None
        lives = [each for each in (life[1], *(each.life for each in self._processes)) if each >= 0]
        arguments = (self._worker, theirs, inherited, life[0], lives, stage)
        process = context.Process(target=_serve, args=arguments, daemon=True)  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            # Python 3.12 warns of threads; ours never hold a lock that a worker needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            with _no_current_folder():
                process.start()
        theirs.close()
        if _can_fork():
            os.close(life[0])
        return _Process(process, ours, life[1], stage, Watched(process.pid or 0))


@contextlib.contextmanager
def _no_current_folder() -> Iterator[None]:
    """A Python that is started here (no fork) does not search the current folder, from 3.11 on.

    Later it has our `sys.path`, but what it imports before that may be anybody's.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _serve(
    worker: FileWorker[Any],
    connection: Connection,
    inherited: Sequence[Connection],
    life: int,
    lives: Sequence[int],
    stage: mmap | None,
) -> None:
    """The life of a worker process: it ends when our end of the pipe is closed, in the midst of a file too."""
    leave_signals()
    for other in inherited:
        other.close()
    for each in lives:
        os.close(each)
    if life >= 0:
        end_with(life)
    stages.share(stage)
    if worker.large:
        collect_some()
    else:
        collect_rarely()
    warnings.simplefilter("ignore")
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            message = connection.recv()
            if message[0] == "project":
                worker.project = message[1]
                continue
            for entry in message[2]:
                try:
                    answer = (False, getattr(worker, message[1])(entry))
                except Exception as error:
                    answer = (True, error)
                connection.send(answer)


def _can_fork() -> bool:
    """True where forking is both there and safe; on macOS system libraries forbid it."""
    return sys.platform == "linux"


def exit_name(code: int | None) -> str:
    """How a process ended, by its exit code."""
    if code is not None and code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"
