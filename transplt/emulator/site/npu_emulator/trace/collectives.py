"""What the ranks exchange, in order: one event as a collective begins, one as it ends.

`group`: this process is a rank of a process group: rank, world, backend, its name and the global ranks in it.
`coll` is a collective or a message that begins: `n` counts them in this process, `kind` is the function's name in
torch.distributed, `by` the user's lines that called the one at `at`, the nearest first. `coll_wait` is a wait for one
that went on in the background (`async`), `coll_end` its end, with the `error` that it raised. They are written before
anything is sent, so that a rank that hangs has recorded where. `raised` is the error that ended the process.

A call of torch.distributed is recorded once, as the user made it. What DistributedDataParallel and functional
collectives do in C++ reaches the operators of the device (`_collectives.py`, `npu_card/communicators.py`) without such
a call, and is recorded there; in C++ on CPU tensors it is not seen.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from ..config import config
from ..start import when_imported
from ..user_code import is_user, nearest
from .exchanges import DEFAULT, FUNCTIONS, NOTHING, bound, members_of, name_of, of_function, of_operator
from .figures import figures
from .log import callers, emit, write

_numbers = itertools.count()
_here = threading.local()
#: Names of groups by their ranks, the first of those that have the same.
_names: dict[tuple[int, ...], str] = {}
#: Modules that hold functions of torch.distributed; torch_npu tells isend from irecv by identity.
_HOLDERS = ("torch.distributed", "torch_npu.distributed")
#: Works that nobody has waited for, by id; the object stays alive here, or another would come by its id.
_open: dict[int, tuple[int, Any]] = {}


def install() -> None:
    """Watch torch.distributed; does nothing in a torch without it."""
    if not torch.distributed.is_available():
        return
    for name in FUNCTIONS:
        replace(name, functools.partial(_recorded_function, name))
    replace("init_process_group", _recorded_beginning)
    replace("new_group", _recorded_making)
    replace("destroy_process_group", _recorded_ending)
    _watch_waiting()
    _watch_errors()
    if "torch_npu" not in sys.modules:
        when_imported("torch_npu", lambda module: replace("barrier", functools.partial(_recorded_function, "barrier")))


def replace(name: str, wrap: Callable[[Any], Any]) -> None:
    """Let `wrap` stand round `name` in every module of torch and torch_npu that has it from torch.distributed.

    What the guard has wrapped is wrapped again, and so is what it wraps: of a call within a call, one is recorded.
    """
    made: dict[Any, Any] = {}
    for module in [each for path, each in sys.modules.items() if path.startswith(_HOLDERS)]:
        old = vars(module).get(name)
        if inspect.isfunction(old) and name in vars(torch.distributed.distributed_c10d):
            if old not in made:
                made[old] = wrap(old)
            setattr(module, name, made[old])


def _recorded_function(name: str, original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if _inside():
            return original(*args, **kwargs)
        fields = of_function(name, signature, args, kwargs)
        if fields is None:
            return original(*args, **kwargs)
        with _recording(fields) as later:
            result = original(*args, **kwargs)
            if isinstance(result, torch.distributed.Work):
                later(result)
        if name == "all_reduce" and config.trace and not fields["async"] and fields["op"] == "SUM":
            emit("summed", p=figures(bound(signature, args, kwargs)["tensor"]))
        return result

    return recorded


def _inside() -> bool:
    return bool(getattr(_here, "depth", 0))


@contextlib.contextmanager
def _recording(fields: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
    """Record a collective that is made inside; what it yields takes the work that goes on when it is over."""
    number = next(_numbers)
    goes_on: list[Any] = []
    frame = _user_frame()
    write("coll", frame, n=number, **fields, by=callers(frame))
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        yield goes_on.append
    except BaseException as error:
        write("coll_end", frame, n=number, error=_line_of(error))
        raise
    finally:
        _here.depth -= 1
    if goes_on and not goes_on[0].is_completed():
        _record_ended()
        _open[id(goes_on[0])] = (number, goes_on[0])
    else:
        write("coll_end", frame, n=number)


def _user_frame() -> FrameType | None:
    """The user's line; for a thread of the autograd engine, the one that its main thread is at."""
    frame = nearest(2)
    if frame is not None:
        return frame
    main = threading.main_thread().ident
    frame = sys._current_frames().get(main) if main is not None else None
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _line_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:300]}"


def _recorded_beginning(begin: Any) -> Any:
    signature = inspect.signature(begin)

    @functools.wraps(begin)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        if _inside():
            return begin(*args, **kwargs)
        values = bound(signature, args, kwargs)
        world = _count(values.get("world_size"), "WORLD_SIZE")
        rank = _count(values.get("rank"), "RANK")
        fields = {"kind": "init_process_group", "group": list(range(world)), "name": DEFAULT, "rank": rank}
        with _recording({**fields, **NOTHING}):
            result = begin(*args, **kwargs)
        _record_group(torch.distributed.group.WORLD)
        return result

    return init_process_group


def _recorded_making(make: Any) -> Any:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        everybody = members_of(torch.distributed.group.WORLD) if torch.distributed.is_initialized() else []
        if _inside() or not everybody:
            return make(*args, **kwargs)
        values = bound(signature, args, kwargs)
        ranks = sorted(values.get("ranks") or everybody)
        if values.get("use_local_synchronization"):
            group = make(*args, **kwargs)
        else:
            fields = {"kind": "new_group", "group": everybody, "name": DEFAULT, "ranks": ranks}
            with _recording({**fields, **NOTHING}):
                group = make(*args, **kwargs)
        _record_group(group)
        return group

    return new_group


def _recorded_ending(end: Any) -> Any:
    @functools.wraps(end)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        if not _inside():
            group = args[0] if args else kwargs.get("group")
            everything = group is None or group is torch.distributed.group.WORLD
            write("group_end", _user_frame(), name=DEFAULT if everything else name_of(group))
        return end(*args, **kwargs)

    return destroy_process_group


def _count(given: Any, variable: str) -> int:
    value: Any = given if isinstance(given, int) and given >= 0 else os.environ.get(variable, "")
    try:
        return int(value)
    except ValueError:
        return -1


def _record_group(group: Any) -> None:
    dist: Any = torch.distributed
    members = members_of(group)
    if members:
        _names.setdefault(tuple(members), name_of(group))
        write(
            "group", _user_frame(), rank=dist.get_rank(), world=dist.get_world_size(), backend=dist.get_backend(group),
            ranks=members, name=name_of(group),
        )  # fmt: skip


def _watch_waiting() -> None:
    kind: Any = torch.distributed.Work
    wait, is_completed = kind.wait, kind.is_completed

    def waited(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = _open.get(id(self))
        if known is None:
            return wait(self, *args, **kwargs)
        frame = _user_frame()
        write("coll_wait", frame, n=known[0])
        try:
            result = wait(self, *args, **kwargs)
        except BaseException as error:
            _open.pop(id(self), None)
            write("coll_end", frame, n=known[0], error=_line_of(error))
            raise
        if _open.pop(id(self), None) is not None:
            write("coll_end", frame, n=known[0])
        return result

    def asked(self: Any) -> Any:
        done = is_completed(self)
        if done and (known := _open.pop(id(self), None)) is not None:
            write("coll_end", _user_frame(), n=known[0])
        return done

    kind.wait, kind.is_completed = waited, asked


def _watch_errors() -> None:
    """A rank that others wait for may have left with an error."""
    previous = sys.excepthook

    def excepthook(kind: Any, error: BaseException, trace: Any) -> None:
        _record_error(error)
        previous(kind, error, trace)

    sys.excepthook = excepthook
    spawning: Any = sys.modules["torch.multiprocessing.spawn"]
    wrapped = spawning._wrap

    @functools.wraps(wrapped)
    def _wrap(function: Any, *rest: Any) -> Any:
        """What the script spawns: its errors are kept for the parent, and reach no hook."""

        def recording(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                _record_error(error)
                raise

        return wrapped(recording, *rest)

    spawning._wrap = _wrap


def _record_error(error: BaseException) -> None:
    at, trace = None, error.__traceback__
    while trace is not None:
        if is_user(trace.tb_frame.f_code.co_filename):
            at = [os.path.abspath(trace.tb_frame.f_code.co_filename), trace.tb_lineno]
        trace = trace.tb_next
    write("raised", None, at=at, error=_line_of(error))


def _record_ended() -> None:
    """Record the end of works that are done and that nobody waited for."""
    for _, work in list(_open.values()):
        with contextlib.suppress(RuntimeError):
            work.is_completed()


def carried(fields: dict[str, Any], members: list[int]) -> Callable[[str], None] | None:
    """Record a collective that a card carries out, where no call of torch.distributed did; what ends it, with the error
    that it raised, is given back. `members`: the global ranks of its group."""
    if config.trace is None or _inside():
        return None
    number, frame = next(_numbers), _user_frame()
    group = {"group": members, "name": _names.get(tuple(members), "-".join(map(str, members)))}
    write("coll", frame, n=number, **{**NOTHING, **group, **fields}, by=callers(frame))

    def end(error: str) -> None:
        write("coll_end", frame, n=number, **({"error": error[:300]} if error else {}))

    return end


def operator(name: str, given: list[Any], group: Any) -> contextlib.AbstractContextManager[Any]:
    """The context in which the device carries out `c10d::name`; records it where no call of torch.distributed did."""
    if config.trace is None or _inside():
        return contextlib.nullcontext()
    fields = of_operator(name, given, group)
    return _recording(fields) if fields is not None else contextlib.nullcontext()
