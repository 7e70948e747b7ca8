"""The table that `print(prof)` and `key_averages().table()` write, wherever in a log it stands.

Lines of dashes say where its columns are: Name, Self CPU, Self NPU, # of Calls and more (guide, table 2 of the
profiler; torch.autograd.profiler_util of torch 1.5 to 2.8).
"""

from __future__ import annotations

import re

from transplt.precision.diagnose.profiles.profile import Profile
from transplt.precision.diagnose.profiles.tables import finite

_RULE = re.compile(r"-{4,}(?:\s+-{4,})+")
_TIME = re.compile(r"(\d[\d.]*)(us|ms|s)?")
_UNITS = {"us": 1.0, "ms": 1_000.0, "s": 1_000_000.0, None: 1.0}
_CARD = re.compile(r"(?:Self )?(NPU|CUDA|PrivateUse1)(?: total)?", re.IGNORECASE)


class AutogradTable:
    """Takes the lines of a log one by one; `found` says how many rows of tables there were."""

    def __init__(self, profile: Profile) -> None:
        self.found = 0
        self._profile = profile
        self._spans: list[tuple[int, int]] = []
        self._names: list[str] = []
        self._rules = 0

    @property
    def awaits(self) -> bool:
        """True within a table: the next line belongs to it."""
        return self._rules > 0

    def line(self, text: str) -> None:
        """Looks at one line, without its end."""
        if _RULE.fullmatch(text.strip()):
            self._rule(text)
        elif self._rules == 1:
            self._names = self._cells(text)
            if "Name" not in self._names:
                self._rules = 0
        elif self._rules == 2:
            self._row(dict(zip(self._names, self._cells(text), strict=False)))

    def _rule(self, text: str) -> None:
        if self._rules == 2:  # the line below the table
            self._rules = 0
            return
        self._rules += 1
        if self._rules == 1:
            self._spans = [match.span() for match in re.finditer(r"-+", text)]

    def _cells(self, text: str) -> list[str]:
        parts = re.split(r"\s{2,}", text.strip())
        if len(parts) == len(self._spans):
            return parts
        ends = [end for _, end in self._spans]
        return [text[begin:end].strip() for begin, end in zip([0, *ends], ends, strict=False)]

    def _row(self, row: dict[str, str]) -> None:
        name = row.get("Name", "")
        calls = int(finite(row.get("# of Calls") or row.get("Number of Calls")))
        if not name or not calls:
            return
        self.found += 1
        self._profile.host_operator(name, _us(row.get("Self CPU") or row.get("Self CPU total") or ""), calls)
        column = next((each for each in sorted(row, reverse=True) if _CARD.fullmatch(each)), "")
        if column and (took := _us(row[column])):
            operator = self._profile.operator(name, "")
            operator.total.add(took, calls)
            if shapes := row.get("Input Shapes"):
                operator.shapes.add(shapes)


def _us(text: str) -> float:
    match = _TIME.fullmatch(text.strip())
    return finite(match[1]) * _UNITS[match[2]] if match else 0.0
