"""Where in the bytes of a log to look: one compiled expression over large pieces, in linear time.

It finds places, no more: the line around each is then held against all known errors. A literal that comes up again and
again is left out after a while, so that a log that repeats one line a million times costs little; what is counted then
is "at least".
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from transplt.rules.errors import Kind, known_errors

#: What stands before the number of a return code. `error code is 507015`, `runtime result = 507033`, `ErrCode=207001`,
#: `retcode: 507011`, `ret[107001]`, `ret: 507011`, `return: 507018`, `failed : 507008`; and what
#: such lines hold besides.
NUMBER = re.compile(
    r"(?:[Ee]rror code(?: is)?[: ]*|error no is |runtime result = |result = ?|ErrCode=|retcode: ?|ret\[|ret: ?|"
    r"return: |failed ?: )(\d{6})(?!\d)"
)
_BEFORE_NUMBERS = (
    "NPU function error", "NPU error", "NPU warning", "HCCL function error", "OPS function error", "rror code",
    "[FUNC:", "ErrCode=", "Call aclInit", "Call rt api", "Call rtSetDevice", "rtSetDevice failed", "retcode:", "aclrt",
    "ACL stream",
)  # fmt: skip
#: `EI0002: ...`, `(EI0002):`, `EZ9999[PID: 1]`, `EH9999  [Init]`, `'errCode': 'E80012'`, `[EB0000]`,
#: `ErrorCode=EE1001.`; in answers of a server a line feed is written as \\n.
CANN = re.compile(r"(?:(?<![\w-])|(?<=\\n))(E[0-9A-Z]\d{4})(?=\s*[:\[\])'\"]|\s+[A-Z]|\.?\s*$)")
TORCH_NPU = re.compile(r"(?:(?<!\w)|(?<=\\n))ERR(\d\d)(\d{3})(?!\d)")
#: Lines that say that something is wrong, for errors that nobody knows.
UNKNOWN = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Failure|Failed):?(?: .*)?$"
)
LOGGED = re.compile(r"^\[?(?:ERROR|CRITICAL|EXCEPTION|FATAL)\]? ?[\w.]*[(:\]]| \[(?:ERROR|CRITICAL|FATAL)\] ")

TRACEBACK = "Traceback (most recent call last)"
FRAME = '  File "'
_UNKNOWN_LITERALS = (
    "Error: ", "Error\n", "Error\r\n", "Exception: ", "StopIteration", "[ERROR]", "[CRITICAL]", "[FATAL]",
)  # fmt: skip
_CODES = (rb"ERR\d{5}", rb"E[0-9A-OZ]\d{4}")
#: So often a place is looked at before it is left out.
_OFTEN, _OFTEN_FRAMES = 2_000, 200_000


class Anchors:
    """The expression for one log, which grows smaller."""

    def __init__(self) -> None:
        literals = {sign.literal for error in known_errors() for sign in error.signs}
        every = (*literals, *_BEFORE_NUMBERS, *_UNKNOWN_LITERALS, TRACEBACK, FRAME)
        self._literals = {_rare_part(each.encode()) for each in every}
        self._often: Counter[bytes] = Counter()
        self.left_out: set[bytes] = set()
        self._codes: tuple[bytes, ...] = _CODES
        self.expression = self._compiled()

    def seen(self, literal: bytes) -> None:
        """Counts one place; leaves its literal out when it came up often enough."""
        self._often[literal] += 1
        if self._often[literal] < (_OFTEN_FRAMES if literal in _FRAMES else _OFTEN):
            return
        self.left_out.add(literal)
        if literal in self._literals:
            self._literals.discard(literal)
        else:  # a code: one expression has all of them, so that it is looked for no more but by the words beside it
            self._codes = tuple(code for code in self._codes if not re.fullmatch(code, literal))
        self.expression = self._compiled()

    def _compiled(self) -> re.Pattern[bytes]:
        # One flat choice: only then the search begins with the set of first bytes, ten times as fast.
        trie = _trie(self._literals)
        words = [re.escape(bytes([byte])) + _alternatives(below) for byte, below in trie.items()]
        return re.compile(b"|".join([*self._codes, *words]) or b"(?!)")


def _rare_part(literal: bytes) -> bytes:
    """The part of a literal that begins with the byte that is rarest in logs: the search stops there alone."""
    starts = range(max(1, len(literal) - _SHORTEST + 1))
    best = min(starts, key=lambda start: (_COMMON.find(literal[start : start + 1]) + 1 or len(_COMMON) + 1, start))
    return literal[best:]


#: Bytes from rare to common in logs of trainings; what is not here is more common.
_COMMON = b"^~@{}`$&?!#\\QJXYKVUHBGCNPOMWFSLTRDAIE*'\"<>()[];+%q_zjxvkb"
_SHORTEST = 6
_FRAMES = {_rare_part(FRAME.encode()), _rare_part(TRACEBACK.encode())}


def _trie(words: set[bytes]) -> dict[Any, Any]:
    root: dict[Any, Any] = {}
    for word in sorted(words):
        node = root
        for byte in word:
            node = node.setdefault(byte, {})
        node[None] = {}
    return root


def _alternatives(node: dict[Any, Any]) -> bytes:
    """The expression for a trie. A word that begins another one ends the search: the whole line is looked at anyway."""
    if not node or None in node:
        return b""
    parts = [re.escape(bytes([byte])) + _alternatives(below) for byte, below in node.items()]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"


def slow_or_harmless(kind: Kind) -> bool:
    """True for lines that are no errors."""
    return kind in (Kind.SLOW, Kind.HARMLESS)
