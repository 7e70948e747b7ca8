"""Files of a project, each parsed once for all that read it in one process."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.base.text.memo import Memoized
from transplt.base.text.source import Source, UnreadableSource, read_source
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.parse import parse
from transplt.syntax.scan import Scan, scan


@dataclass(slots=True, eq=False)
class File(Memoized):
    """One parsed file."""

    path: str
    source: Source
    scan: Scan
    names: Names

    @classmethod
    def of(cls, path: str, data: bytes) -> File:
        """A file, parsed; its names are those that it knows without its project. Raises `UnreadableSource`."""
        source = read_source(data)
        found = scan(source, parse(source), path)
        return cls(path, source, found, Names(found))

    @property
    def module(self) -> str:
        return module_name(self.path)


def names_and_attributes(file: File) -> list[ast.Name | ast.Attribute]:
    """All names of a file, and behind them all attributes."""
    scan = file.scan
    return [node for groups in (scan.names, scan.attributes) for group in groups.values() for node in group]


#: Bytes of source up to which files are kept parsed.
_LIMIT = 64_000_000
#: Bytes of source whose trees wait for their own turn, over all processes: each takes some 45 times as much memory, and
#: parsing it again costs less than a tenth of the work on it.
WAITING = 6_000_000


@dataclass(slots=True, eq=False)
class Files:
    """The files of a project that this process has parsed; those of another process are its own (see `__reduce__`).

    `parsed` are those that others of their project read, too: what was read first goes where the limit is met.
    `waiting` are those whose facts are known and that wait for their own turn; what comes where the limit is met is not
    kept, and the files are `many` then. `silent` are the hashes of those in which no rule has a word.
    """

    parsed: dict[tuple[str, bytes], File] = field(default_factory=dict)
    waiting: dict[str, tuple[bytes, File]] = field(default_factory=dict)
    silent: dict[str, int] = field(default_factory=dict)
    room: int = WAITING
    many: bool = False
    _of_parsed: int = 0  # bytes
    _of_waiting: int = 0

    def __reduce__(self) -> tuple[type[Files], tuple[()]]:
        return Files, ()

    def read(self, path: str, data: bytes) -> File | None:
        """A file, None for one that cannot be read."""
        try:
            return self.parse(path, data)
        except UnreadableSource:
            return None

    def parse(self, path: str, data: bytes) -> File:
        """A file as `File.of` gives it, kept for the others."""
        known = self.parsed.get((path, data))
        if known is not None:
            return known
        file = File.of(path, data)
        while self.parsed and self._of_parsed + len(data) > _LIMIT:
            first = next(iter(self.parsed))
            del self.parsed[first]
            self._of_parsed -= len(first[1])
        self.parsed[path, data] = file
        self._of_parsed += len(data)
        return file

    def put_by(self, data: bytes, file: File) -> None:
        """Keep a file for its own turn."""
        if self._of_waiting + len(data) > self.room:
            self.many = True
        elif file.path not in self.waiting:
            self.waiting[file.path] = (data, file)
            self._of_waiting += len(data)

    def take(self, path: str, data: bytes) -> File | None:
        """The file whose turn it is, if it was kept and holds the same."""
        before, file = self.waiting.pop(path, (b"", None))
        self._of_waiting -= len(before)
        return file if before == data else None
