"""The bar that long runs draw on a terminal, on stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from transplt.project.report.migration_record import Progress as Callback

#: A shorter run needs no bar.
_PATIENCE_SECONDS = 1.0
_REDRAW_SECONDS = 0.1


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Callback]:
    """A callback that draws a bar on stderr once a run takes over a second, if stderr is a terminal."""
    bar = _Bar(wanted and sys.stderr.isatty() and os.environ.get("TERM") != "dumb")
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """Draws only inside `update`: no thread, because the worker processes are forked from this one."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._next = time.monotonic() + _PATIENCE_SECONDS
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + _REDRAW_SECONDS
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._progress = Progress(
                TextColumn("migrating"),
                BarColumn(),
                MofNCompleteColumn(),
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
            )
            self._progress.start()
            self._task = self._progress.add_task("migrating", total=total)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total, refresh=True)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
