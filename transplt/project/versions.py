"""What decides about a result besides the input: our own code and rules, LibCST, parsers of other files, and Python."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import transplt
from transplt.base.text.regular_file import OTHER, read_regular
from transplt.rules.tables import rules_dir

#: Packages that read the input for us, as distributions are called.
READERS = (
    "libcst", "nbformat", "packaging", "pathspec", "pyyaml", "ruamel-yaml", "tomlkit", "tree-sitter",
    "tree-sitter-bash",
    *(("tomli",) if sys.version_info < (3, 11) else ()),
)  # fmt: skip
#: Rooms that no result of `check` comes from: they stand above it, or are no part of it.
_ELSEWHERE = frozenset(
    {"emulator", "prove", "port", "diagnose", "survey", "agents", "editor", "commands", "__pycache__", "_rules"}
)
_METADATA = re.compile(r"(.+?)-([^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info")


@cache
def versions_digest() -> str:
    """One digest of all versions; of our own code and rules the content counts. Empty where one is unknown."""
    readers = _versions_of(READERS)
    if set(readers) != set(READERS):
        return ""
    ours = (transplt.__version__, sys.version, sorted(readers.items()))
    digest = hashlib.blake2b(repr(ours).encode(), digest_size=16)
    try:
        for top in (Path(transplt.__file__).resolve().parent, rules_dir()):
            for path in _below(str(top)):
                data = read_regular(path, OTHER)
                digest.update(f"\0{path[len(str(top)) :]}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    except OSError:
        return ""
    return digest.hexdigest()


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
