"""Which lines of a repository's files changed since a commit, as git sees them."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path

from transplt.base.disk.git_command import commit_before, difference, untracked
from transplt.base.errors import UsageError, shown

#: (first line, last line), counted from 1.
Lines = tuple[tuple[int, int], ...]
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_TO = b"+++ b/"
_QUOTED = b'+++ "b/'
#: All lines of a file that git does not know yet.
EVERY: Lines = ((1, 1 << 60),)


def changed_lines(top: Path, ref: str) -> dict[str, Lines]:
    """Path below `top` -> the lines of the working tree that HEAD's branch changed since it left `ref`.

    Files without such lines (deleted, renamed as they were) are not in it. UsageError where git cannot say.
    """
    try:
        base = commit_before(top, ref)
        patch, new = difference(top, base), untracked(top)
    except LookupError as error:
        raise UsageError(f"--since {shown(ref)}: {error}") from error
    except OSError as error:
        raise UsageError(f"--since {shown(ref)}: git cannot compare {shown(top)}: {error}") from error
    found = _hunks(patch)
    found |= {os.fsdecode(name): EVERY for name in new}
    return found


def _hunks(patch: bytes) -> dict[str, Lines]:
    found: dict[str, list[tuple[int, int]]] = {}
    name = ""
    left = 0  # lines of the hunk that are still to come: they may look like anything
    for line in patch.split(b"\n"):
        if left and line[:1] in b"+-":
            left -= 1
        elif (match := _HUNK.match(line)) is not None and name:
            old, start, new = (1 if group is None else int(group) for group in match.groups())
            left = old + new
            if new:
                found.setdefault(name, []).append((start, start + new - 1))
        elif line.startswith(_TO):
            name = os.fsdecode(line[len(_TO) :].removesuffix(b"\t"))
        elif line.startswith(_QUOTED):
            name = os.fsdecode(codecs.escape_decode(line[len(_QUOTED) :].rstrip(b'"\t'))[0])
        elif line.startswith(b"+++ "):
            name = ""
    return {name: tuple(lines) for name, lines in found.items()}
