"""Reads a log of any size in pieces and gives what it finds to `Collected`; memory does not grow with the log."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import BinaryIO

from transplt.precision.diagnose.anchors import FRAME, NAMED, TRACEBACK, Anchors, slow_or_harmless
from transplt.precision.diagnose.cann_details import detail_in, with_details, with_rest
from transplt.precision.diagnose.endings import TAIL, end_of, last_lines, remark_of
from transplt.precision.diagnose.error_matches import errors_in, unknown_in
from transplt.precision.diagnose.findings import NEAR, Block, Collected, Line, added
from transplt.precision.diagnose.lines import (
    GOES_ON,
    MOST_BYTES,
    WARNED,
    Moment,
    logged_error,
    moment_of,
    named_in,
    parted,
    text_of,
)
from transplt.precision.diagnose.log_pieces import pieces_of
from transplt.precision.diagnose.operators import operators_in, with_operators
from transplt.precision.diagnose.stacks import FRAME as A_FRAME
from transplt.precision.diagnose.stacks import Frame
from transplt.rules.errors import Kind

#: So far back a time is looked for that belongs to a line without one.
_BACK = 3_000
#: So much of the beginning of a log is asked which framework wrote it, besides its end and each traceback.
_HEAD = 65_536
_MOST_FRAMES, _MOST_STREAMS, _MOST_UNKNOWN = 64, 512, 2_000
#: A frame of a module that is being imported, in an installed package: what is loaded there may be for CUDA.
_AT_IMPORT = re.compile(r"-packages/.*, in (?:<module>|_load\w*)$")
#: So many lines later a line of CANN without a name still belongs to the message of the process that was named last.
_GOES_ON = 8
#: After an error, a traceback that begins so many lines later belongs to another failure.
_ANOTHER = 6
#: So many lines behind the last frame of a traceback its exception stands at most: source, marks, a note.
_BEHIND = 4


@dataclass(slots=True)
class _Stream:
    """What one process has printed lately."""

    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=_MOST_FRAMES))
    frames_at: int = -NEAR
    block: Block | None = None
    #: Operators that were named where no error had been seen yet, and in which line.
    operators: tuple[str, ...] = ()
    operators_at: int = -NEAR


class LogScan:
    """One log. `scan` reads all of it; what is found goes to `collected`."""

    def __init__(self, name: str, collected: Collected) -> None:
        self.name = name
        self.lines = 0
        self.bytes = 0
        self.cut_short: set[str] = set()
        self._collected = collected
        self._who = named_in(name, of_file=True)
        self._anchors = Anchors()
        self._streams: dict[str, _Stream] = {}
        self._unknown = 0
        self._last = "", -NEAR
        self._found = False
        self._tail = b""

    def scan(self, file: BinaryIO) -> None:
        """Reads the log to its end. UnreadableLog for what is compressed or is no text of single bytes."""
        for piece in pieces_of(file):
            self._look(piece)
            self.bytes += len(piece)
            self._tail = (self._tail + piece[-TAIL:])[-TAIL:]
            head = piece[:_HEAD] if self.bytes == len(piece) else b""
            self._collected.wrote(head)
            self._collected.versions.look(head)
        for stream in self._streams.values():
            self._close(stream)
        self._collected.wrote(self._tail)
        self._collected.versions.look(self._tail)
        if not self._found and (end := end_of(self._tail)) is not None:
            error, text, around = end
            number = self.lines + (not self._tail.endswith(b"\n"))
            self._collected.end(Line(error, text, self.name, number, moment_of(text), self._who, around))
        elif (said := remark_of(self._tail)) is not None:
            self._collected.remark(Line(said[0], said[1], self.name, self.lines, moment_of(said[1]), self._who))
        elif not self._found and (end_lines := last_lines(self._tail)):
            last = end_lines[-1]
            line = Line(None, last, self.name, self.lines, moment_of(last), self._who, end_lines)
            self._collected.last_lines.append(line)
        self.cut_short = {literal.decode("utf-8", "replace") for literal in self._anchors.left_out}
        self._collected.not_read_on(self.cut_short)

    def _look(self, piece: bytes) -> None:
        position, counted, number = 0, 0, self.lines + 1
        while (match := self._anchors.expression.search(piece, position)) is not None:
            begin = max(piece.rfind(b"\n", 0, match.start()), piece.rfind(b"\r", 0, match.start())) + 1
            end = _end_of_line(piece, match.start())
            number += piece.count(b"\n", counted, begin)
            counted = begin
            raw = piece[max(begin, match.start() - MOST_BYTES) : min(end, match.start() + MOST_BYTES)]
            # The rest of a line that is longer is looked at, too.
            position = min(max(end, match.end()), match.start() + MOST_BYTES)
            self._line(text_of(raw), number, piece, begin, end)
            self._anchors.seen(match[0])
        self.lines += piece.count(b"\n")

    def _line(self, text: str, number: int, piece: bytes, begin: int, end: int) -> None:
        whole = text
        who, text = parted(whole)
        if who:
            self._last = who, number
        elif number - self._last[1] <= _GOES_ON and GOES_ON.match(text):
            who, self._last = self._last[0], (self._last[0], number)
        stream = self._streams.get(who) or _Stream()
        if len(self._streams) < _MOST_STREAMS:
            self._streams[who] = stream
        if FRAME in text and (match := A_FRAME.match(text)):
            source = parted(text_of(piece[end + 1 : _end_of_line(piece, end + 1)][:400]))[1].strip(" \t|│")
            stream.frames.append(Frame(match["path"], int(match["line"]), (match["function"] or "").strip(), source))
            self._collected.wrote(text.encode())
            stream.frames_at = number
            self._ending(stream, who, text, number, piece, end)
            if not _AT_IMPORT.search(text):
                return
        if TRACEBACK in text:
            if stream.block and number - stream.block.last > _ANOTHER:
                self._close(stream)
            stream.frames.clear()
            return
        errors = errors_in(text, whole)
        self._operators(stream, operators_in(text), number)
        # A traceback that was pasted with an indent ends with one, too.
        behind = text.lstrip(" \t>|│") if number - stream.frames_at <= _BEHIND else text
        if not errors and (self._unknown >= _MOST_UNKNOWN or not unknown_in(behind, logged_error(whole))):
            self._detail(stream, text, number)
            return
        moment = moment_of(text) or moment_of(whole) or _moment_before(piece, begin)
        named = who or named_in(text) or self._who
        # Around a line that is known nothing more needs to be shown.
        around = () if errors else _around(piece, begin, end)
        said = with_rest(text.strip(), piece, end) if errors else behind.strip()
        self._unknown += not errors
        passing = WARNED.search(whole[:400]) is not None
        for error in errors or (None,):
            line = Line(error, said, self.name, number, moment, named, around, passing)
            if error is not None and error.kind is Kind.CLUE:
                self._collected.clue(line)
            elif error is not None and slow_or_harmless(error.kind):
                self._collected.remark(line)
            else:
                self._take(stream, line)
        self._detail(stream, text, number)

    def _ending(self, stream: _Stream, who: str, frame: str, number: int, piece: bytes, end: int) -> None:
        """The exception behind the last frame of a traceback, where its name is none that is looked for anyhow."""
        indent = len(frame) - len(frame.lstrip())
        lines = piece[end + 1 : end + 2_000].split(b"\n", _BEHIND + 1)[: _BEHIND + 1]
        for offset, raw in enumerate(lines, 1):
            text = parted(text_of(raw))[1]
            if len(text) - len(text.lstrip()) >= indent and text.strip():
                if A_FRAME.match(text):
                    return
                continue
            said = text.strip()
            if NAMED.match(said) and unknown_in(said) is False and not errors_in(said):
                moment = moment_of(said) or _moment_before(piece, end)
                around = _around(piece, end, end + sum(len(each) + 1 for each in lines[:offset]))
                line = Line(None, said[:MOST_BYTES], self.name, number + offset, moment, who or self._who, around)
                self._take(stream, line)
            return

    def _operators(self, stream: _Stream, named: list[str], number: int) -> None:
        """Operators of a line go to the failure that is told of, or to the one that begins there."""
        if not named:
            return
        if stream.block and number - stream.block.last <= NEAR:
            stream.block.operators = with_operators(stream.block.operators, named)
            return
        known = stream.operators if number - stream.operators_at <= NEAR else ()
        stream.operators, stream.operators_at = with_operators(known, named), number

    def _detail(self, stream: _Stream, text: str, number: int) -> None:
        """What CANN says in a line goes to the failure that is told of."""
        if stream.block and number - stream.block.last <= NEAR:
            stream.block.details = with_details(stream.block.details, detail_in(text))

    def _take(self, stream: _Stream, line: Line) -> None:
        self._found = True
        if stream.block and line.number - stream.block.last > NEAR:
            self._close(stream)
        if stream.block is None:
            frames = tuple(stream.frames) if line.number - stream.frames_at <= NEAR else ()
            operators = stream.operators if line.number - stream.operators_at <= NEAR else ()
            stream.block = Block([], frames, operators=operators)
            stream.operators = ()
        elif not stream.block.frames and line.number - stream.frames_at <= NEAR:
            stream.block.frames = tuple(stream.frames)
        stream.block.last = line.number
        added(stream.block, line)

    def _close(self, stream: _Stream) -> None:
        if stream.block is not None and stream.block.lines:
            if not stream.block.frames and 0 < stream.frames_at - stream.block.last <= _MOST_FRAMES:
                # Those of a fatal error stand behind it, the innermost first.
                stream.block.frames = tuple(reversed(stream.frames))
            self._collected.block(stream.block)
        stream.block = None


def _end_of_line(piece: bytes, position: int) -> int:
    """Where the line ends that holds a position: at a line feed or, as progress bars have them, a carriage return."""
    end = piece.find(b"\n", position)
    end = len(piece) if end < 0 else end
    back = piece.find(b"\r", position, end)
    return end if back < 0 else back


def _moment_before(piece: bytes, begin: int) -> Moment | None:
    return moment_of(piece[max(0, begin - _BACK) : begin].decode("utf-8", "replace"))


def _around(piece: bytes, begin: int, end: int) -> tuple[str, ...]:
    """The two lines before a line and the two after it, without empty ones and fences."""
    before = [line for line in piece[max(0, begin - 600) : begin].splitlines() if line.strip(b" `")][-2:]
    after = [line for line in piece[end : end + 600].splitlines() if line.strip(b" `")][:2]
    return tuple(text_of(line)[:200] for line in (*before, b"", *after))
