"""The values of a TOML file: tables, arrays and inline tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transplt.base.text.toml_places import TomlValue, toml_rows
from transplt.edits.edit import Extent
from transplt.engine.files.config.values import MOST_ITEMS, WORD, Holder, Value

LONGEST = 1_000_000
_DEEPEST = 50
_PLAIN = re.compile(rb"[+-]?(?:\d|inf\b|nan\b)|true\b|false\b")
_SHORT = 200


class NotToml(ValueError):
    """The text is no TOML."""


def values(utf8: bytes) -> list[Value]:
    """The values of a text that have a word of CUDA, or whose key has, in the order of the file. NotToml."""
    rows = toml_rows(utf8.decode("latin-1"))  # a character for each byte
    if rows is None:
        raise NotToml
    reader = _Reader(utf8)
    for row in rows:
        reader.read(row)
    return reader.found


@dataclass(slots=True)
class _Open:
    """An array or an inline table that ends at `end`: how many items of it are read, and the text of the last one."""

    end: int
    holder: Holder
    count: int = 0
    last: str = ""


class _Reader:
    """`tables`: the mapping of each path of keys, so that `[a]` and `a.b = 1` mean the same one."""

    def __init__(self, utf8: bytes) -> None:
        self.utf8 = utf8
        self.found: list[Value] = []
        self.top = self.table = Holder()
        self.tables: dict[tuple[str, ...], Holder] = {(): self.top}
        self.open: list[_Open] = []

    def read(self, row: TomlValue) -> None:
        """Read the next row of the file."""
        keys = [(self.utf8[start:stop].decode(), (start, stop)) for start, stop in row.steps]
        while self.open and self.open[-1].end <= row.start:
            self.open.pop()
        if row.is_header:
            self.table = self._table(self.top, keys)
            return
        if len(self.open) > _DEEPEST:
            raise NotToml
        around = self.open[-1] if self.open else _Open(0, self.table)
        holder = self._table(around.holder, keys[:-1])
        name, key = keys[-1] if keys else (str(around.count), None)
        text = ""
        if (mark := self.utf8[row.start]) in b"[{":
            if key is not None and WORD.search(name):
                self.found.append(Value.many(name, holder, key))
            self.open.append(_Open(row.end, Holder(name, holder, mark == ord("["))))
        else:
            text = self._scalar(row, holder, name, key, around.last)
        around.count, around.last = around.count + 1, "" if keys else text

    def _table(self, above: Holder, keys: list[tuple[str, Extent]]) -> Holder:
        here = above
        for name, at in keys:
            if WORD.search(name):
                self.found.append(Value.many(name, here, at))
            path = (*here.path(), name)
            here.texts.setdefault(name, "")
            here = self.tables.setdefault(path, Holder(name, here))
        return here

    def _scalar(self, row: TomlValue, holder: Holder, name: str, key: Extent | None, before: str) -> str:
        raw = self.utf8[row.start : row.end]
        quotes = 3 if raw.startswith((b'"""', b"'''")) else int(raw.startswith((b'"', b"'")))
        if not quotes and not _PLAIN.match(raw):
            raise NotToml
        text = raw[quotes : len(raw) - quotes].decode()
        if len(text) <= _SHORT and (not holder.is_list or len(holder.texts) < MOST_ITEMS):
            holder.texts[name] = text
        if WORD.search(text) or (key is not None and WORD.search(name)):
            verbatim = quotes == 1 and (raw[:1] == b"'" or b"\\" not in raw)
            extent = (row.start + 1, row.end - 1) if verbatim else None
            self.found.append(Value(text, name, holder, extent, (row.start, row.end), key, before))
        return text
