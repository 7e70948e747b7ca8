"""Where the work on a file is: a process that is ended because of its file says it, in memory that it shares."""

from __future__ import annotations

from mmap import mmap

READ, PARSED, FOLLOWED, SEARCHED, EDITED, COUNTED, ANALYSED, KEPT = range(1, 9)
_WORDS = {
    READ: "it was read",
    PARSED: "it was parsed",
    FOLLOWED: "its values were followed",
    SEARCHED: "what has to change in it was looked for",
    EDITED: "its edits were made",
    COUNTED: "its words were counted",
    ANALYSED: "what it uses was looked up",
    KEPT: "what came of it was written",
}
#: One byte, which the parent reads; none in a process that nobody watches.
_shared: mmap | None = None


def share(cell: mmap | None) -> None:
    """From now on this process tells its stages there."""
    global _shared
    _shared = cell


def enter(stage: int) -> None:
    """The work on a file comes to a stage."""
    if _shared is not None:
        _shared[0] = stage


def words_of(cell: mmap | None) -> str:
    """The stage that a process told last, as `while ...`; empty where there is none."""
    said = _WORDS.get(cell[0], "") if cell is not None else ""
    return f"while {said}" if said else ""
