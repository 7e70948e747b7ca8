"""What the tests of diagnose share: a text in, the names of errors out."""

from __future__ import annotations

import io
from dataclasses import dataclass

from transplt.precision.diagnose.findings import Collected, Failure
from transplt.precision.diagnose.scan import LogScan


@dataclass(frozen=True)
class Said:
    """The heads of the failures in order (`?`: not known), every error that is named, and the remarks."""

    heads: list[str]
    named: set[str]
    remarks: list[str]
    failures: list[Failure]
    clues: set[str]

    @property
    def first(self) -> str:
        """What a reader is told to begin with; a remark where there is no error."""
        return (self.heads or self.remarks or [""])[0]


def diagnosed(*logs: str | bytes, names: tuple[str, ...] = ()) -> Said:
    """What is found in the texts of logs, in the order given."""
    collected = Collected()
    for number, log in enumerate(logs):
        data = log.encode() if isinstance(log, str) else log
        LogScan(names[number] if names else f"{number}.log", collected).scan(io.BytesIO(data))
    failures = collected.failures()
    heads = [failure.head.error.name if failure.head.error else "?" for failure in failures]
    beside = {name for failure in failures for name in failure.beside}
    named = {*heads, *beside, *collected.remarks} - {"?"}
    return Said(heads, named, [*collected.remarks], failures, {*collected.clues})
