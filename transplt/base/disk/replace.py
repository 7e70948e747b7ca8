"""A file that is replaced, or that a user asked for by its name: the whole of it or nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from transplt.base.disk.leftovers import hidden, lock
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.text.regular_file import open_regular

_SUFFIX = ".transplt"
_UNFINISHED = re.compile(rf"\.(.+)\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}", re.DOTALL)  # as tempfile makes them


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file a new content at once, with its permission bits and, where the system allows it, its owner."""
    info = os.stat(path)

    def same_owner(name: str) -> None:
        if sys.platform != "win32" and (info.st_uid != os.getuid() or info.st_gid != os.getgid()):
            with contextlib.suppress(OSError):
                os.chown(name, info.st_uid, info.st_gid)
        os.chmod(name, stat.S_IMODE(info.st_mode))

    _put(path, data, same_owner)


def write_whole(path: Path, data: bytes) -> None:
    """Makes a file, or gives the one that is there a new content: the whole of it or nothing. OSError as the system."""
    if os.path.lexists(path):
        replace_file(path, data)
    else:
        _put(path, data, lambda name: os.chmod(name, 0o644))


def _put(path: Path, data: bytes, finish: Callable[[str], None]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{hidden(path)}.", suffix=_SUFFIX, dir=path.parent)
    try:
        with open(handle, "wb") as file:
            lock(handle, wait=True)
            file.write(data)
        finish(name)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


#: Why a file may not be replaced that can be written: its folder is closed, or it is mounted there by itself.
_ONLY_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS})


def write_asked_for(
    path: str | os.PathLike[str], data: bytes, inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Writes the file that an option names (`--report FILE`), new or in place of another one. CannotFinish otherwise.

    A regular file has its old content until the new one is complete; what is none (/dev/stdout, a FIFO) gets the bytes.
    UsageError where it is one of the `inputs`.
    """
    at = Path(os.path.realpath(path))
    if at.is_file() and any(os.path.realpath(each) == str(at) for each in inputs):
        raise UsageError(f"{shown(path)} is the input; name another file for what is written")
    try:
        if not at.exists():
            _put(at, data, _as_usual)
        elif at.is_file():
            try:
                replace_file(at, data)
            except OSError as error:
                if error.errno not in _ONLY_IN_PLACE:
                    raise
                at.write_bytes(data)
        else:
            Path(path).write_bytes(data)
    except OSError as error:
        raise CannotFinish(f"cannot write {shown(path)}: {reason(error)}") from error


def _as_usual(name: str) -> None:
    """Gives a file the permission bits that a new one has."""
    usual = os.umask(0)
    os.umask(usual)
    os.chmod(name, 0o666 & ~usual)


def remove_unfinished(paths: Iterable[Path]) -> Iterator[str]:
    """Removes what `replace_file` left beside some files when it was killed, and says so, a sentence each.

    That is a regular file of ours, with a name as made there, which no process holds.
    """
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).add(hidden(path))
    for folder, beside in sorted(names.items()):
        with contextlib.suppress(OSError):
            for each in sorted(os.listdir(folder)):
                made = _UNFINISHED.fullmatch(each)
                if made is not None and made[1] in beside and _removed(folder / each):
                    yield f"removed {shown(folder / each)}, left over from a run that was killed"


def _removed(left: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        with open_regular(left, follow=False) as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid() or not lock(file.fileno()):
                return False
            os.unlink(left)
    except OSError:
        return False
    return True
