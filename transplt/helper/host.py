"""Files and output: what one rank does alone, or the ranks of one machine one after the other."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from transplt.helper.ranks import is_first, world_size

__all__ = ["first_on_host", "one_by_one", "save", "show", "written_aside"]

_Made = TypeVar("_Made")
#: The names that threads of this process are inside of.
_held: set[tuple[int, str]] = set()


@contextlib.contextmanager
def first_on_host(name: str) -> Iterator[None]:
    """The ranks of this machine go one after the other through what stands inside: one downloads, the others find.

    A lock on a file: ranks may come in any order, or not at all. A thread that is inside may enter again. Nothing that
    all ranks do together may stand inside.
    """
    inside = (threading.get_ident(), name)
    ranks = max(world_size(), int(os.environ.get("WORLD_SIZE", "1")))
    if ranks == 1 or inside in _held:
        yield
        return
    import fcntl  # Windows has none, and no ranks that share a card: a module for other hosts, too, is imported there

    key = hashlib.sha256(f"{__file__}\n{name}".encode()).hexdigest()[:16]
    path = os.path.join(tempfile.gettempdir(), f"npu_port-{os.getuid()}-{key}.lock")
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.add(inside)
        try:
            yield
        finally:
            _held.discard(inside)
            fcntl.flock(lock, fcntl.LOCK_UN)  # not only by closing: a child that was forked inside has it open, too
    finally:
        os.close(lock)


def one_by_one(make: Callable[[], _Made]) -> _Made:
    """What `make()` returns, which the ranks of this machine call one after the other."""
    with first_on_host("downloads"):
        return make()


@contextlib.contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[str]:
    """A path of the same name in a folder beside `path`; what is written there comes to `path` in one piece at the end.

    After an exception it is removed, and `path` is as it was.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        yield target  # a device or a pipe, such as /dev/null
        return
    folder = tempfile.mkdtemp(prefix=".npu_port-", dir=os.path.dirname(target))
    try:
        aside = os.path.join(folder, os.path.basename(target))
        yield aside
        if os.path.exists(aside):
            os.replace(aside, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save(obj: Any, path: Any, **options: Any) -> None:
    """torch.save(obj, path, **options) on rank 0 alone; nobody ever sees half a file."""
    if not is_first():
        return
    if isinstance(path, (str, os.PathLike)):
        with written_aside(path) as aside:
            torch.save(obj, aside, **options)
    else:
        torch.save(obj, path, **options)


def show(*values: Any, **options: Any) -> None:
    """print(*values, **options) on rank 0 alone."""
    if is_first():
        print(*values, **options)
