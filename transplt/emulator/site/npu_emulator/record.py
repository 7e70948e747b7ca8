"""What one process of the run did: kept in memory, written as JSON when the process ends, however it ends."""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import itertools
import json
import multiprocessing.util
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from types import CodeType, TracebackType
from typing import Any, Protocol

from . import host_memory, places, stacks
from .config import config
from .opened import is_to_write
from .user_code import is_user, nearest

#: A frame in the text of a traceback.
_FRAME = re.compile(r'File "(.+?)", line (\d+)')
#: The installed package of a file.
_PACKAGE = re.compile(r"[/\\]site-packages[/\\](\w+)")


class Place(Protocol):
    """What is asked of a frame: whoever keeps a place longer keeps only this."""

    @property
    def f_code(self) -> CodeType: ...
    @property
    def f_lineno(self) -> int: ...


class Record:
    """The record of this process. A forked child starts its own (see `_after_fork`)."""

    def __init__(self) -> None:
        self.operators: collections.Counter[str] = collections.Counter()
        self.findings: dict[tuple[str, int, str, str], dict[str, Any]] = {}
        self.lines: dict[str, set[int]] = {}
        self.notes: dict[str, int] = {}
        self.saves: list[dict[str, Any]] = []
        #: What it printed, where `saves` are kept.
        self.output: list[str] = []
        self.shapes: list[dict[str, Any]] = []
        self.memory: list[dict[str, int]] = []
        #: Launches of Triton's kernels, for a compiler (see npu_emulator.triton.carried).
        self.kernels: dict[str, dict[str, Any]] = {}
        #: What Dynamo said (see npu_emulator.compiled).
        self.compiled: dict[str, Any] = {}
        self.exception: dict[str, Any] | None = None
        self.leaving: dict[str, Any] | None = None
        #: The error of the program whose traceback was printed first.
        self.printed: dict[str, Any] | None = None
        #: Whether a process group was asked for; None where nobody would have seen that.
        self.grouped: bool | None = None
        self.rank: str | None = None
        #: What the card said last of an error; torch_npu puts it behind words of its own.
        self.said = ""
        self.status = "running"
        self.forked = False
        self.started = time.time()

    def finding(self, frame: Place | None, code: str, what: str, hint: str, level: str = "error") -> bool:
        """Note a finding at a user's frame; returns True when the place is new. `level`: error | warning | info."""
        path, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
        key = (path, line, code, what)
        known = self.findings.get(key)
        if known is not None:
            known["count"] += 1
            return False
        self.findings[key] = {
            "path": os.path.abspath(path) if path and not path.startswith("<") else path,
            "line": line,
            "code": code,
            "message": what,
            "help": hint,
            "level": level,
            "count": 1,
        }
        return True

    def note(self, text: str) -> None:
        """Something worth reading in the report that is no finding."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def as_json(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "argv": list(getattr(sys, "argv", [])),
            "rank": os.environ.get("RANK", self.rank),
            "launcher": _is_launcher(),
            "forked": self.forked,
            "status": self.status,
            "exception": self.exception,
            "leaving": self.leaving,
            "printed": self.printed,
            "grouped": self.grouped,
            "torch": getattr(sys.modules.get("torch"), "__version__", None),
            "torch_npu": "torch_npu" in sys.modules,
            "operators": dict(sorted(self.operators.items())),
            "findings": list(self.findings.values()),
            "lines": {path: sorted(lines) for path, lines in sorted(self.lines.items())},
            "notes": self.notes,
            "saves": self.saves,
            "output": "".join(self.output),
            "shapes": self.shapes,
            "memory": self.memory,
            "compiled": self.compiled,
            "kernels": list(self.kernels.values()),
            "seconds": round(time.time() - self.started, 3),
        }


def _is_launcher() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", None) in {f"torch.distributed.{name}" for name in ("run", "launch", "__main__")}


record = Record()
_at_end: list[Any] = []
_installed = False


def at_end(action: Any) -> None:
    """Call `action()` before this process's record is written."""
    _at_end.append(action)


def write(status: str = "ended") -> None:
    """Write the record (atomically); does nothing when no folder for records was given."""
    if not config.records or not os.path.isdir(config.records):
        return
    if record.status in ("running", "ended"):
        record.status = status
    if status != "running":
        for action in _at_end:
            action()
    path = os.path.join(config.records, f"{os.getpid()}.json")
    with contextlib.suppress(FileNotFoundError):  # the folder goes when the run is over
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(record.as_json(), file)
        os.replace(path + ".part", path)


def _note_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    place: dict[str, Any] = {}
    packages: list[str] = []
    if isinstance(error, SyntaxError) and error.filename and is_user(error.filename):
        place = {"path": os.path.abspath(error.filename), "line": error.lineno or 0}
    for frame, line in traceback.walk_tb(None if isinstance(error, SyntaxError) else trace):
        filename = frame.f_code.co_filename
        if is_user(filename):
            place, packages = {"path": os.path.abspath(filename), "line": line}, []
        packages += _PACKAGE.findall(filename)
    message = _without_triton(error) or f"{error}{_absent_library(error)}"
    full = message.partition(host_memory.MARK)[2]
    message = full or message
    said = _first_line(record.said)
    ended = _of_another(error)
    told = f"{kind.__name__}: {_first_line(message)}"
    reason = said if said and said in message else f"another process ended {ended[1]}" if ended else told
    carried = _carried(message)
    record.exception = {
        "type": "HostTooSmall" if full else kind.__name__,
        "message": message[:2000],
        "time": time.time(),
        "reason": reason.rstrip(": "),
        "called": packages[0] if packages else "",
        **place,
        **carried,
        **({"writes": True} if is_to_write(error) else {}),
        **({"of": ended[0]} if ended else {}),
        **({"ended": ended[1]} if ended and not carried else {}),
    }
    record.status = "failed"


def _noting(show: Any) -> Any:
    """As traceback.print_exception, which shows an error that somebody caught."""

    @functools.wraps(show)
    def print_exception(*args: Any, **named: Any) -> None:
        error = next((each for each in args[:2] if isinstance(each, BaseException)), None)
        places = traceback.walk_tb(error.__traceback__ if error is not None else None)
        own = [(frame.f_code.co_filename, line) for frame, line in places if is_user(frame.f_code.co_filename)]
        if own and record.printed is None:
            reason = f"{type(error).__name__}: {_first_line(str(error))}".rstrip(": ")
            record.printed = {"path": os.path.abspath(own[-1][0]), "line": own[-1][1], "reason": reason}
        show(*args, **named)

    return print_exception


def _of_another(error: BaseException) -> tuple[int, str] | None:
    """Which process ended, and how, of what torchrun raises (ChildFailedError) and torch.multiprocessing
    (ProcessException); None for other errors."""
    if hasattr(error, "get_first_failure"):
        _, failure = error.get_first_failure()
        code, pid = failure.exitcode, failure.pid
    elif hasattr(error, "error_pid"):
        code, pid = getattr(error, "exit_code", 1), error.error_pid
    else:
        return None
    if code >= 0:
        return pid, f"with exit code {code}"
    return pid, f"by signal {signal.Signals(-code).name if -code in {*signal.Signals} else -code}"


def _without_triton(error: BaseException) -> str:
    """What to do where Triton is not installed, or numpy, which its interpreter imports; "" for other errors."""
    name = error.name if isinstance(error, ModuleNotFoundError) else ""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)] or [""]
    if name == "numpy" and files[-1].endswith(os.path.join("triton", "runtime", "interpreter.py")):
        return (
            f"numpy is not installed in {sys.prefix}, and Triton's own interpreter, in which kernels run here, needs "
            "it: pip install numpy there, or name another interpreter with --python"
        )
    if name != "triton":
        return ""
    return (
        f"Triton is not installed in {sys.prefix}, and its kernels run in its own interpreter here: pip install triton "
        "numpy there (Linux only), or name another interpreter with --python"
    )


def _absent_library(error: BaseException) -> str:
    """What stands for a library of kernels that a host with NPUs does not have; "" for other errors."""
    if isinstance(error, ImportError) and (error.name or "").startswith("triton.language.extra.cuda"):
        return ": triton-ascend has triton.language.extra.cann.libdevice"
    return ""


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "")


def _carried(message: str) -> dict[str, Any]:
    """Place and reason of an error of another process (spawned, a worker's), whose traceback is in the message."""
    if "Traceback (most recent call last)" not in message:
        return {}
    frames = [(path, int(line)) for path, line in _FRAME.findall(message) if is_user(path)]
    last = next((line for line in reversed(message.splitlines()) if re.match(r"[\w.]+(: |$)", line)), "")
    place = {"path": os.path.abspath(frames[-1][0]), "line": frames[-1][1]} if frames else {}
    return {**({"reason": last} if last else {}), **place}


def _note_exit(status: Any, how: str = "sys.exit") -> None:
    """Where the script asked to end, as failed or not: no exception is left of that."""
    reason = _first_line(status) if isinstance(status, str) else f"{how}({status})"
    places.keep(reason)
    if status is None or status == 0:
        return
    frame = nearest(3)
    place = {"path": os.path.abspath(frame.f_code.co_filename), "line": frame.f_lineno} if frame is not None else {}
    record.leaving = {"reason": reason, "time": time.time(), **place}


@contextlib.contextmanager
def _noted() -> Iterator[None]:
    """Note what a child of multiprocessing fails with: it prints that itself, and no hook is called."""
    try:
        yield
    except Exception as error:
        _note_exception(type(error), error, error.__traceback__)
        raise


def _after_fork() -> None:
    """A forked worker reports on its own; what the parent saw stays the parent's."""
    fresh = Record()
    fresh.forked = True
    record.__dict__.update(fresh.__dict__)
    stacks.install()
    multiprocessing.util.Finalize(None, write, exitpriority=-1000)


def _watch_isolated() -> None:
    """Note where a program starts a Python that leaves our folders out of its path: nothing of it could say so."""
    begin = subprocess.Popen.__init__

    @functools.wraps(begin)
    def __init__(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        words = [str(word) for word in args] if isinstance(args, (list, tuple)) else str(args).split()
        options = itertools.takewhile(lambda word: word.startswith("-") and word not in ("-c", "-m"), words[1:])
        left = next((word for word in options if word in ("-I", "-E")), "")
        if left and os.path.basename(words[0]).startswith("python"):
            record.note(f"a process that was started as {words[0]} {left} found no emulated NPU: leave {left} out")
        begin(self, args, *rest, **named)

    subprocess.Popen.__init__ = __init__  # type: ignore[assignment,method-assign]


def install() -> None:
    """Write the record at every way out of the process: the end, an exception, a fork's end, os._exit."""
    global _installed
    if _installed:
        return
    _installed = True
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _note_exception(kind, error, trace)
        sentence = _without_triton(error)
        if sentence:
            print(sentence, file=sys.stderr)
        else:
            previous(kind, error, trace)

    leave = os._exit

    def flush_and_leave(status: int) -> Any:
        if is_user(sys._getframe(1).f_code.co_filename):  # else a child of multiprocessing that has said why
            _note_exit(status, "os._exit")
        write()
        leave(status)

    end = sys.exit

    def exit_(status: Any = None, /) -> Any:
        _note_exit(status)
        end(status)

    begin = BaseProcess._bootstrap  # type: ignore[attr-defined]

    def bootstrap(self: Any, *rest: Any, **named: Any) -> Any:
        self.run = _noted()(self.run)
        return begin(self, *rest, **named)

    BaseProcess._bootstrap = bootstrap  # type: ignore[attr-defined]
    traceback.print_exception = _noting(traceback.print_exception)
    _watch_isolated()
    sys.excepthook = excepthook
    sys.exit = exit_
    os._exit = flush_and_leave  # type: ignore[assignment]
    os.register_at_fork(after_in_child=_after_fork)
    atexit.register(write)
    stacks.install()
    write("running")
