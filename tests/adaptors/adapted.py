"""Pairs with adaptors: what they make of a file of a project, and that they make nothing of the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.harness import check_noop, check_rewrite, clean, migrate
from transplt.base.finding import FileResult


def _chosen(adapt: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, _, value in (each.partition("=") for each in adapt.split(",")))


def check_adapted(
    adapt: str, before: str, after: str, *, open_codes: Iterable[str] = (), path: str = "train.py", **more: Any
) -> FileResult:
    """The output is exactly `after`, the same adaptors leave that as it is, and without them nothing comes from
    npu_port.
    """
    more = {"helper_file": True, **more}
    result = check_rewrite(before, after, open_codes=open_codes, path=path, adapt=_chosen(adapt), **more)
    again = migrate(clean(after), path=path, adapt=_chosen(adapt), **more)
    assert again.data.decode() == clean(after), "the adaptor changes what it wrote"
    plain = migrate(before, path=path, **more)
    assert b"npu_port" not in plain.data
    return result


def check_not_adapted(adapt: str, source: str, *, open_codes: Iterable[str] = (), **more: Any) -> FileResult:
    """The adaptor leaves a file as it is."""
    return check_noop(source, open_codes=open_codes, adapt=_chosen(adapt), **{"helper_file": True, **more})


def offered(source: str, **more: Any) -> list[tuple[str, int, str]]:
    """(code, line, adaptor) of the findings of a migration that asks for none, where one would write what is missing.
    """
    result = migrate(source, **{"helper_file": True, **more})
    return [(each.code, each.span.line, each.adaptor) for each in result.findings if each.adaptor]
