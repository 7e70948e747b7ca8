"""From what the processes of a run recorded to its verdict, with the causes that it rests on."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transplt.base.render.verdict import Verdict, Word


@dataclass(frozen=True)
class Facts:
    """What a run is judged by. `code` is its exit status (negative: a signal); `processes` and `findings` are those of
    the report, `calls` how many operators ran on the npu; `limit` the seconds that it had, None for no limit;
    `reference` what a comparison with the original gave,
    `too_small` is why this machine could not make the run."""

    code: int
    timed_out: bool
    limit: float | None
    processes: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    calls: int
    reference: dict[str, Any] | None = None
    too_small: str = ""

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Findings at which a card would have stopped."""
        return [finding for finding in self.findings if finding["level"] == "error"]

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Findings that a card would have run over."""
        return [finding for finding in self.findings if finding["level"] == "warning"]

    @property
    def cut(self) -> int:
        """How many processes were stopped before they could report everything."""
        return sum(process["status"] == "running" for process in self.processes)

    @property
    def idle(self) -> list[str]:
        """Ranks that ended and never used the npu, where others did."""
        if self.code or not self.calls:
            return []
        ranked = [each for each in self.processes if each["role"] == "script" and each["rank"] is not None]
        return sorted(each["rank"] for each in ranked if not each["operator_calls"])


def reasons(facts: Facts) -> list[str]:
    """The causes that apply, for programs, the gravest first: host-too-small, cuda-leftover, script-failed, timed-out,
    findings, no-npu-operator, reference-unstable, reference-differs."""
    found = []
    if facts.too_small:
        found.append("host-too-small")
    elif facts.timed_out:
        found.append("timed-out")
    elif facts.code:
        found.append("cuda-leftover" if _guarded(facts) else "script-failed")
    if facts.errors or facts.warnings:
        found.append("findings")
    if not facts.calls and not facts.timed_out and not (facts.code and facts.cut):
        found.append("no-npu-operator")
    if facts.reference is not None and facts.reference["reason"]:
        found.append(facts.reference["reason"])
    return found


def judge(facts: Facts) -> Verdict:
    """The verdict, whose sentence names what it rests on, and every warning's number and first place."""
    if facts.too_small:
        return Verdict(Word.NOT_RUN, facts.too_small)
    if facts.timed_out:
        return Verdict(Word.STOPS, f"it did not finish within {facts.limit or 0:g} s; {_standing(facts)}")
    if facts.code and not facts.processes:
        return Verdict(Word.NOT_RUN, f"it started no Python process; it ended {_ending(facts.code)}")
    if facts.code:
        return Verdict(Word.STOPS, _stop(facts))
    if facts.errors:
        what = _first_and_count(facts.errors)
        return Verdict(Word.STOPS, f"{what}; a card would stop there, and the emulator was told to go on")
    if not facts.calls:
        return Verdict(Word.NOT_RUN, f"it ended normally, but computed nothing on the npu: {_why_nothing(facts)}")
    word, compared = _compared(facts.reference)
    parts = [f"it ended well, {compared}" if word is Word.RUNS else compared]
    if facts.idle:
        parts.append(f"rank {', '.join(facts.idle)} never used the npu")
    if facts.warnings:
        parts.append(_first_and_count(facts.warnings, count=True))
    return Verdict(word, "; ".join(parts))


def _guarded(facts: Facts) -> bool:
    """Whether the guard of leftover CUDA ended the run, in a process that was spawned too."""
    raised = [each["exception"] for each in facts.processes if each["exception"]]
    return any("CudaLeftover" in (each["type"], each["reason"].partition(":")[0].rpartition(".")[2]) for each in raised)


def _compared(reference: dict[str, Any] | None) -> tuple[Word, str]:
    if reference is None:
        return Word.RUNS, "and nothing was compared with the original"
    if reference["reason"] == "reference-differs":
        more = len(reference["differences"]) - 1
        return Word.DIFFERS, reference["differences"][0] + (f", and {more} more differences" if more else "")
    if reference["reason"]:
        return Word.RUNS, f"and {reference['why']}"
    numbers, tensors = reference["numbers"], reference["tensors"]
    left_out = reference["unstable"]
    counts = f"{_number(numbers, 'printed number')} and {_number(tensors, 'saved tensor')}"
    skipped = f"; {_number(left_out, 'printed number')} skipped, which differ between runs of the original"
    rest = skipped if left_out else ""
    return Word.EQUAL, f"{counts} agree with those of {reference['original']}, within {reference['tolerance']:g}{rest}"


def _first_and_count(findings: list[dict[str, Any]], count: bool = False) -> str:
    first = findings[0]
    place = f"{first['path']}:{first['line']}: " if first["path"] else ""
    what = f"{place}{first['code']} {first['message']}: {first['help']}"
    more = len(findings) - 1
    head = f"{_number(len(findings), 'warning')}: " if count else ""
    return head + what + (f", and {more} more" if more else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _stop(facts: Facts) -> str:
    """Where and why a run failed: the error that came first, of a rank rather than of what started the ranks."""
    raised = [each for each in facts.processes if each["exception"]]
    own = [each for each in raised if each["role"] != "launcher"]
    left = [each for each in facts.processes if each["leaving"] and each["role"] != "launcher"]
    if _guarded(facts) and facts.errors:
        return f"leftover use of CUDA at {_first_and_count(facts.errors)}"
    if own:
        return _at(first := _first(own, "exception"), first["exception"])
    stood = [each for each in facts.processes if each["stood"]]
    if left and not stood:
        return f"{_at(first := _first(left, 'leaving'), first['leaving'])}: it ended {_ending(facts.code)}"
    if stood:
        return f"it ended {_ending(facts.code)}; {_standing(facts)}"
    if raised:
        return _at(first := _first(raised, "exception"), first["exception"])
    return f"it ended {_ending(facts.code)}"


def _first(processes: Iterable[dict[str, Any]], what: str) -> dict[str, Any]:
    return min(processes, key=lambda each: each[what].get("time", 0.0))


def _at(process: dict[str, Any], what: dict[str, Any]) -> str:
    rank = f"rank {process['rank']}: " if process["rank"] is not None else ""
    place = f"{what['path']}:{what['line']}: " if what.get("path") else ""
    return f"{rank}{place}{what['reason']}"


def _ending(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    known = -code in {int(each) for each in signal.Signals}
    return f"by signal {signal.Signals(-code).name if known else -code}"


def _standing(facts: Facts) -> str:
    """Where each rank (each process, where there are no ranks) stood when it was stopped or crashed."""
    scripts = [each for each in facts.processes if each["role"] == "script"]
    ranked = [each for each in scripts if each["rank"] is not None]
    # Beside ranks there may be the process that spawned them, which waits for them.
    places = [_place(each) for each in sorted(ranked, key=lambda each: (len(each["rank"]), each["rank"]))]
    if not ranked:
        known = [each for each in scripts if each["stood"]] or [each for each in facts.processes if each["stood"]]
        places = [_place(each) for each in known or scripts]
    return ", ".join(dict.fromkeys(places)) or "the place is unknown"


def _place(process: dict[str, Any]) -> str:
    who = f"rank {process['rank']}" if process["rank"] is not None else "it"
    where = process["stood"]
    if where:
        inside = "" if where["function"].startswith("<") else f", in {where['function']}"
        return f"{who} stood at {where['path']}:{where['line']}{inside}"
    if process["exception"]:
        return f"{who} had failed: {_at({'rank': None}, process['exception'])}"
    if process["status"] != "running":
        return f"{who} had ended"
    return f"where {who} stood is not known"


def _why_nothing(facts: Facts) -> str:
    if not facts.processes:
        return "it started no Python process"
    if facts.cut:
        return f"{_number(facts.cut, 'process')} of it had to stop before reporting, and the others only used the CPU"
    if not any(process["torch"] for process in facts.processes):
        return "PyTorch was never imported"
    if facts.warnings:
        return _first_and_count(facts.warnings)
    return "every tensor stayed on the CPU"
