"""The cache in the user's own cache folder: named texts that may be gone at any time, and never more than so much."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from transplt.base.errors import reason, shown
from transplt.base.text.regular_file import Limit, read_regular

#: What all files together may hold, and what one may.
MOST_BYTES = 256 * 1024 * 1024
KEPT = Limit("files of the cache are read", 64 * 1024 * 1024)
#: Tells backup programs to leave the folder out: https://bford.info/cachedir/
_TAG, _TAG_TEXT = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n"
_IGNORES = ".gitignore"
_NAME = re.compile(r"[0-9a-f]{32}\.(?:json|known)")
_UNFINISHED = re.compile(r"[0-9a-f]{32}\.(?:json|known)\.[a-z0-9_]{8}")  # as tempfile makes them
#: Results, and what is known of our own files: this is no content of the user's, and is not counted.
_RESULT, _OURS = ".json", ".known"
#: What is fetched or made once: the vendor's torch_npu with its driver, environments of projects, and the compiler for
#: Triton's kernels.
WHAT_RUNS_NEED = ("torch_npu", "environments", "ascend_compiler")
#: A file that is being written for so long is left over, in seconds.
_ABANDONED = 3600.0
_HEAD = b"transplt cache 1 "


class NoCache(Exception):
    """Why there is no cache, as a clause for the user."""


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where the cache lies, whether it is there or not: below what the platform gives a user for caches.

    `XDG_CACHE_HOME` (an absolute path, as its standard asks) or `~/.cache`, `~/Library/Caches` on macOS,
    `%LOCALAPPDATA%` on Windows. NoCache where the user has no such folder.
    """
    if platform == "win32":
        local = environment.get("LOCALAPPDATA", "")
        if not os.path.isabs(local):
            raise NoCache("LOCALAPPDATA names no folder")
        return Path(local, "transplt", "Cache")
    given = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given, "transplt")
    home = environment.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home) or not os.path.isdir(home):
        raise NoCache("there is no home folder")
    return Path(home, "Library/Caches" if platform == "darwin" else ".cache", "transplt")


@dataclass(frozen=True, slots=True)
class Cache:
    """The texts in one folder, by names of 32 hexadecimal digits. Processes may read and write at the same time: a
    file is replaced whole, and whoever writes last is the one who is read.
    """

    folder: Path

    @classmethod
    def of_user(cls) -> Cache:
        """The user's cache; the folder is made where it is missing. NoCache where it cannot be, or is not safe."""
        cache = cls(cache_folder())
        try:
            cache.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            info = os.stat(cache.folder)
        except (OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) else "no system has a folder of such a name"
            raise NoCache(f"{shown(cache.folder)} cannot be used: {why}") from error
        if sys.platform != "win32" and (info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise NoCache(f"others may write into {shown(cache.folder)}")
        return cache

    def read(self, name: str, *, ours: bool = False) -> str | None:
        """A text, of our own files or of the user's; None when it is not there, or is not what was written."""
        path = self.folder / f"{name}{_OURS if ours else _RESULT}"
        try:
            data = read_regular(path, KEPT, follow=False)
            head, _, body = data.partition(b"\n")
            if head != _head(body):
                return None
            with contextlib.suppress(OSError):
                os.utime(path)  # the oldest is what nobody has read for longest
            return body.decode("ascii")
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, name: str, text: str, *, ours: bool = False) -> None:
        """Keeps a text of ASCII, where that can be done, and drops the oldest when it is too much."""
        body = text.encode("ascii")
        if len(body) + len(_head(body)) >= min(KEPT.size, MOST_BYTES):
            return
        with contextlib.suppress(OSError):
            self._mark()
            self._write(f"{name}{_OURS if ours else _RESULT}", body)
            self._drop_oldest()

    def size(self) -> tuple[int, int]:
        """How many files it has, and how many bytes they hold."""
        found = [each for each in self._files() if each[2].suffix != _OURS]
        return len(found), sum(size for _, size, _ in found)

    def clear(self) -> tuple[int, int]:
        """Removes what transplt wrote, and the folder if nothing else is in it: how many files and bytes went."""
        count = gone = 0
        for _, size, path in list(self._files()):
            with contextlib.suppress(OSError):
                os.unlink(path)
                if path.suffix != _OURS:
                    count, gone = count + 1, gone + size
        with contextlib.suppress(OSError):
            left = set(os.listdir(self.folder))
            if _TAG in left and left <= {_TAG, _IGNORES}:
                for name in left:
                    os.unlink(self.folder / name)
                os.rmdir(self.folder)
        return count, gone

    def folders(self) -> list[Path]:
        """Those of WHAT_RUNS_NEED that are there."""
        return [path for name in WHAT_RUNS_NEED if (path := self.folder / name).is_dir() and not path.is_symlink()]

    def _mark(self) -> None:
        for name, text in ((_TAG, _TAG_TEXT), (_IGNORES, b"*\n")):
            with contextlib.suppress(FileExistsError), open(self.folder / name, "xb") as file:
                file.write(text)

    def _write(self, name: str, body: bytes) -> None:
        handle, made = tempfile.mkstemp(prefix=f"{name}.", dir=self.folder)
        try:
            with open(handle, "wb") as file:
                file.write(_head(body) + b"\n")
                file.write(body)
            os.replace(made, self.folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(made)
            raise

    def _drop_oldest(self) -> None:
        found = sorted(self._files())
        total, now = sum(size for _, size, _ in found), time.time()
        for changed, size, path in found:
            abandoned = _UNFINISHED.fullmatch(path.name) is not None
            if total > MOST_BYTES if not abandoned else now - changed > _ABANDONED:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file of the cache was last used, its bytes and where it lies."""
        try:
            with os.scandir(self.folder) as found:
                for each in found:
                    if _NAME.fullmatch(each.name) or _UNFINISHED.fullmatch(each.name):
                        with contextlib.suppress(OSError):
                            info = each.stat(follow_symlinks=False)
                            yield info.st_mtime, info.st_size, self.folder / each.name
        except OSError:
            return


def _head(body: bytes) -> bytes:
    return _HEAD + hashlib.blake2b(body, digest_size=16).hexdigest().encode()
