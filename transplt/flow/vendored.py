"""Copies of other people's packages in the tree, by their version: those that handle NPUs themselves stay as they are.

Since which version a package does: rules/support/third_party.json, the rows whose status is `native`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from transplt.rules.packages import packages

_FOLDER = re.compile(
    r"(?P<folder>(?:.*/)?(?:third_?party|3rd_?party|_?vendor(?:ed)?|extern(?:al)?s?|deps|submodules)/(?:.*/)?"
    r"(?P<package>\w+))/(?:__init__|_?_?version_?_?|_?_?about_?_?)\.py",
    re.IGNORECASE,
)
_VERSION = re.compile(rb"^__version__[ \t]*(?::[ \t]*str[ \t]*)?=[ \t]*[\"'](\d[\w.]{0,30})[\"']", re.MULTILINE)
_SINCE = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a package: its folder, the file that says its version, and the first version that handles NPUs."""

    folder: str
    path: str
    package: str
    version: str
    since: str

    @property
    def handles_npu(self) -> bool:
        """True when this version handles NPUs."""
        own, first = ([*map(int, re.findall(r"\d+", each)[:3])] for each in (self.version, self.since))
        return own >= first


def copy_of(path: str, data: bytes) -> Copy | None:
    """The copy whose version a file says; None for any other file."""
    match = _FOLDER.fullmatch(path)
    if match is None or (since := _native().get(match["package"])) is None:
        return None
    version = _VERSION.search(data)
    return None if version is None else Copy(match["folder"], path, match["package"], version[1].decode(), since)


def around(copies: Iterable[Copy], path: str) -> Copy | None:
    """The copy that a file is part of."""
    return next((copy for copy in copies if path.startswith(f"{copy.folder}/")), None)


@cache
def _native() -> dict[str, str]:
    """The first version that handles NPUs, by the name under which a package is imported."""
    found = ((row, _SINCE.match(row.get("since") or "")) for row in packages() if row["status"] == "native")
    return {name: since.group() for row, since in found if since is not None for name in row["import"]}
