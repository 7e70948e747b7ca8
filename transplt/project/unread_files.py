"""Files that could not be opened, and the finding that reports it; files on which transplt failed."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from transplt.base.finding import Effort, Finding, Level, Span

#: The place of a finding on a whole file.
TOP = Span(1, 1, 1, 1, 0, 0)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be opened, so that the output does not hold it."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Died:
    """In place of a result: the work on this file failed, or its process ended; `over`: its budget was used up."""

    why: str
    over: bool = False


def unread_finding(path: str, why: str) -> Finding:
    """The finding for what could not be opened."""
    message = f"this cannot be opened, so it is missing from the output: {why}"
    help_ = ("chmod -R u+rX, or " if why == os.strerror(errno.EACCES) else "") + "skip it with --exclude"
    return Finding(
        path, TOP, "NPU909", Level.MANUAL, message, effort=Effort.LOW, help=help_, details=(("why", why),)
    )  # fmt: skip
