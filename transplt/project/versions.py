"""What decides about a result besides the input: our own code and rules, LibCST, parsers of other files, and Python."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import transplt
from transplt.base.text.regular_file import OTHER, read_regular
from transplt.rules.tables import rules_dir

if TYPE_CHECKING:
    from transplt.base.disk.cache_folder import Cache

#: Packages that read the input for us, as distributions are called.
READERS = (
    "libcst", "nbformat", "packaging", "pathspec", "pyyaml", "ruamel-yaml", "tree-sitter", "tree-sitter-bash",
    *(("tomli",) if sys.version_info < (3, 11) else ()),
)  # fmt: skip
#: Rooms that no result of `check` comes from: they stand above it, or are no part of it.
_ELSEWHERE = frozenset(
    {"emulator", "prove", "port", "diagnose", "survey", "agents", "editor", "commands", "__pycache__", "_rules"}
)
_METADATA = re.compile(r"(.+?)-([^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info")


#: What changed so many seconds ago may change again without another time: clocks of file systems are coarse.
_SETTLED = 3


@cache
def versions_digest(known: Cache | None = None) -> str:
    """One digest of all versions; of our own code and rules the content counts. Empty where one is unknown.

    What is `known` of files of ours that have the size, the times and the number that they had is not read again.
    """
    readers = _versions_of(READERS)
    if set(readers) != set(READERS):
        return ""
    tops = [str(Path(transplt.__file__).resolve().parent), str(rules_dir())]
    try:
        content = _content(tops) if known is None else _known_content(tops, known)
    except OSError:
        return ""
    ours = (transplt.__version__, sys.version, sorted(readers.items()), content)
    return hashlib.blake2b(repr(ours).encode(), digest_size=16).hexdigest()


def _content(tops: Sequence[str]) -> str:
    """The digest of all files below some folders."""
    digest = hashlib.blake2b(digest_size=16)
    for top in tops:
        for path in _below(top):
            data = read_regular(path, OTHER)
            digest.update(f"\0{path[len(top) :]}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest()


def _known_content(tops: Sequence[str], known: Cache) -> str:
    """The same, from the cache where it knows the files by what the system says of them, as git's index does."""
    found, latest = hashlib.blake2b(repr(tops).encode(), digest_size=16), 0
    for path in (path for top in tops for path in _below(top)):
        info = os.stat(path)
        latest = max(latest, info.st_mtime_ns, info.st_ctime_ns)
        seen = (path, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        found.update(repr(seen).encode("utf-8", "surrogatepass"))
    name = found.hexdigest()
    content = known.read(name, ours=True)
    if content is None:
        content = _content(tops)
        if latest < time.time_ns() - _SETTLED * 10**9:
            known.write(name, content, ours=True)
    return content


def _below(folder: str) -> Iterator[str]:
    """The files below a folder, in the order of their names."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _ELSEWHERE)
        yield from (os.path.join(where, name) for name in sorted(names) if not name.endswith(".pyc"))


def _versions_of(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of installed distributions, read from the names of their metadata; the first on the path counts.

    `importlib.metadata` would read eight files for that, and costs more to import than to ask.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            entries = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        here = {}
        for entry in entries:
            if (match := _METADATA.fullmatch(entry)) is not None:
                here[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
        for name in names:
            if name in here:
                found.setdefault(name, here[name])
    return found
