"""Which files git tracks, read from its index file; git itself is never run.

The format is described in https://git-scm.com/docs/index-format (versions 2 to 4).
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

from transplt.base.text.regular_file import GIT_FILES, GIT_INDEX, read_regular

_GITLINK = 0o160000
_SPARSE_FOLDER = 0o040000


class Tracked:
    """The paths that git tracks below one folder, relative to it, as bytes with forward slashes."""

    def __init__(self, files: set[bytes], trees: set[bytes]) -> None:
        self.files = files
        self.folders = _parents(files) | _parents(trees) | trees
        self._trees = trees

    def has_file(self, path: str) -> bool:
        name = os.fsencode(path)
        return name in self.files or any(name.startswith(tree + b"/") for tree in self._trees)

    def has_folder(self, path: str) -> bool:
        name = os.fsencode(path)
        return name in self.folders or any(name.startswith(tree + b"/") for tree in self._trees)


def find_repository(folder: Path) -> Path | None:
    """The folder at or above `folder` that holds `.git`, or None."""
    return next((candidate for candidate in (folder, *folder.parents) if os.path.lexists(candidate / ".git")), None)


def read_tracked(folder: Path) -> Tracked | None:
    """What git tracks below `folder`, which may lie anywhere in a repository.

    None where there is no repository or its index cannot be understood: nothing is known to be untracked then.
    """
    top = find_repository(folder)
    if top is None:
        return None
    git = _git_folder(top)
    if git is None:
        return None
    try:
        data = read_regular(git / "index", GIT_INDEX)
        entries = parse_index(data, _hash_size(git))
    except (OSError, ValueError, IndexError, struct.error):
        return None
    prefix = os.fsencode(os.path.relpath(folder, top).replace(os.sep, "/")) + b"/"
    if prefix == b"./":
        prefix = b""
    files: set[bytes] = set()
    trees: set[bytes] = set()
    for path, mode in entries:
        if path.startswith(prefix):
            below = path[len(prefix) :].rstrip(b"/")
            (trees if mode in (_GITLINK, _SPARSE_FOLDER) else files).add(below)
        elif mode in (_GITLINK, _SPARSE_FOLDER) and prefix.startswith(path.rstrip(b"/") + b"/"):
            return None
    return Tracked(files, trees)


def parse_index(data: bytes, hash_size: int = 20) -> list[tuple[bytes, int]]:
    """(path, mode) of every entry of an index file. ValueError when it is not one that we understand."""
    if len(data) < 12 or data[:4] != b"DIRC":
        raise ValueError("not a git index")
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        raise ValueError(f"unknown index version {version}")
    entries: list[tuple[bytes, int]] = []
    at = 12
    previous = b""
    for _ in range(count):
        start = at
        (mode,) = struct.unpack_from(">I", data, at + 24)
        at += 40 + hash_size
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if version >= 3 and flags & 0x4000 else 2
        if version == 4:
            strip, at = _varint(data, at)
            end = data.index(b"\0", at)
            path = previous[: len(previous) - strip] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            path = data[at:end]
            at = start + (end - start + 8) // 8 * 8
        previous = path
        entries.append((path, mode))
    if _has_extension(data, at, hash_size, b"link"):
        raise ValueError("a split index")
    return entries


def _has_extension(data: bytes, at: int, hash_size: int, name: bytes) -> bool:
    while at + 8 <= len(data) - hash_size:
        if data[at : at + 4] == name:
            return True
        (size,) = struct.unpack_from(">I", data, at + 4)
        at += 8 + size
    return False


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    value = byte & 0x7F
    while byte & 0x80:
        byte = data[at]
        at += 1
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at


def _git_folder(top: Path) -> Path | None:
    git = top / ".git"
    if git.is_dir():
        return git
    try:
        text = read_regular(git, GIT_FILES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    if not text.startswith("gitdir:"):
        return None
    return top / text.removeprefix("gitdir:").strip()


def _hash_size(git: Path) -> int:
    common = git
    with contextlib.suppress(OSError, UnicodeDecodeError):
        common = git / read_regular(git / "commondir", GIT_FILES).decode("utf-8").strip()
    try:
        config = read_regular(common / "config", GIT_FILES).decode("utf-8", "replace").lower().replace(" ", "")
    except OSError:
        return 20
    return 32 if "objectformat=sha256" in config else 20


def _parents(paths: set[bytes]) -> set[bytes]:
    found: set[bytes] = {b""}
    for path in paths:
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            if path in found:
                break
            found.add(path)
    return found
