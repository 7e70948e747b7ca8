"""How far the work on the files of a project is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from transplt.base.disk.walk import Entry
from transplt.project.report.migration_record import Progress


def steps(progress: Progress, indexed: Iterable[Entry], wanted: Sequence[Entry]) -> Callable[[], None]:
    """A `step` of `passes.work_through`, which reports to `progress` how far the work on all these files is."""
    total = len(wanted) + sum(entry.has_facts for entry in indexed)
    done = count(1)
    return lambda: progress(next(done), total)
