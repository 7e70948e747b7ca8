"""Where in the bytes of a log to look: one compiled expression over large pieces, in linear time.

It finds places, no more: the line around each is then held against all known errors. A literal that comes up again and
again is left out after a while, so that a log that repeats one line a million times costs little; what is counted then
is "at least".
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

from transplt.precision.diagnose.operators import BEFORE_OPERATORS
from transplt.rules.errors import Kind, known_errors

#: What stands before the number of a return code. `error code is 507015`, `runtime result = 507033`, `ErrCode=207001`,
#: `retcode: 507011`, `ret[107001]`, `ret: 507011`, `return: 507018`, `failed : 507008`, `aclnnStatus=561002`,
#: `errno:561000`, `errorCode = 507033`, `ret 107000`, `failed, result = 500002`,
#: `error:507011`. Numbers count where they are those of known errors.
NUMBER = re.compile(
    r"(?:(?:[Ee]rr(?:or)?[ _]?(?:[Cc]ode|[Nn]o)(?: is)?|\b[Rr]et(?:[Cc]ode)?|\brc) ?[:=\[(]{0,2} ?|\berror:|"
    r"(?:\bacl(?:nn)?[Ss]tatus|\b(?:runtime|ge|acl|aclnn|failed,) result|\breturn|\bfailed) ?[:=\[(]{1,2} ?)"
    r"(\d{6})(?!\d)"
)
_BEFORE_NUMBERS = (
    "NPU function error", "NPU error", "NPU warning", "HCCL function error", "OPS function error", "rror code",
    "[FUNC:", "ErrCode=", "Call aclInit", "Call rt api", "Call rtSetDevice", "rtSetDevice failed", "retcode:", "aclrt",
    "ACL stream", "rrorCode", "aclnnStatus", "runtime result", "AscendKernelLaunch", "acl ret",
    "failed, ret", "failed, result",
)  # fmt: skip
#: `EI0002: ...`, `(EI0002):`, `EZ9999[PID: 1]`, `EH9999  [Init]`, `'errCode': 'E80012'`, `[EB0000]`,
#: `ErrorCode=EE1001.`; in answers of a server a line feed is written as \\n.
CANN = re.compile(r"(?:(?<![\w-])|(?<=\\n))(E[0-9A-Z]\d{4})(?=\s*[:\[\])'\"]|\s+[A-Z]|\.?\s*$)")
TORCH_NPU = re.compile(r"(?:(?<!\w)|(?<=\\n))ERR(\d\d)(\d{3})(?!\d)")
#: Lines that say that something is wrong, for errors that nobody knows.
UNKNOWN = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Failure|Failed)|Exception(?=:))"
    r":?(?: .*)?$"
)
#: An exception of any name, as it stands behind the frames of a traceback.
NAMED = re.compile(r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*[a-z]\w*|(?<=\.)(?:error|timeout))(?:: \S.*)?$")
LOGGED = re.compile(r"^\[?(?:ERROR|CRITICAL|EXCEPTION|FATAL)\]? ?[\w.]*[(:\]]| \[(?:ERROR|CRITICAL|FATAL)\] ")
#: A sentence that complains, in a line that a logger wrote as an error: not a line of a traceback or of a list.
COMPLAINT = re.compile(
    r"(?=(?-i:[A-Z])[\w'-]* [a-z])"
    r"(?!Dumping |File |Traceback|During handling|The above exception|Note: |Since the operator)"
    r".*\b(?:fail\w*|error|insufficient|cannot|could not|can't|unable|unsupported|not supported|invalid|mismatch\w*|"
    r"missing|not found|refused|denied|exceed\w*|timed? ?out|too (?:large|small|long|many))\b",
    re.IGNORECASE,
)

TRACEBACK = "Traceback (most recent call last)"
FRAME = 'File "'
_UNKNOWN_LITERALS = (
    "Error: ", "Error\n", "Error\r\n", "Exception: ", "StopIteration", "[ERROR]", "[CRITICAL]", "[FATAL]",
    "ERROR ", " ERROR - ", "CRITICAL ",
)  # fmt: skip
_CODES = (rb"ERR\d{5}", rb"E[0-9A-PZ]\d{4}")
#: So often a place is looked at before it is left out.
_OFTEN, _OFTEN_FRAMES = 2_000, 200_000


class Anchors:
    """The expression for one log, which grows smaller."""

    def __init__(self) -> None:
        tails, expression = _whole()
        self._tails: dict[bytes, tuple[bytes, ...]] = {**tails}
        self._often: Counter[bytes] = Counter()
        self.left_out: set[bytes] = set()
        self._codes: tuple[bytes, ...] = _CODES
        self.expression = expression

    def seen(self, found: bytes) -> None:
        """Counts one place by what was found there; leaves it out when it came up often enough."""
        self._often[found] += 1
        if self._often[found] < (_OFTEN_FRAMES if found in _FRAMES else _OFTEN):
            return
        self.left_out |= {*self._tails.get(found, (found,))}
        if found in self._tails:
            del self._tails[found]
        else:  # a code: one expression has all of them, so that it is looked for no more but by the words beside it
            self._codes = tuple(code for code in self._codes if not re.fullmatch(code, found))
        self.expression = _compiled(self._tails, self._codes)


@cache
def _whole() -> tuple[dict[bytes, tuple[bytes, ...]], re.Pattern[bytes]]:
    """What each log begins with: the literals of all errors by their tails, and the expression; it takes some 30 ms."""
    literals = {sign.literal for error in known_errors() for sign in error.signs}
    every = {*literals, *_BEFORE_NUMBERS, *BEFORE_OPERATORS, *_UNKNOWN_LITERALS, TRACEBACK, FRAME}
    tails: dict[bytes, tuple[bytes, ...]] = {}
    for literal in sorted(each.encode() for each in every):
        tails[_tail(literal)] = (*tails.get(_tail(literal), ()), literal)
    return tails, _compiled(tails, _CODES)


def _compiled(tails: dict[bytes, tuple[bytes, ...]], codes: tuple[bytes, ...]) -> re.Pattern[bytes]:
    # One flat choice: only then the search begins with the set of first bytes, ten times as fast.
    trie: dict[Any, Any] = {}
    for tail, literals in sorted(tails.items()):
        node = trie
        for byte in tail:
            node = node.setdefault(byte, {})
        node[None] = sorted(literals)
    words = [re.escape(bytes([byte])) + _alternatives(below) for byte, below in trie.items()]
    return re.compile(b"|".join([*codes, *words]) or b"(?!)")


#: The search stops at these bytes alone, and then looks back for what stands before. They are few and rare in logs, and
#: every literal has one, before its last byte: chosen greedily, the literals that hold a byte against its share of the
#: texts of known errors, of trainings and of prose. One that holds none is looked for by its own rarest byte.
STOPS = b"=CEFSU_bcfhkuv"
#: Bytes from rare to common in logs of trainings; what is not here is more common.
_COMMON = b"^~@{}`$&?!#\\QJXYKVUHBGCNPOMWFSLTRDAIE*'\"<>()[];+%q_zjxvkb"


def _tail(literal: bytes) -> bytes:
    """A literal from the byte on at which the search stops, at least two bytes where it has them."""
    every = range(max(1, len(literal) - 1))
    places = [place for place in every if literal[place] in STOPS] or [*every]
    ranks = [at if (at := _COMMON.find(byte)) >= 0 else len(_COMMON) for byte in literal]
    best = min(places, key=lambda place: (len(literal) - place < 3, *ranks[place:][:2]))
    return literal[best:]




_FRAMES = {_tail(FRAME.encode()), _tail(TRACEBACK.encode())}


def _alternatives(node: dict[Any, Any]) -> bytes:
    """The expression for what follows a stop. Where a tail ends, its whole literals have to stand there."""
    parts = [b"(?<=" + re.escape(literal) + b")" for literal in node.get(None, ())]
    parts += [re.escape(bytes([byte])) + _alternatives(below) for byte, below in node.items() if byte is not None]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"


def slow_or_harmless(kind: Kind) -> bool:
    """True for lines that are no errors."""
    return kind in (Kind.SLOW, Kind.HARMLESS)
