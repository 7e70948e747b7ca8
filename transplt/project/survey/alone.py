"""One repository in a process of its own: whatever it does to that process costs itself alone, on every executor.

The process has limits for memory, time and the size of files. It is a copy (fork) of one that has imported and read
all that an analysis needs, so that a hundred small repositories cost that once (a start and the tables take 0.9 s of
CPU, a repository of one file 0.02); where there is no fork it is a new one. All of them end when the process that
asks does: it holds a pipe open, and the end of it kills the whole session, git included.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from typing import IO, NoReturn

from transplt.base.disk.child import Child, started
from transplt.base.errors import TranspltError, reason
from transplt.base.text.json_records import from_json, to_json
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.project.pool import exit_name
from transplt.project.survey.fingerprint import of_folder, plan_of
from transplt.project.survey.task import Answer, Task

_MB = 1024 * 1024
_MOST_REASON = 300
_ANSWER, _ERRORS = "answer.json", "errors.txt"
#: What an analysis reads first whatever it is of: `_prepare` runs over it.
_ANY_PROGRAM = "import torch\n\nprint(torch.zeros(1).cuda())\n"


def analyse(task: Task) -> Answer:
    """The answer to a task; it never raises for what the repository is like."""
    if task.known and not task.is_url:
        with contextlib.suppress(TranspltError, OSError, ValueError, RecursionError):
            if of_folder(task, plan_of(task, task.source)) == task.known:
                return Answer()
    if not task.is_url and not os.path.isdir(task.source):
        return Answer(failed="no such folder")
    try:
        scratch = tempfile.mkdtemp(prefix="transplt-survey-")
    except OSError as error:
        return Answer(failed=f"no folder could be created: {reason(error)}")
    try:
        return _in_process(task, scratch)
    except OSError as error:
        return Answer(failed=f"no process could be started: {reason(error)}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(slots=True)
class _Analyst:
    """A process that is ready to analyse, one repository after the other."""

    child: Child
    open: contextlib.ExitStack
    owner: int = field(default_factory=os.getpid)

    def ask(self, scratch: str, task: Task) -> int | None:
        """The exit code of the analysis of a task, in whose folder its answer lies; None for one that took too long."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self.child.end()

        timer = threading.Timer(task.seconds, end)
        timer.daemon = True
        timer.start()
        try:
            asks, says = self.child.process.stdin, self.child.process.stdout
            assert asks is not None and says is not None
            with contextlib.suppress(BrokenPipeError):
                asks.write(json.dumps([scratch, to_json(task)]).encode("ascii") + b"\n")
                asks.flush()
            line = says.readline()
        finally:
            timer.cancel()
        if late.is_set():
            return None
        if line:
            return int(line)
        self.child.end()  # it is gone, and what it had started goes, too
        return self.child.wait()

    def close(self) -> None:
        """Ends the process, and what it started."""
        self.child.end()
        self.open.close()


#: Those that nobody asks at the moment: threads of one worker take one each.
_idle: list[_Analyst] = []


@atexit.register
def _close() -> None:
    while _idle:
        if (ready := _idle.pop()).owner == os.getpid():
            ready.close()


def _analyst() -> _Analyst:
    with contextlib.suppress(IndexError):
        while (ready := _idle.pop()).owner != os.getpid():
            pass  # of the process that this one is a copy of
        return ready
    stack = contextlib.ExitStack()
    return _Analyst(stack.enter_context(started(f"{__name__}:main", [], tempfile.gettempdir(), {}, talks=True)), stack)


def _in_process(task: Task, scratch: str) -> Answer:
    analyst = _analyst()
    try:
        code = analyst.ask(scratch, task)
    except BaseException:
        analyst.close()
        raise
    errors = analyst.child.errors(_MB)
    if analyst.child.process.poll() is None and code is not None:
        _idle.append(analyst)
    else:
        analyst.close()
    return Answer(failed=f"it took longer than {task.seconds} s") if code is None else _answer(scratch, code, errors)


def _answer(scratch: str, code: int, errors: str) -> Answer:
    with contextlib.suppress(OSError, ValueError):
        return from_json(Answer, read_regular(os.path.join(scratch, _ANSWER), RECORDS).decode("ascii"))
    with contextlib.suppress(OSError):
        said = read_regular(os.path.join(scratch, _ERRORS), RECORDS)
        errors = said.decode("utf-8", "backslashreplace") or errors
    lines = errors.strip().splitlines()
    last = "".join(c for c in lines[-1] if c.isprintable())[:_MOST_REASON] if lines else ""
    if "MemoryError" in last or "bad_alloc" in last:
        return Answer(failed="not enough memory")
    hint = ", which can also mean that memory ran out" if code == -9 else ""
    return Answer(failed=f"the process that analysed it ended with {exit_name(code)}{hint}{': ' * bool(last)}{last}")


# --- in that process ----------------------------------------------------------------------------------------------


def _limit(task: Task) -> None:
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: task.seconds + 1, resource.RLIMIT_FSIZE: task.most_mb * _MB}
    if sys.platform == "linux":
        limits[resource.RLIMIT_AS] = task.memory_mb * _MB
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))


def _prepare() -> None:
    """Imports and reads what every analysis needs."""
    from transplt.project.survey.measure import measured

    with tempfile.TemporaryDirectory(prefix="transplt-survey-") as folder:
        with open(os.path.join(folder, "train.py"), "w", encoding="ascii") as file:
            file.write(_ANY_PROGRAM)
        measured(Task("", folder), folder)


def main() -> int:
    """Reads from standard input folders and tasks, analyses each, and writes its exit code to standard output."""
    asks = sys.stdin.buffer
    if sys.platform == "win32":
        scratch, task = _read_task(asks.readline())
        threading.Thread(target=_watch, args=[asks], daemon=True).start()
        _analysed(scratch, task)
    _prepare()
    gc.freeze()
    while line := asks.readline():
        life, alive = os.pipe()
        number = os.fork()
        if not number:
            os.close(life)
            _analysed(*_read_task(line))
        os.close(alive)
        if asks in select.select([asks, life], [], [])[0]:  # it asks for one at a time: nobody waits any more
            os.killpg(0, signal.SIGKILL)
        os.close(life)
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()
    return 0


def _read_task(line: bytes) -> tuple[str, Task]:
    scratch, task = json.loads(line)
    return scratch, from_json(Task, task)


def _watch(asks: IO[bytes]) -> None:
    """Ends this process when nobody waits for the answer any more."""
    asks.read()
    os._exit(1)


def _analysed(scratch: str, task: Task) -> NoReturn:
    """Analyses in this process, leaves answer and errors in `scratch`, and ends."""
    code = 1
    try:
        errors = os.open(os.path.join(scratch, _ERRORS), os.O_CREAT | os.O_WRONLY, 0o600)
        os.dup2(errors, 2)
        os.chdir(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        _limit(task)
        answer = to_json(_measured(task, scratch))
        with open(os.path.join(scratch, _ANSWER), "w", encoding="ascii") as file:
            file.write(answer)
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)


def _measured(task: Task, scratch: str) -> Answer:
    try:
        from transplt.project.survey.measure import measured

        return measured(task, scratch)
    except TranspltError as error:
        return Answer(failed=str(error))
    except MemoryError:
        return Answer(failed="not enough memory")
    except RecursionError:
        return Answer(failed="it is nested too deeply")
    except OSError as error:
        return Answer(failed=f"{error.filename}: {reason(error)}" if error.filename else str(error))
