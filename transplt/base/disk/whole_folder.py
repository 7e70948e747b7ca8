"""A folder that is there whole or not at all, whoever makes it at the same time."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from transplt.base.disk.leftovers import remove_tree

#: A folder that is being made for so long is left over from a process that was killed, in seconds.
_ABANDONED = 24 * 3600.0


@contextlib.contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill; at the end of the block it becomes `target`, unless another process was faster, whose
    folder stays. It goes where the block raises. OSError when the system refuses.
    """
    prefix = f".{target.name}."
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in target.parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                remove_tree(left)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield made
        try:
            os.rename(made, target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        remove_tree(made)
