"""What to do about a line of a file that is not Python, from the tables under rules/support/."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.base.finding import Effort
from transplt.base.settings import TorchTarget
from transplt.rules.tables import read_table

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_CARRIES = {
    "yes": "",
    "partly": " (partly with the same values)",
    "no": " (with different values)",
}


@dataclass(frozen=True, slots=True)
class LineAdvice:
    """Code, effort, message and help of one finding."""

    code: str
    effort: Effort
    message: str
    help: str


@dataclass(frozen=True, slots=True)
class _Hint:
    kinds: frozenset[str]
    pattern: re.Pattern[str]
    text: str


def advise_on(kind: str, line: str, names: Sequence[str], target: TorchTarget) -> LineAdvice:
    """What to report about `line` of a kind of file of the table, in which `names` hold a CUDA token."""
    entry = read_table("support/files.json")["kinds"][kind]
    hints = [_variable_hint(name) for name in dict.fromkeys(_VARIABLE.findall(line))]
    for hint in _hints():
        if kind in hint.kinds and hint.pattern.search(line):
            filled = hint.text.replace("{torch}", target.pin)
            filled = filled.replace("=={torch_npu}", f"=={target.torch_npu}" if target.torch_npu else "")
            hints.append(filled.replace(" {cann}", f" {target.cann}" if target.cann else ""))
    return LineAdvice(
        code=entry["code"],
        effort=Effort(entry["effort"]),
        message=entry["message"].replace("{names}", ", ".join(names)),
        help="; ".join(hint for hint in hints if hint) or entry.get("otherwise", ""),
    )


def _variable_hint(name: str) -> str:
    fact = _variables().get(name)
    if fact is None:
        return ""
    if not fact.get("npu"):
        note = fact.get("note") or ""
        return f"{name} has no counterpart on NPU" + (f": {note}" if note else "")
    hint = f"{name} becomes {fact['npu']}" + _CARRIES.get(str(fact.get("value_carries_over")), "")
    return hint + (f": {fact['note']}" if fact.get("note") else "")


@cache
def _hints() -> tuple[_Hint, ...]:
    hints = read_table("support/files.json")["hints"]
    return tuple(
        _Hint(frozenset(hint["kinds"]), re.compile(hint["pattern"], re.IGNORECASE), hint["hint"]) for hint in hints
    )


@cache
def _variables() -> dict[str, dict[str, Any]]:
    """Facts about environment variables by CUDA-side name; empty where the table is missing."""
    try:
        table = read_table("support/env_vars.json")
    except OSError:
        return {}
    facts = table.get("cuda_to_npu", table)
    return {name: fact for name, fact in facts.items() if isinstance(fact, dict)}
