"""One line of a log: as text, who wrote it, and when."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Longer lines are cut around the place that was found.
MOST_BYTES = 4_000

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
#: `[rank3]:`, `[default3]:`, `[3]:`, `worker-1:`, `(train pid=8464)`, `(VllmWorker rank=1 pid=97934)`, at the start.
_PREFIX = re.compile(
    r"\s*(?:\[(?:rank|default|local_rank|Rank )?:? ?(?P<rank>\d{1,5})\]:|(?P<worker>worker-\d{1,5}):|"
    r"\((?P<actor>(?:[\w.-]+(?: rank=(?P<named>\d{1,5}))? )?pid=\d{1,9})(?:, ip=[\d.]+)?\)) ?"
)
#: vllm and ray put their own format before the text: ERROR 09-03 03:02:37 [multiproc_executor.py:522] ...
_FORMAT = re.compile(r"^(?:ERROR|WARNING|INFO) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\] ?")
#: What stands before each line of a log that was quoted, or that another program wrote on with the time (docker build:
#: `#15 3.101 `, and `3.101 ` where it quotes the end of a step). Before an error alone: `service-1  | ` of docker
#: compose, `0: ` of srun, `E   ` of pytest, and the signs of trees and of groups of exceptions (`-> `, `| `).
_QUOTED = re.compile(
    r"^(?:> ?)+(?= *\S)|^#\d{1,4} \d{1,6}\.\d{1,3} (?=.)|"
    r"^(?:\d{1,6}\.\d{3} |(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[.,]\d{3,9}Z? )"
    r"(?=\s*(?:File \"|Traceback|[\w.]*(?:Error|Exception)\b))|"
    r"^(?:E {2,}|\d{1,5}: ?|\[pod/[^\]\s]{1,200}\] |\d{4}-\d\d-\d\dT\S{8,30} std(?:out|err) [FP] |"
    r"\s*(?:[\w.-]{1,60} {1,20})?(?:[|\u2502\u2503] ?|[-=]{1,3}> ?|[\u2192\u21d2] ?|[\u2514\u251c]\u2500{1,4} ?){1,4})"
    r"(?=\s*(?:File \"|Traceback|[\w.]*(?:Error|Exception)(?::|\s*$)))"
)
#: Formats of loggers that say of a line that it is an error: vllm's, `2024-09-20 07:49:24,787 - name - ERROR - `.
_AS_ERROR = re.compile(
    r"(?:^|[)\]:] )(?:(?:ERROR|CRITICAL) \d\d-\d\d [\d:]{8} \[[^\]]{1,80}\] ?|"
    r"\[?\d{4}-\d\d-\d\d[ T][\d:,.]{8,15}\]?(?: - [\w. ]{1,60})? - (?:ERROR|CRITICAL) - )(?P<said>.*)"
)
#: A warning of Python or of a logger: the program goes on after it.
WARNED = re.compile(r"\.py:\d+: \w*Warning: |^\s*(?:warnings\.)?warn\(|(?:^|[)\]:] |\[)WARN(?:ING)?\b")
#: A message of several lines has the name of its process at the first one alone, where a logger wrote it: these go on.
GOES_ON = re.compile(
    r"E[0-9A-Z]\d{4}(?::|\[PID)|\[ERROR\] 20\d\d-.*\bERR\d{5}|\[Error\]: |\[PID: \d|\s+\S.*\[FUNC:|"
    r"\s*(?:The error from device|The extend info|Kernel task happen|TraceBack|Aicore kernel execute)"
)
_RANK_ID = re.compile(r"RankID:(\d{1,5})\b")
_PID = re.compile(r"(?:\[PID: ?|\(PID:|(?:^|\] )[A-Z_]{2,12}\()(\d{1,9})\b")
_DATED = re.compile(r"(?<!\d)(20\d\d)-(\d\d)-(\d\d)[- T](\d\d:\d\d:\d\d)(?:[.,](\d{3})(?:\.(\d{3})|(\d{3}))?)?")
_SHORT = re.compile(
    r"(?:\b(?:ERROR|WARNING|INFO) (\d\d)-(\d\d) |\b[EWIF](\d\d)(\d\d) )(\d\d:\d\d:\d\d)(?:[.,](\d{3})(\d{3})?)?"
)
_IN_NAME = re.compile(r"(?:rank|worker)[_-]?(\d{1,5})(?!\d)", re.IGNORECASE)
_PLOG_NAME = re.compile(r"plog-(\d{1,9})_")


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """When a line was written: `day` is MM-DD hh:mm:ss and fractions; the year is 0 where the line does not say it."""

    year: int
    day: str

    def __str__(self) -> str:
        return f"{self.year}-{self.day}" if self.year else self.day


def text_of(raw: bytes) -> str:
    """The line without escape sequences and null bytes; bytes that are no UTF-8 show as such."""
    return _ESCAPES.sub("", raw.decode("utf-8", "backslashreplace")).replace("\0", "").strip("\r\n")


def parted(text: str) -> tuple[str, str]:
    """(who, the line without that): the rank or process that a launcher puts before each line, empty for none."""
    who = ""
    for _ in range(3):  # an actor may write for another one: (Worker pid=1) (Worker_TP1 pid=1) ...
        if (match := _PREFIX.match(text)) is None:
            break
        rank = match["rank"] or match["named"]
        who = f"rank {rank}" if rank else match["worker"] or match["actor"]
        text = _FORMAT.sub("", text[match.end() :])
    return who, _QUOTED.sub("", _FORMAT.sub("", text), count=1)


def logged_error(text: str) -> str:
    """What a whole line says that a logger wrote as an error; empty for other lines."""
    match = _AS_ERROR.search(text[:400])
    return text[match.start("said") :] if match else ""


def named_in(text: str, *, of_file: bool = False) -> str:
    """Who a line is about by its own words: its RankID, or its process; or whose log a file is by its name: rank_3.log,
    worker-3.txt, plog-1234_2025.log; empty for none.
    """
    rank, process = (_IN_NAME, _PLOG_NAME) if of_file else (_RANK_ID, _PID)
    if match := rank.search(text):
        return f"rank {match[1]}"
    match = process.search(text)
    return f"process {match[1]}" if match else ""


def moment_of(text: str) -> Moment | None:
    """The last time that stands in a text."""
    found = None
    for match in _DATED.finditer(text):
        parts = match[5] or "", match[6] or match[7] or ""
        found = Moment(int(match[1]), f"{match[2]}-{match[3]} {match[4]}" + (f".{''.join(parts)}" if parts[0] else ""))
    if found is None:
        for match in _SHORT.finditer(text):
            month, day = (match[1], match[2]) if match[1] else (match[3], match[4])
            rest = (match[6] or "") + (match[7] or "")
            found = Moment(0, f"{month}-{day} {match[5]}" + (f".{rest}" if rest else ""))
    return found
