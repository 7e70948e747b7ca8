"""The files of one migration on an executor: shares of them are its items, in both passes.

What `project.pool.Pool` does with processes of its own, for which a file stays with the process that has read it: an
executor does not show which worker gets what, so each share is read anew.
"""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from transplt.base.disk.walk import Entry
from transplt.project.executors import DASK, RAY, Where, carry_out_on, opened
from transplt.project.garbage_collection import collect_rarely
from transplt.project.unread_files import Died
from transplt.project.worker import FileWorker

#: Shares for a cluster with an unknown number of workers.
_SHARES = 16


@dataclass(frozen=True, slots=True)
class Share:
    """Some files, and the state of the worker that does `method` with each of them."""

    worker: FileWorker[Any]
    method: str
    entries: tuple[Entry, ...]


class Shares:
    """Stands where a `Pool` does; `worker` writes over what a worker that died has begun."""

    def __init__(self, worker: FileWorker[Any], where: Where) -> None:
        self._worker = worker
        self._where = where
        self._close = contextlib.ExitStack()
        #: A cluster serves both passes.
        self._cluster: Executor | None = None
        if where.kind in (DASK, RAY):
            self._cluster = self._close.enter_context(opened(where))

    def __enter__(self) -> Shares:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    def set_project(self, project: Any) -> None:
        """The facts of the project, which go with each share from now on."""
        self._worker.project = project

    def run(self, method: str, shares: Sequence[Sequence[Entry]]) -> Iterator[tuple[Entry, Any]]:
        """As `Pool.run`: each entry and its result, or `Died`, in no order; what a worker raises is raised here."""
        items = [Share(self._worker, method, tuple(share)) for share in shares if share]
        with contextlib.nullcontext(self._cluster) if self._cluster else opened(self._where) as executor:
            for share, answers in carry_out_on(executor, worked_through, items):
                if not isinstance(answers, Died):
                    for entry, (failed, value) in zip(share.entries, answers, strict=True):
                        if failed:
                            raise value
                        yield entry, value
                elif len(share.entries) == 1:
                    yield share.entries[0], answers
                else:  # one of its files: each for itself
                    yield from self.run(method, [[entry] for entry in share.entries])


def count(where: Where) -> int:
    """Into how many shares files are dealt."""
    return where.workers or _SHARES


def worked_through(share: Share) -> list[tuple[bool, Any]]:
    """For each file whether it failed, and the result or the error. Workers live on: nothing of it stays with them."""
    usual = gc.get_threshold()
    collect_rarely()
    answers: list[tuple[bool, Any]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for entry in share.entries:
                try:
                    answers.append((False, getattr(share.worker, share.method)(entry)))
                except Exception as error:
                    answers.append((True, error))
    finally:
        gc.set_threshold(*usual)
    return answers
