"""Pairs with a tuning: what it makes of a file, and that it makes nothing of the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.harness import check_noop, check_rewrite, clean, migrate
from transplt.base.finding import FileResult


def _chosen(tune: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "") for name in tune.split(","))


def check_tuned(
    tune: str, before: str, after: str, *, open_codes: Iterable[str] = (), path: str = "train.py", **more: Any
) -> FileResult:
    """The output is exactly `after`, and the same tuning leaves that as it is."""
    result = check_rewrite(before, after, open_codes=open_codes, path=path, tune=_chosen(tune), **more)
    again = migrate(clean(after), path=path, tune=_chosen(tune), **more)
    assert again.data.decode() == clean(after), "the tuning changes what it wrote"
    return result


def check_untuned(tune: str, source: str, *, open_codes: Iterable[str] = (), **more: Any) -> FileResult:
    """The tuning leaves a file as it is."""
    return check_noop(source, open_codes=open_codes, tune=_chosen(tune), **more)
