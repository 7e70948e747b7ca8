"""The values of a TOML file: tables, arrays and inline tables, by one pass over its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transplt.edits.edit import Extent
from transplt.files.config.values import MOST_ITEMS, WORD, Holder, Value

LONGEST = 1_000_000
_DEEPEST = 50
_PLAIN = re.compile(rb"[+-]?(?:\d|inf\b|nan\b)|true\b|false\b")
_SHORT = 200
_TOKEN = re.compile(
    rb"(?P<space>[ \t\r]+|#[^\n]*)"
    rb"|(?P<line>\n)"
    rb"|(?P<long>\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"{3,5}|'''(?:[^']|'(?!''))*'{3,5})"
    rb"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
    rb"|(?P<mark>[{}\[\],=.])"
    rb"|(?P<bare>[^\s\"'{}\[\],=#.]+)",
    re.DOTALL,
)


class NotToml(ValueError):
    """The text is no TOML."""


def values(utf8: bytes) -> list[Value]:
    """The values of a text that have a word of CUDA, or whose key has, in the order of the file."""
    return _Reader(utf8).read()


class _Reader:
    """`tables`: the mapping of each path of keys, so that `[a]` and `a.b = 1` mean the same one."""

    def __init__(self, utf8: bytes) -> None:
        self.utf8 = utf8
        self.found: list[Value] = []
        self.tokens = list(_tokens(utf8))
        self.at = 0
        self.top = Holder()
        self.tables: dict[tuple[str, ...], Holder] = {(): self.top}

    def read(self) -> list[Value]:
        table = self.top
        while (kind := self._kind()) != "end":
            if kind == "line":
                self.at += 1
            elif self._is(b"["):
                double = self._text(self.at + 1) == b"["
                self.at += 2 if double else 1
                keys = self._keys(b"]")
                self.at += 1 if double else 0
                table = self._table(self.top, keys)
            else:
                self._entry(table)
        return self.found

    def _entry(self, table: Holder, depth: int = 0) -> None:
        keys = self._keys(b"=")
        holder = self._table(table, keys[:-1])
        self._value(holder, *keys[-1], depth=depth)

    def _keys(self, end: bytes) -> list[tuple[str, Extent]]:
        keys: list[tuple[str, Extent]] = []
        while not self._is(end):
            kind, start, stop = self._token()
            if kind == "string":
                keys.append((self.utf8[start + 1 : stop - 1].decode(), (start + 1, stop - 1)))
            elif kind == "bare":
                keys.append((self.utf8[start:stop].decode(), (start, stop)))
            elif self.utf8[start:stop] != b".":
                raise NotToml
        self.at += 1
        if not keys:
            raise NotToml
        return keys

    def _value(self, holder: Holder, name: str, key: Extent | None, before: str = "", depth: int = 0) -> str:
        """Read a value and all that is in it; the text of a scalar."""
        if depth > _DEEPEST:
            raise NotToml
        kind, start, stop = self._token()
        token = self.utf8[start:stop]
        if kind != "mark" or token == b".":
            return self._scalar(holder, name, key, before, kind, start, stop)
        if token not in (b"[", b"{"):
            raise NotToml
        if key is not None and WORD.search(name):
            self.found.append(Value.many(name, holder, key))
        inner = Holder(name, holder, token == b"[")
        closing = b"]" if inner.is_list else b"}"
        index, last = 0, ""
        self._skip_lines()
        while not self._is(closing):
            if inner.is_list:
                last = self._value(inner, str(index), None, last, depth + 1)
                index += 1
            else:
                self._entry(inner, depth + 1)
            self._skip_lines()
            if self._is(b","):
                self.at += 1
                self._skip_lines()
            elif not self._is(closing):
                raise NotToml
        self.at += 1
        return ""

    def _scalar(
        self, holder: Holder, name: str, key: Extent | None, before: str, kind: str, start: int, stop: int
    ) -> str:
        if kind == "bare":  # 1.5, 1979-05-27 07:32:00
            while self._kind() == "bare" or self._is(b"."):
                stop = self._token()[2]
            if not _PLAIN.match(self.utf8, start, stop):
                raise NotToml
        raw = self.utf8[start:stop]
        inner = raw if kind == "bare" else raw[3:-3] if kind == "long" else raw[1:-1]
        text = inner.decode()
        if len(text) <= _SHORT and (not holder.is_list or len(holder.texts) < MOST_ITEMS):
            holder.texts[name] = text
        if WORD.search(text) or (key is not None and WORD.search(name)):
            verbatim = kind == "string" and (raw[:1] == b"'" or b"\\" not in raw)
            extent = (start + 1, stop - 1) if verbatim else None
            lines = () if extent is None else (extent,)
            self.found.append(Value(text, name, holder, extent, (start, stop), key, before, lines))
        return text

    def _table(self, above: Holder, keys: list[tuple[str, Extent]]) -> Holder:
        here = above
        for name, at in keys:
            if WORD.search(name):
                self.found.append(Value.many(name, here, at))
            path = (*here.path(), name)
            here.texts.setdefault(name, "")
            here = self.tables.setdefault(path, Holder(name, here))
        return here

    # --- tokens ------------------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        return self.tokens[self.at][0]

    def _text(self, at: int) -> bytes:
        _, start, stop = self.tokens[at] if at < len(self.tokens) else ("end", 0, 0)
        return self.utf8[start:stop]

    def _is(self, mark: bytes) -> bool:
        return self._kind() == "mark" and self._text(self.at) == mark

    def _skip_lines(self) -> None:
        while self._kind() == "line":
            self.at += 1

    def _token(self) -> tuple[str, int, int]:
        found = self.tokens[self.at]
        if found[0] in ("end", "line"):
            raise NotToml
        self.at += 1
        return found


def _tokens(utf8: bytes) -> Iterator[tuple[str, int, int]]:
    at = 0
    while at < len(utf8):
        match = _TOKEN.match(utf8, at)
        if match is None:
            raise NotToml
        at = match.end()
        if match.lastgroup != "space":
            yield str(match.lastgroup), *match.span()
    yield "end", at, at
