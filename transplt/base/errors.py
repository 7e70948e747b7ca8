"""The errors that end a run, each with the exit code of the command line."""

from __future__ import annotations

import errno
import os


class TranspltError(Exception):
    """A run that ends early: the text is one sentence for the user."""

    exit_code = 3


class UsageError(TranspltError):
    """Wrong usage, input, rules or settings: nothing was written."""

    exit_code = 2


class CannotFinish(TranspltError):
    """The run could not finish (full disk, a folder that cannot be written); no partial output is left."""

    exit_code = 3


#: Of a longer path its two ends are shown.
_LONGEST = 300
_END = 100
#: Folders are made and gone through by functions that call themselves.
_DEEPEST = 400


def shown(path: str | os.PathLike[str]) -> str:
    """`path` as printable text: bytes that are not UTF-8, control characters and lone surrogates are escaped.

    One that no sentence can hold is shortened in the middle.
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if len(text) <= _LONGEST else f"{text[:_END]}...{text[-_END:]}"


def possible_path(path: str) -> str:
    """The path. UsageError where no file has such a name: it is too long, too deep, or holds a null byte."""
    if path.count(os.sep) > _DEEPEST:
        raise UsageError(f"{shown(path)}: it names more than {_DEEPEST} folders, one in the other")
    try:
        os.lstat(path)
    except ValueError as error:
        raise UsageError(f"{shown(path)}: no system has a file of such a name") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{shown(path)}: {reason(error)}") from error
    return path


def reason(error: OSError) -> str:
    """What the system says about `error`, without the path: `No space left on device`."""
    return error.strerror or type(error).__name__
