"""Folders in which an output is made: held by the process that makes it, and removed when that was killed.

Such a folder is a sibling of the output with a name of ours, holds a mark, and is locked as long as the process or one
of its workers lives. All three must hold before a later run takes it for a left-over; a folder of anybody else stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transplt.base.errors import reason, shown
from transplt.base.text.regular_file import RECORDS, read_regular

#: In a folder that is being made; gone once it is published.
MARK = ".transplt/unfinished"
_MOST_BYTES = 100
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def hidden(path: Path) -> str:
    """The part of a name from which the names of hidden siblings are made: the system takes 255 bytes of one."""
    return os.fsencode(path.name)[:_MOST_BYTES].decode("utf-8", "ignore")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Marks and locks a new folder of ours until the end. OSError when the mark cannot be written.

    Worker processes that are forked meanwhile hold the lock, too: as long as one lives, it may write.
    """
    handle = _open(folder)
    try:
        mark = {"tool": "transplt", "pid": os.getpid(), "locked": lock(handle, wait=True), **_machine()}
        (folder / MARK).parent.mkdir(mode=0o755)
        (folder / MARK).write_text(json.dumps(mark), "utf-8")
        yield
    finally:
        if handle is not None:
            os.close(handle)


def finished(folder: Path) -> None:
    """The folder is at its place: it is no left-over from here on."""
    with contextlib.suppress(OSError):
        os.unlink(folder / MARK)


def remove_leftovers(target: Path) -> list[str]:
    """Removes what killed runs left beside the output `target`, and says so, a sentence each.

    An output that such a run had moved aside to replace it is put back where none has taken its place.
    """
    name = re.compile(rf"\.{re.escape(hidden(target))}\.(old\.)?[a-z0-9_]{{8}}")  # as tempfile makes them
    try:
        with os.scandir(target.parent) as entries:
            found = sorted(
                entry.name for entry in entries if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
    return [note for each in found for note in _remove(target.parent / each, target)]


def _remove(folder: Path, target: Path) -> Iterator[str]:
    try:
        handle = _open(folder)
    except OSError:
        return
    try:
        locked = lock(handle)
        mark = _mark(folder)
        if locked is None or mark is None:
            return  # a run is at it, or it is none of ours
        if sys.platform != "win32" and os.lstat(folder).st_uid != os.geteuid():
            return  # somebody else's
        where = shown(folder)
        if not (locked and mark.get("locked") is True) or not _same_machine(mark):
            yield f"{where} is left over, unless a run on another machine still writes it: remove it by hand"
            return
        before = folder / target.name
        if os.path.lexists(before) and not os.path.lexists(target):
            os.rename(before, target)
            yield f"put back {shown(target)}, which a killed run had moved aside"
        remove_tree(folder)
        gone = "removed" if not folder.exists() else "cannot remove all of"
        yield f"{gone} {where}, left over from a run that was killed (process {mark['pid']})"
    except OSError as error:
        yield f"cannot remove {shown(folder)}, left over from a run that was killed: {reason(error)}"
    finally:
        if handle is not None:
            os.close(handle)


def _open(folder: Path) -> int | None:
    """A handle of a folder that is no link, to lock it by; None where the system has none. OSError when refused."""
    return None if sys.platform == "win32" else os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def lock(handle: int | None, *, wait: bool = False) -> bool | None:
    """Locks what is open. True: it is ours now. None: another process holds it.

    False: there are no locks here (Windows, some network disks). What is new is held by nobody but a run that looks
    at it for a moment.
    """
    if sys.platform == "win32" or handle is None:
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return None
    except OSError:
        return False
    return True


def _mark(folder: Path) -> dict[str, Any] | None:
    """What the mark of a folder says; None where there is none of ours."""
    try:
        if stat.S_ISDIR(os.lstat((folder / MARK).parent).st_mode):
            mark = json.loads(read_regular(folder / MARK, RECORDS, follow=False))
            known = isinstance(mark, dict) and mark.get("tool") == "transplt" and isinstance(mark.get("pid"), int)
            return mark if known else None
    except (OSError, ValueError, RecursionError):
        pass
    return None


def _machine() -> dict[str, str]:
    """The machine and its start, by which locks can be believed: a container has another name, and the same kernel."""
    try:
        boot = read_regular(_BOOT_ID, RECORDS).decode("ascii", "replace").strip()
    except OSError:
        boot = ""
    return {"host": "" if sys.platform == "win32" else os.uname().nodename, "boot": boot}


def _same_machine(mark: dict[str, Any]) -> bool:
    """True where the process of the mark was one of this kernel, or of this machine before it started again."""
    here = _machine()
    return mark.get("host") == here["host"] or (bool(here["boot"]) and mark.get("boot") == here["boot"])


def remove_tree(folder: Path) -> None:
    """Removes a folder of ours, read-only parts included; what the system keeps from us stays."""
    pending = [str(folder)]
    folders: list[str] = []
    while pending:
        path = pending.pop()
        folders.append(path)
        with contextlib.suppress(OSError):
            mode = os.lstat(path).st_mode
            if not stat.S_ISDIR(mode):  # a link that somebody put in its place
                continue
            if stat.S_IMODE(mode) & 0o700 != 0o700:
                os.chmod(path, 0o700)
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        os.unlink(entry.path)
    for path in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(path)
