"""Another content for a file that is there: the whole of it or nothing."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file a new content at once, with its permission bits and, where the system allows it, its owner."""
    info = os.stat(path)
    start = os.fsencode(path.name)[:100].decode("utf-8", "ignore")  # a name has at most 255 bytes
    handle, name = tempfile.mkstemp(prefix=f".{start}.", suffix=".transplt", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        if info.st_uid != os.getuid() or info.st_gid != os.getgid():
            with contextlib.suppress(OSError):
                os.chown(name, info.st_uid, info.st_gid)
        os.chmod(name, stat.S_IMODE(info.st_mode))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
