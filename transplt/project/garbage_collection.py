"""How often Python's collector of garbage comes, in processes of our own."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Syntax trees are many objects and few cycles: with the usual thresholds the collector takes half of the time."""
    gc.set_threshold(5_000_000, 10, 1000)


def collect_some() -> None:
    """Where files are many, the trees that nobody keeps are garbage in cycles: 5,000,000 objects of it are 700 MB."""
    gc.set_threshold(700_000, 10, 1000)


def collect_often() -> None:
    """Where files are so many that no tree is kept, there is little that the collector meets in vain: what a process
    began with does not count (`gc.freeze`). With trees that are kept it would take a fifth of the time."""
    gc.set_threshold(50_000, 10, 10)
