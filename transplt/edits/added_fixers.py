"""Fixers of other packages: found by their entry point, when the user names them.

A package has them in the group `transplt.fixers`: a name, and the module that states the fixers. One that lies in the
current folder or below the input is not found, and what is loaded is not from there: an input brings no code into us.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from transplt.base.errors import UsageError, shown
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.edits.fixer import Fixer, fixers_in

GROUP = "transplt.fixers"
#: What fixers of others speak with: for edits, and for what a person has to do.
CODES = ("NPU018", "NPU019")
_MOST_NAMES = 5


class Added(NamedTuple):
    """What of a package takes part in a migration; `digest` is one over the sources of the module."""

    name: str
    distribution: str
    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name} of {self.distribution} {self.version}"


_LOADED: dict[Added, tuple[Fixer, ...]] = {}


def find_added(names: Sequence[str], source: Path) -> tuple[Added, ...]:
    """The fixers of these names for an input at `source`, loaded. UsageError for one that is missing or is no fixer."""
    return tuple(_load(name, source) for name in dict.fromkeys(names))


def added_fixers(added: Sequence[Added]) -> tuple[Fixer, ...]:
    """The fixers themselves; in a process that has not loaded them, they are."""
    for each in added:
        if each not in _LOADED and _load(each.name, None) != each:
            raise UsageError(f"the fixer {each} has changed while transplt worked")
    return tuple(fixer for each in added for fixer in _LOADED[each])


def _load(name: str, source: Path | None) -> Added:
    path = trusted_path(source)
    found = [
        (distribution, point)
        for distribution in metadata.distributions(path=path)
        for point in distribution.entry_points
        if point.group == GROUP
    ]
    fitting = {distribution.metadata["Name"]: (distribution, point) for distribution, point in reversed(found)
               if point.name == name}  # fmt: skip
    if not fitting:
        known = sorted({point.name for _, point in found})[:_MOST_NAMES]
        there = f"; installed: {', '.join(map(shown, known))}" if known else ""
        raise UsageError(
            f"no installed package has a fixer {shown(name)}{there} (what lies in the current folder or in the input "
            "does not count)"
        )
    if len(fitting) > 1:
        raise UsageError(f"several packages have a fixer {shown(name)}: {', '.join(sorted(map(shown, fitting)))}")
    ((title, (distribution, point)),) = fitting.items()
    subject = f"the fixer {shown(name)} of {shown(title)} {shown(distribution.version)}"
    try:
        with path_is(path):
            fixers = fixers_in(point.module)
            files = [*files_of(point.module)]
    except Exception as error:
        raise UsageError(f"{subject} cannot be loaded: {type(error).__name__}: {shown(str(error))}") from error
    if any(not trusted(os.path.dirname(file), source) for file in files):
        raise UsageError(f"{subject} lies in the current folder or in the input")
    wrong = [fixer for fixer in fixers if fixer.code not in CODES or fixer.theme]
    if not fixers or wrong:
        why = f"states {wrong[0].code} or a theme" if wrong else "states no Fixer"
        raise UsageError(f"{subject} {why}; it has to have {' or '.join(CODES)}")
    added = Added(name, title, distribution.version, digest_of(files))
    _LOADED[added] = fixers
    return added


def digest_of(files: Sequence[str]) -> str:
    """One over the contents of sources."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        data = read_regular(file, SOURCE)
        digest.update(f"{os.path.basename(file)}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest()


def trusted_path(source: Path | None) -> list[str]:
    """The entries of `sys.path` from which code is loaded for an input at `source`."""
    return [entry for entry in sys.path if trusted(entry, source)]


def trusted(entry: str, source: Path | None) -> bool:
    """False for the current folder, and for what lies in an input: but not for where Python itself has its packages."""
    if not entry or not os.path.isabs(entry):
        return False
    folder = Path(os.path.realpath(entry))
    if str(folder) in {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}:
        return True
    return folder != Path.cwd().resolve() and not (source is not None and source in (folder, *folder.parents))


@contextmanager
def path_is(path: Sequence[str]) -> Iterator[None]:
    """`sys.path` is this one meanwhile."""
    before = sys.path[:]
    sys.path[:] = path
    try:
        yield
    finally:
        sys.path[:] = before


def files_of(module: str) -> Iterator[str]:
    """The sources of a module, or of a package with all that it holds."""
    loaded = importlib.import_module(module)
    if not hasattr(loaded, "__path__"):
        yield str(loaded.__file__)
        return
    for top in loaded.__path__:
        for where, folders, names in os.walk(top):
            folders.sort()
            yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(".py"))
