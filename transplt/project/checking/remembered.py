"""What checks found before, from the user's cache: results of files, and their facts for each other, as JSON.

One file of the cache is for one project under one set of settings and versions: all that is in its name. In it each
result has a key of its own: path and bytes of its file, one digest over the facts of all files, and whether a
twin for the NPU lies beside it. So a file that changes and keeps its facts leaves the results of the others as they
are, and one with other facts makes all of them misses; the facts of files depend on their own bytes alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from transplt.base.disk.cache_folder import Cache
from transplt.base.disk.walk import Entry
from transplt.base.finding import Status
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.json_records import from_json, to_json
from transplt.base.text.regular_file import read_regular
from transplt.project.checking.checked_file import CheckedFile
from transplt.project.versions import versions_digest

if TYPE_CHECKING:
    from transplt.flow.facts import ModuleFacts  # what is remembered needs none

#: Bytes of a project that are held, so that what is worked on is what was hashed; what lies beyond is not remembered.
_HELD_BYTES = 128 * 1024 * 1024
#: Results of files that this run did not look at are carried on up to so many characters.
_MOST_CARRIED = 16 * 1024 * 1024


class Spoilt(Exception):
    """What the cache has of a project is no record of ours."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of a file: the digest of its bytes; its facts, their digest and as JSON (empty: not asked); what
    was found, the key of that and as JSON (empty: not known)."""

    content: str
    digest: str = ""
    facts: str = ""
    key: str = ""
    found: str = ""


@dataclass(slots=True)
class Remembered:
    """What is known of the files of one project; `alone`: they were looked at without it."""

    cache: Cache
    name: str
    root: str
    alone: bool
    rows: dict[str, Row] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)  # of the files that were read
    _before: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def of(cls, cache: Cache, root: str, settings: Settings, target: TorchTarget, *, alone: bool) -> Remembered:
        """What the cache has; nothing where that was spoilt."""
        name = _digest(repr((versions_digest(cache), root, alone, settings, target)))
        return cls(cache, name, root, alone, _before=_rows(cache.read(name)))

    def read(self, entries: Iterable[Entry]) -> None:
        """Reads files, and has rows for those that can be read: what is known of the same bytes, or nothing."""
        room = _HELD_BYTES
        for entry in entries:
            if entry.path in self.rows or entry.size > min(entry.limit.size, room):
                continue
            try:
                data = read_regular(f"{self.root}/{entry.path}", entry.limit, follow=False)
            except OSError:
                continue  # whoever works on it reports why
            room -= len(data)
            known, content = self._before.get(entry.path), _digest(data)
            self.rows[entry.path] = known if known is not None and known.content == content else Row(content)
            self.data[entry.path] = data

    def forget(self) -> None:
        """Nothing but the bytes is known."""
        self.rows = {path: Row(row.content) for path, row in self.rows.items()}
        self._before.clear()

    def not_indexed(self, sources: Sequence[Entry]) -> list[Entry]:
        """Those of which the facts are not known."""
        return [entry for entry in sources if entry.path not in self.rows or not self.rows[entry.path].digest]

    def keep_facts(self, path: str, facts: ModuleFacts | None) -> None:
        """The facts of a file; None: it has none."""
        if path in self.rows:
            text = to_json(facts)
            self.rows[path] = Row(self.rows[path].content, _digest(text), text)

    def facts(self, sources: Sequence[Entry]) -> list[ModuleFacts]:
        """The facts of files, from the cache. Spoilt when that is no record of ours."""
        from transplt.flow.facts import ModuleFacts

        texts = [self.rows[entry.path].facts for entry in sources if entry.path in self.rows]
        try:
            return [from_json(ModuleFacts, text) for text in texts if text != "null"]
        except ValueError as error:
            raise Spoilt from error

    def keys(self, sources: Sequence[Entry], wanted: Sequence[Entry]) -> dict[str, str]:
        """The keys of results; a file that could not be read has none."""
        rows = ((entry.path, self.rows[entry.path]) for entry in sources if entry.path in self.rows)
        digests = sorted((path, row.digest) for path, row in rows if row.facts != "null")  # others have none
        whole = _digest(repr(digests))
        return {entry.path: self._key(entry.path, whole) for entry in wanted if entry.path in self.rows}

    def results(self, keys: Mapping[str, str]) -> list[CheckedFile]:
        """The results that have these keys. Spoilt when one is no record of ours."""
        known = []
        for path, key in keys.items():
            if self.rows[path].key == key:
                try:
                    record = from_json(CheckedFile, self.rows[path].found)
                except ValueError as error:
                    raise Spoilt from error
                if record.path != path:
                    raise Spoilt
                known.append(record)
        return known

    def keep(self, records: Iterable[CheckedFile], keys: Mapping[str, str]) -> None:
        """Writes what is known now, with these results; what had a defect of ours or no text is looked at anew."""
        for record in records:
            if record.path in keys and record.status is Status.OK:
                row = self.rows[record.path]
                self.rows[record.path] = Row(row.content, row.digest, row.facts, keys[record.path], to_json(record))
        rows = dict(self.rows)
        if self.alone:
            others = {path: row for path, row in self._before.items() if path not in rows}
            if sum(len(row.found) for row in others.values()) < _MOST_CARRIED:
                rows |= others
        plain = {path: [row.content, row.digest, row.facts, row.key, row.found] for path, row in rows.items()}
        self.cache.write(self.name, json.dumps(plain, separators=(",", ":")))

    def _key(self, path: str, whole: str) -> str:
        beside = []
        if not path.endswith(".py"):
            from transplt.engine.files.twin_names import twins

            beside = [os.path.isfile(f"{self.root}/{twin}") for twin in twins(path)]
        return _digest(repr((path, self.rows[path].content, whole, beside)))


def _rows(text: str | None) -> dict[str, Row]:
    try:
        found = json.loads(text or "{}")
        if all(len(row) == 5 and all(type(each) is str for each in row) for row in found.values()):
            return {path: Row(*row) for path, row in found.items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        pass  # somebody else has written it
    return {}


def _digest(data: bytes | str) -> str:
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).hexdigest()
