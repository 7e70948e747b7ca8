"""Which executor carries out items: this process, processes, a Dask cluster or a Ray cluster, all as `Executor`.

An item whose worker dies costs itself: the others that were lost with it are tried again, one by one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from transplt.base.disk.child import end_with, leave_signals
from transplt.base.errors import CannotFinish, UsageError
from transplt.base.extras import install_command
from transplt.project.unread_files import Died

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

INLINE, PROCESSES, DASK, RAY = "inline", "processes", "dask", "ray"
_FORMS = re.compile(
    r"(?P<kind>inline)|(?P<pool>processes)(?::(?P<number>\d{1,3}))?"
    r"|(?P<cluster>dask|ray)://(?:local(?::(?P<workers>\d{1,3}))?|(?P<address>[\w.\-\[\]:]*[\w\]]:\d{1,5}))"
)
#: Seconds between looks at whether there is anybody left to wait for.
_LOOK = 2.0
#: Seconds until a cluster that does not answer is an error.
_PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Where:
    """Where items are carried out. `workers` is 0 for a cluster that runs already at `address` (HOST:PORT)."""

    kind: str
    workers: int = 0
    address: str = ""


def parse_executor(text: str) -> Where:
    """`inline`, `processes[:N]`, `dask://HOST:PORT`, `dask://local[:N]`, the same of `ray`. UsageError for others."""
    match = _FORMS.fullmatch(text)
    if match is None:
        raise UsageError(
            f"unknown executor {text!r}; choose inline, processes, processes:N, dask://HOST:PORT, dask://local:N, "
            "ray://HOST:PORT or ray://local:N"
        )
    if match["kind"]:
        return Where(INLINE, 1)
    if match["address"]:
        return Where(match["cluster"], 0, match["address"])
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    workers = int(match["number"] or match["workers"] or cores)
    if not workers:
        raise UsageError(f"{text}: at least one worker")
    return Where(match["pool"] or match["cluster"], workers)


def carry_out(
    where: Where, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[tuple[_Item, _Result | Died]]:
    """Calls `work` for every item and yields both as they are done, in no order.

    `work` and the items are pickled, and `work` never raises: what an executor raises in its place means that the
    worker is gone. Such items are tried once more, each alone, and are `Died` when that fails too.
    """
    with opened(where) as executor:
        yield from carry_out_on(executor, work, items)


def carry_out_on(
    executor: Executor, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[tuple[_Item, _Result | Died]]:
    """`carry_out` on an executor that is open; one of processes is of no more use after one of them died."""
    lost: list[_Item] = []
    for item, future in _submitted(executor, work, items):
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or error is not None:
            lost.append(item)
        else:
            yield item, future.result()
    for item in lost:
        fresh = opened(Where(PROCESSES, 1)) if isinstance(executor, ProcessPoolExecutor) else nullcontext(executor)
        with fresh as each:
            yield item, _alone(each, work, item)


def _submitted(
    executor: Executor, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[tuple[_Item, Future[_Result]]]:
    if isinstance(executor, Inline):  # one after the other, each result as soon as it is there
        yield from ((item, executor.submit(work, item)) for item in items)
        return
    waiting: dict[Future[_Result], _Item] = {}
    for item in items:
        try:
            waiting[executor.submit(work, item)] = item
        except RuntimeError as error:  # it broke while others were handed in: BrokenExecutor is one
            failed: Future[_Result] = Future()
            failed.set_exception(error)
            waiting[failed] = item
    open_ones = {*waiting}
    while open_ones:
        done, open_ones = wait(open_ones, _LOOK, FIRST_COMPLETED)
        yield from ((waiting[future], future) for future in done)
        if not done:
            _raise_if_lost(executor)


def _raise_if_lost(executor: Executor) -> None:
    """MemoryError where the thread that hands out the items has ended: nobody would ever do them."""
    thread = getattr(executor, "_executor_manager_thread", None)
    if isinstance(thread, threading.Thread) and not thread.is_alive():
        raise MemoryError("the thread that distributes the items has ended")


def _alone(executor: Executor, work: Callable[[_Item], _Result], item: _Item) -> _Result | Died:
    try:
        return executor.submit(work, item).result()
    except (Exception, CancelledError) as error:
        text = " ".join(str(error).split())[:200]
        return Died(f"the worker died ({type(error).__name__}{': ' * bool(text)}{text})")


class Inline(Executor):
    """Carries out each item at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _Ray(Executor):
    """Items as tasks of Ray, none of them tried again by Ray itself."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The future of a task."""
        task = self._ray.remote(max_retries=0, num_cpus=1)(fn)
        future: Future[Any] = task.remote(*args, **kwargs).future()
        return future


@contextlib.contextmanager
def opened(where: Where) -> Iterator[Executor]:
    """The executor, closed at the end; what has not begun by then is dropped. UsageError where it is not installed."""
    with {INLINE: _inline, PROCESSES: _processes, DASK: _dask, RAY: _ray}[where.kind](where) as executor:
        yield executor


@contextlib.contextmanager
def _inline(where: Where) -> Iterator[Executor]:
    yield Inline()


@contextlib.contextmanager
def _processes(where: Where) -> Iterator[Executor]:
    import multiprocessing

    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    life = os.pipe() if sys.platform == "linux" else ()
    executor = ProcessPoolExecutor(where.workers, mp_context=context, initializer=_begin, initargs=life)
    hook, threading.excepthook = threading.excepthook, lambda _: None  # `_raise_if_lost` reports what comes of it
    try:
        yield executor
    except BaseException:
        for process in list((getattr(executor, "_processes", None) or {}).values()):
            process.terminate()
        executor.shutdown(wait=False, cancel_futures=True)
        _close(life)
        raise
    finally:
        threading.excepthook = hook
    executor.shutdown(cancel_futures=True)
    _close(life)


def _begin(*life: int) -> None:
    """In a worker process: it leaves signals to us, and ends with us."""
    leave_signals()
    if life:
        os.close(life[1])
        end_with(life[0])


def _close(life: Sequence[int]) -> None:
    for each in life:
        os.close(each)


@contextlib.contextmanager
def _dask(where: Where) -> Iterator[Executor]:
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise _missing(DASK) from error
    cluster: Any = None
    # A task whose worker dies is given back at once: whether it is tried again is decided above.
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.logging.distributed": "critical"}
    with dask.config.set(settings), contextlib.ExitStack() as close:
        try:
            if where.workers:
                cluster = LocalCluster(
                    n_workers=where.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )  # fmt: skip
                close.callback(cluster.close)
            client = Client(cluster or f"tcp://{where.address}", timeout=_PATIENCE)
        except (OSError, RuntimeError) as error:
            raise CannotFinish(f"no Dask scheduler answers at {where.address or 'this host'}: {error}") from error
        close.callback(client.close)
        yield client.get_executor(pure=False, retries=0)


@contextlib.contextmanager
def _ray(where: Where) -> Iterator[Executor]:
    try:
        import ray
    except ImportError as error:
        raise _missing(RAY) from error
    try:
        if where.workers:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(
                num_cpus=where.workers, include_dashboard=False, log_to_driver=False, logging_level="critical",
                _system_config={"enable_worker_prestart": False},
            )  # fmt: skip
        else:
            ray.init(f"ray://{where.address}", log_to_driver=False)
    except (ConnectionError, RuntimeError, OSError) as error:
        raise CannotFinish(f"Ray does not answer at {where.address or 'this host'}: {error}") from error
    try:
        yield _Ray(ray)
    finally:
        ray.shutdown()


def _missing(name: str) -> UsageError:
    return UsageError(f"this needs {name}, which is not installed: {install_command(name)}")
