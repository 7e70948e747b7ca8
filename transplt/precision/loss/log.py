"""Reads the curves of one log: text, JSON lines, trainer_state.json, TensorBoard's event files or a folder of them."""

from __future__ import annotations

import io
import json
import os
import re
from typing import BinaryIO

from transplt.base.errors import UsageError, reason, shown
from transplt.base.text.regular_file import Limit, open_regular, read_regular
from transplt.precision.diagnose.lines import MOST_BYTES, parted, text_of
from transplt.precision.diagnose.log_pieces import UnreadableLog, pieces_of
from transplt.precision.loss.curve import Curves
from transplt.precision.loss.events import BrokenEvents, event_files, is_event_file, scalars_in
from transplt.precision.loss.line import LogEntry, Words, object_of, read_line, read_object
from transplt.precision.loss.table import Table

_DOCUMENT = Limit("JSON documents are read", 64 * 1024 * 1024)
_LINES = re.compile(rb"[^\r\n]+")


def read_log(path: str, words: Words, pattern: re.Pattern[str] | None = None) -> Curves:
    """The curves of a file or of a folder with event files. UsageError for what holds none or cannot be read."""
    curves = Curves(os.path.basename(os.path.normpath(path)) or path)
    try:
        if os.path.isdir(path):
            files = event_files(path)
            if not files:
                raise UsageError(f"{shown(path)} is a folder without TensorBoard's event files (*tfevents*)")
            for each in files:
                _events(str(each), words, curves)
            return curves
        with open_regular(path) as file:
            head = file.read(12)
        if is_event_file(head):
            _events(path, words, curves)
            return curves
        if path.endswith(".json") and pattern is None and os.path.getsize(path) <= _DOCUMENT.size:
            _document(read_regular(path, _DOCUMENT), words, curves)
        if not curves.by_who:
            with open_regular(path) as file:
                _Text(curves, words, pattern).read(file)
    except UnreadableLog as error:
        raise UsageError(f"{shown(path)}: {error}") from error
    except BrokenEvents as error:
        raise UsageError(f"{shown(path)}: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    return curves


def read_text(data: bytes, words: Words, pattern: re.Pattern[str] | None = None) -> Curves:
    """The curves of a text."""
    curves = Curves("")
    _Text(curves, words, pattern).read(io.BytesIO(data))
    return curves


def _events(path: str, words: Words, curves: Curves) -> None:
    for tag, value, step in scalars_in(path):
        if words.wanted(tag):
            curves.add(tag, value, float(step), None)


def _document(data: bytes, words: Words, curves: Curves) -> None:
    """A JSON file: a list of objects, or one that holds such a list (`log_history` of trainer_state.json)."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    rows = document if isinstance(document, list) else []
    if isinstance(document, dict):
        rows = document.get("log_history") or next((each for each in document.values() if isinstance(each, list)), [])
    for row in rows if isinstance(rows, list) else []:
        _keep(read_object(row, words), "", curves)


def _keep(entry: LogEntry, who: str, curves: Curves) -> None:
    curves.total_steps = max(curves.total_steps, entry.total_steps)
    curves.total_epochs = max(curves.total_epochs, entry.total_epochs)
    for name, value in entry.values:
        curves.add(name, value, entry.step, entry.epoch, who=who, redrawn=entry.redrawn)


class _Text:
    """A log as text; `epoch` is the last that a line without a value has named."""

    def __init__(self, curves: Curves, words: Words, pattern: re.Pattern[str] | None) -> None:
        self._curves = curves
        self._words = words
        self._pattern = pattern
        self._table: Table | None = None
        self._epoch: float | None = None

    def read(self, file: BinaryIO) -> None:
        """Reads it to its end; memory grows with the values only."""
        for piece in pieces_of(file):
            for line in _LINES.finditer(piece):
                self._line(piece[line.start() : min(line.end(), line.start() + MOST_BYTES)])
            self._curves.lines += piece.count(b"\n")

    def _line(self, raw: bytes) -> None:
        if self._pattern is not None:
            self._matched(text_of(raw))
            return
        lower = raw.lower()
        if self._words.literal in lower:
            who, text = parted(text_of(raw))
            found = object_of(text.strip())
            entry = read_object(found, self._words) if found is not None else read_line(text, self._words)
            if not entry.values and (table := Table.headed(text, self._words)):
                self._table = table
                return
        elif b"epoch" in lower:
            who, text = parted(text_of(raw))
            entry = read_line(text, self._words)
        elif self._table is not None:
            who, text, entry = "", text_of(raw), LogEntry()
        else:
            return
        if not entry.values and self._table is not None and (row := self._table.row(text, self._words)):
            entry = row
        if entry.epoch is None:
            entry.epoch = self._epoch
        elif not entry.values:
            self._epoch = entry.epoch
        _keep(entry, who, self._curves)

    def _matched(self, text: str) -> None:
        assert self._pattern is not None
        for match in self._pattern.finditer(text):
            named = match.groupdict()
            value = named.get("value", match[1] if self._pattern.groups else match[0])
            try:
                numbers = [None if each is None else float(each) for each in
                           (value, named.get("step"), named.get("epoch"))]  # fmt: skip
            except ValueError:
                continue
            if numbers[0] is not None:
                name = self._words.name or "loss"
                self._curves.add(name, numbers[0], numbers[1], numbers[2])
