"""Copies one file into the output: bytes, permission bits and a hash, in one go."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable

from transplt.base.text.regular_file import open_regular

_PIECE_BYTES = 1024 * 1024
#: Permission bits that a copy keeps; set-user-id and set-group-id are not among them.
_KEPT_BITS = 0o1777


class WriteError(Exception):
    """The output could not be written; `path` is relative to the output, `why` what the system says."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why


def write_file(folder: str, path: str, data: bytes, mode: int) -> str:
    """Writes a new file and returns its sha256 as hex digits. WriteError when the system refuses."""
    try:
        fd = os.open(f"{folder}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(fd, "wb", buffering=0) as file:
            _write_all(fd, data)
            os.chmod(file.fileno() if os.chmod in os.supports_fd else f"{folder}/{path}", mode & _KEPT_BITS)
    except OSError as error:
        raise WriteError(path, error.strerror or type(error).__name__) from error
    return hashlib.sha256(data).hexdigest()


def write_pieces(folder: str, path: str, pieces: Iterable[bytes], mode: int) -> str:
    """Writes a new file piece by piece and returns its sha256. WriteError when the system refuses."""
    digest = hashlib.sha256()
    write_file(folder, path, b"", stat.S_IWUSR | mode)
    try:
        with open(f"{folder}/{path}", "ab") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        os.chmod(f"{folder}/{path}", mode & _KEPT_BITS)
    except OSError as error:
        raise WriteError(path, error.strerror or type(error).__name__) from error
    return digest.hexdigest()


def copy_large_file(source: str, folder: str, path: str, mode: int) -> str:
    """Copies a file in pieces and returns its sha256. OSError when it cannot be read, WriteError when not written."""
    digest = hashlib.sha256()
    destination = f"{folder}/{path}"
    with open_regular(source) as origin:
        write_file(folder, path, b"", stat.S_IWUSR | mode)
        while piece := origin.read(_PIECE_BYTES):
            digest.update(piece)
            try:
                with open(destination, "ab", buffering=0) as copy:
                    _write_all(copy.fileno(), piece)
            except OSError as error:
                raise WriteError(path, error.strerror or type(error).__name__) from error
    os.chmod(destination, mode & _KEPT_BITS)
    return digest.hexdigest()


def hash_file(path: str) -> str:
    """The sha256 of a file. OSError when it cannot be read."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
