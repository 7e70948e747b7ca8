"""From what the processes of a run recorded to its verdict, with the causes that it rests on."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.launch.ranks import in_words

#: What Python says of a package that is not there; of a module that a package lacks it says `package.module`.
_ABSENT = re.compile(r"ModuleNotFoundError: No module named '\w+'$")


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
    def reported(self) -> bool:
        """Whether a process could report everything, other than what only starts others."""
        return any(each["status"] != "running" and each["role"] != "launcher" for each in self.processes)

    @property
    def ranks(self) -> list[dict[str, Any]]:
        """Its processes that are ranks, in their order."""
        ranks = [each for each in self.processes if each["role"] == "script" and each["rank"] is not None]
        return sorted(ranks, key=lambda each: (len(each["rank"]), each["rank"]))

    @property
    def failed(self) -> bool:
        """Whether it failed: by its exit status, or since a rank did (and was not started again with success)."""
        ended = [each for each in self.ranks if each["status"] == "ended"]
        well = {each["rank"] for each in ended if not each["exception"] and not each["leaving"]}
        return bool(self.code) or any(each["exception"] and each["rank"] not in well for each in self.ranks)

    @property
    def gone(self) -> list[dict[str, Any]]:
        """Ranks that ended without an error of their own: whoever started them saw it, or others waited in vain."""
        silent = [each for each in self.ranks if not each["exception"]]
        told = [each for each in silent if each["ended"]]
        if told or not any(_by_another(each) or _waits(each) for each in self.ranks):
            return told
        cut = [each for each in silent if each["status"] == "running" and not each["leaving"] and not each["stood"]]
        return [each for each in cut if not _waits(each)]

    @property
    def alone(self) -> bool:
        """Whether it has several ranks, and none of them came to a process group."""
        return len(self.ranks) > 1 and all(each["grouped"] is False and not each["place"] for each in self.ranks)

    @property
    def idle(self) -> list[str]:
        """Ranks that ended and never used the npu, where others did."""
        if self.failed or not self.calls:
            return []
        return [each["rank"] for each in self.ranks if not each["operator_calls"]]


def reasons(facts: Facts) -> list[str]:
    """The causes that apply, for programs, the gravest first: host-too-small, cuda-leftover, script-failed, timed-out,
    findings, no-npu-operator, reference-unstable, reference-differs."""
    found = []
    if facts.too_small:
        found.append("host-too-small")
    elif facts.timed_out:
        found.append("timed-out")
    elif facts.failed:
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
        return Verdict(Word.STOPS, f"the script did not finish within {facts.limit or 0:g} s; {_standing(facts)}")
    if facts.code and not facts.processes:
        return Verdict(Word.NOT_RUN, f"the script started no Python process, and ended {_ending(facts.code)}")
    if facts.failed:
        why = _stop(facts) + ("" if facts.code else "; what started the ranks ended with exit code 0")
        known = facts.calls or facts.errors or not _ABSENT.search(why)
        return Verdict(Word.STOPS if known else Word.NOT_RUN, why)
    if facts.errors:
        what = _first_and_count(facts.errors)
        return Verdict(Word.STOPS, f"{what}; the program went on after it, which it may not do on a card")
    if not facts.calls:
        return Verdict(
            Word.NOT_RUN, f"nothing was computed on the NPU, though the script finished ({_why_nothing(facts)})"
        )
    word, compared = _compared(facts.reference)
    parts = [f"finished without errors; {compared}" if word is Word.RUNS else compared]
    printed = [at(each, each["printed"]) for each in facts.processes if each["printed"]]
    parts += [f"it printed a traceback: {each}" for each in printed[:1]]
    if facts.alone:
        parts.append(f"each of the {len(facts.ranks)} ranks ran alone, since they formed no process group")
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
        return Word.RUNS, "not compared with the original"
    if reference["reason"] == "reference-differs":
        more = len(reference["differences"]) - 1
        return Word.DIFFERS, reference["differences"][0] + (f", and {more} more differences" if more else "")
    if reference["reason"]:
        return Word.RUNS, str(reference["why"])
    numbers, tensors = reference["numbers"], reference["tensors"]
    left_out = reference["unstable"]
    counts = f"{many(numbers, 'printed number')} and {many(tensors, 'saved tensor')}"
    skipped = f"; {many(left_out, 'printed number')} skipped, which differ between runs of the original"
    rest = skipped if left_out else ""
    return Word.EQUAL, f"{counts} agree with those of {reference['original']}, within {reference['tolerance']:g}{rest}"


def _first_and_count(findings: list[dict[str, Any]], count: bool = False) -> str:
    first = findings[0]
    place = f"{first['path']}:{first['line']}: " if first["path"] else ""
    what = f"{place}{first['code']} {first['message']}: {first['help']}"
    more = len(findings) - 1
    head = f"{many(len(findings), 'warning')}: " if count else ""
    return head + what + (f", and {more} more" if more else "")


def _stop(facts: Facts) -> str:
    """Where and why a run failed: the error that came first, of a rank rather than of what started the ranks."""
    raised = [each for each in facts.processes if each["exception"]]
    own = [each for each in raised if each["role"] != "launcher"]
    if _guarded(facts) and facts.errors:
        return f"leftover use of CUDA at {_first_and_count(facts.errors)}"
    if causes := [each for each in own if not _by_another(each)]:
        return at(first := _first(causes, "exception"), first["exception"])
    if of_ranks := _without_error(facts, own):
        return of_ranks
    if any(each["stood"] for each in facts.processes):
        return f"it ended {_ending(facts.code)}; {_standing(facts)}"
    if raised:
        return at(first := _first(raised, "exception"), first["exception"])
    return f"it ended {_ending(facts.code)}"


def _without_error(facts: Facts, own: list[dict[str, Any]]) -> str:
    """Why a run failed in which no process has an error of its own making (`own` only lost another rank): who left, and
    what the others wait for. "" where nobody is known to have left."""
    if gone := facts.gone:
        return "; ".join([*map(_end, gone), *_waiting(facts, gone)])
    if own:
        first = _first(own, "exception")
        over = [each for each in facts.ranks if each["status"] == "ended" and each["place"]]
        said = [f"rank {each['rank']} had ended{_last_seen(each)}" for each in over]
        return "; ".join([at(first, first["exception"]), *said, *_waiting(facts, [first])])
    left = [each for each in facts.processes if each["leaving"] and each["role"] != "launcher"]
    left = [each for each in left if not _by_another(each)]
    if not left or any(each["stood"] for each in facts.processes):
        return ""
    first = _first(left, "leaving")
    return "; ".join([f"{at(first, first['leaving'])}: it ended {_ending(facts.code)}", *_waiting(facts, [first])])


def _first(processes: Iterable[dict[str, Any]], what: str) -> dict[str, Any]:
    return min(processes, key=lambda each: each[what].get("time", 0.0))


def at(process: dict[str, Any], what: dict[str, Any]) -> str:
    """What a process said, with its rank and the place, as far as they are known."""
    rank = f"rank {process['rank']}: " if process["rank"] is not None else ""
    place = f"{what['path']}:{what['line']}" if what.get("path") else ""
    child = "in a child process" if process.get("role") == "forked worker" and not rank else ""
    where = ", ".join(filter(None, (place, child)))
    return f"{rank}{where}{': ' * bool(where)}{what['reason']}"


def _by_another(process: dict[str, Any]) -> bool:
    """Whether a rank failed only since another one had left, in the words of npu_card.communicators."""
    return any("another rank has left" in what["reason"] for what in (process["exception"], process["leaving"]) if what)


def _waits(process: dict[str, Any]) -> bool:
    return process["place"] is not None and bool(process["place"]["waits"])


def _end(process: dict[str, Any]) -> str:
    """How a rank ended that has no error to show."""
    how = f"ended {process['ended']}" if process["ended"] else "was killed"
    how += " (probably out of memory)" if "SIGKILL" in how else ""
    if process["leaving"]:
        return f"{at(process, process['leaving'])}: it {how}"
    if process["stood"]:
        return f"rank {process['rank']} {how}: {_place(process)}"
    return f"rank {process['rank']} {how}{_last_seen(process)}"


def _last_seen(process: dict[str, Any]) -> str:
    place = process["place"]
    if not place or not place.get("path"):
        return ""
    return f", last seen at {place['path']}:{place['line']}" + (f" ({place['what']})" if place["what"] else "")


def _waiting(facts: Facts, others: list[dict[str, Any]]) -> list[str]:
    """What the ranks beside `others` wait for."""
    return in_words([each["place"] for each in facts.ranks if each not in others and _waits(each)], str)


def _ending(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    known = -code in {int(each) for each in signal.Signals}
    return f"by signal {signal.Signals(-code).name if known else -code}"


def _standing(facts: Facts) -> str:
    """Where each rank (each process, where there are no ranks) stood when it was stopped or crashed."""
    scripts = [each for each in facts.processes if each["role"] == "script"]
    # Beside ranks there may be the process that spawned them, which waits for them.
    places = [_place(each) for each in facts.ranks]
    if not facts.ranks:
        known = [each for each in scripts if each["stood"]] or [each for each in facts.processes if each["stood"]]
        places = [_place(each) for each in known or scripts]
    return ", ".join(dict.fromkeys(places)) or "the place is unknown"


def _place(process: dict[str, Any]) -> str:
    who = f"rank {process['rank']}" if process["rank"] is not None else "it"
    where = process["stood"]
    if where:
        inside = "" if where["function"].startswith("<") else f", in {where['function']}"
        waits = f", and waited in {process['place']['what']}" if _waits(process) else ""
        return f"{who} was at {where['path']}:{where['line']}{inside}{waits}"
    if process["exception"]:
        return f"{who} had failed: {at({'rank': None}, process['exception'])}"
    if process["status"] != "running":
        return f"{who} had ended"
    return f"where {who} was is not known"


def _why_nothing(facts: Facts) -> str:
    if not facts.processes:
        return "it started no Python process"
    if facts.cut:
        return f"{many(facts.cut, 'process')} had to stop before reporting, and the others only used the CPU"
    if not any(process["torch"] for process in facts.processes):
        return "PyTorch was never imported"
    if facts.warnings:
        return _first_and_count(facts.warnings)
    return "every tensor stayed on the CPU"
