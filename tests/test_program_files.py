"""Files that are read once for all files of their project."""

from __future__ import annotations

import pytest

from transplt.program import files
from transplt.program.files import read_file


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_KEPT", {})
    monkeypatch.setattr(files, "_kept_bytes", 0)


def test_a_file_is_read_once_as_long_as_its_bytes_are_the_same() -> None:
    first = read_file("a.py", b"x = 1\n")
    assert first is not None and read_file("a.py", b"x = 1\n") is first
    second = read_file("a.py", b"x = 22\n")
    assert second is not None and second is not first
    assert second.source.utf8 == b"x = 22\n"
    assert files._kept_bytes == len(b"x = 22\n")


def test_what_cannot_be_read_is_none() -> None:
    assert read_file("a.py", b"x = (\n") is None
    assert read_file("a.py", b"\xff") is None


def test_what_was_read_first_goes_where_the_limit_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_KEPT_LIMIT", 12)
    text = b"x = 1\n"
    for path in ("a.py", "b.py", "c.py"):
        read_file(path, text)
    assert list(files._KEPT) == ["b.py", "c.py"]
    assert files._kept_bytes == 12
    read_file("long.py", text * 3)
    assert list(files._KEPT) == ["long.py"], "the file at hand is kept in any case"
