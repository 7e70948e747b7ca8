"""`corpus/<target>/`: inputs that once failed, one a file, which every run replays."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "corpus"
#: A corpus is of small files.
MAX_BYTES = 256 * 1024

#: Entries (target/name), and targets as such, that still fail, and where that is written down. Whoever mends one takes
#: its line out.
STILL_FAILING: dict[str, str] = {}


def entries(target: str) -> list[Path]:
    """The stored inputs of a target, sorted by name."""
    folder = FOLDER / target
    return sorted(folder.iterdir()) if folder.is_dir() else []


def store(target: str, data: bytes, name: str = "") -> Path:
    """Keep an input; without a name it gets one from its content. ValueError for one too large, or a name taken."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data)} bytes are too many for the corpus (at most {MAX_BYTES}); cut it down")
    name = name or "found-" + hashlib.sha256(data).hexdigest()[:12]
    if not re.fullmatch(r"[\w.-]{1,80}", name):
        raise ValueError(f"{name!r} is no name for a file of the corpus")
    path = FOLDER / target / name
    if path.exists() and path.read_bytes() != data:
        raise ValueError(f"{path} holds something else already")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
