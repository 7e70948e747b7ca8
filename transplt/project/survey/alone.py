"""One repository in a process of its own: whatever it does to that process costs itself alone, on every executor.

The process has limits for memory, time and the size of files, and ends when the one that started it does: that holds a
pipe open, and its end kills the whole session, git included.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading

from transplt.base.errors import TranspltError, reason
from transplt.base.text.json_records import from_json, to_json
from transplt.disk.child import Child, end_with, started
from transplt.project.pool import exit_name
from transplt.project.survey.fingerprint import of_folder, plan_of
from transplt.project.survey.task import Answer, Task

_MB = 1024 * 1024
_MOST_ANSWER = 256 * _MB
_MOST_REASON = 300


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


def _in_process(task: Task, scratch: str) -> Answer:
    with started(f"{__name__}:main", [scratch], scratch, {"TMPDIR": scratch}, stdin=True) as child:
        pipe = child.process.stdin
        assert pipe is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(to_json(task).encode("ascii") + b"\n")
                pipe.flush()
            code = child.wait(task.seconds)
        finally:
            child.end()
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return Answer(failed=f"it took longer than {task.seconds} s") if code is None else _answer(child, code)


def _answer(child: Child, code: int) -> Answer:
    try:
        return from_json(Answer, child.printed(_MOST_ANSWER).decode("ascii"))
    except ValueError:
        pass
    lines = child.errors(_MB).strip().splitlines()
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


def _watch() -> None:
    """Ends the session when nobody waits for the answer any more."""
    sys.stdin.buffer.read()
    if sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> int:
    """Reads a task from standard input, writes the answer to standard output."""
    task = from_json(Task, sys.stdin.buffer.readline().decode("ascii"))
    scratch = sys.argv[1]
    if task.is_url or sys.platform != "linux":  # git runs in the same one, too
        threading.Thread(target=_watch, daemon=True).start()
    else:
        end_with(sys.stdin.fileno())
    _limit(task)
    try:
        from transplt.project.survey.measure import measured

        answer = measured(task, scratch)
    except TranspltError as error:
        answer = Answer(failed=str(error))
    except MemoryError:
        answer = Answer(failed="not enough memory")
    except RecursionError:
        answer = Answer(failed="it is nested too deeply")
    except OSError as error:
        answer = Answer(failed=f"{error.filename}: {reason(error)}" if error.filename else str(error))
    sys.stdout.write(to_json(answer))
    sys.stdout.flush()
    os._exit(0)  # the thread that watches waits in a read
