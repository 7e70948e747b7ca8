"""What came of each kernel: from what the calls came to, one verdict for each kernel, with its launches and limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from transplt.base.render.cell import figure, first_of
from transplt.base.render.verdict import Verdict, Word, gravest
from transplt.proof.compiler.launches import Compiled
from transplt.proof.kernels.calls import Calls, Kernel
from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Place

#: Tensors of a launch whose shapes are told; of more the first.
_SHAPES = 4
#: Reasons for which a call is not made that are no fault of the migrated program.
_NOTHING_SAID = ("has no parameter", "did not finish in time")
_ORDERS = {"reverse": "backwards", "interleaved": "interleaved"}


@dataclass
class KernelResult:
    """One kernel. `place` is its line in the original, `migrated` that in the migrated program. `launches` were made
    on either side, with `shapes`; of a launch with `programs` (the most) `ran` were run. `largest` is the largest
    distance, `share` that as a share of the largest number of its tensor; `roundings` says why it may be one. `limits`
    are what the card refused or warned of."""

    kernel: Kernel
    place: Place
    migrated: Place | None = None
    launches: int = 0
    compared: int = 0
    programs: int = 0
    ran: int = 0
    shapes: list[str] = field(default_factory=list)
    largest: float = 0.0
    share: float = 0.0
    roundings: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def title(self) -> str:
        """`softmax (ops/softmax.py:12)`."""
        return f"{self.kernel.name} ({self.place})"

    @property
    def sampled(self) -> bool:
        """Whether of a launch not all programs were run."""
        return self.ran < self.programs

    @property
    def verdict(self) -> Verdict:
        if any(each.word not in (Word.EQUAL, Word.RUNS) for each in self.verdicts):
            return gravest(self.verdicts)
        doubt = [each for each in self.verdicts if each.word is Word.RUNS]
        if self.compared and not doubt:
            told = f"{self.compared} {'launch' if self.compared == 1 else 'launches'} compared"
            if self.sampled:
                told += f", {self.ran:,} of {self.programs:,} programs of the largest launch"
            if self.largest:
                told += f"; rounding errors: {figure(self.share, 2)} of the largest number: {'; '.join(self.roundings)}"
            return Verdict(Word.EQUAL, told)
        if doubt:
            return doubt[0]
        return Verdict(Word.RUNS, self.reasons[0] if self.reasons else "no result of this kernel could be compared")


@dataclass
class _Judge:
    """Gathers what was found, by kernel."""

    results: dict[Kernel, KernelResult]

    def call(self, call: dict[str, Any], found: dict[str, Any]) -> None:
        kernels = [Kernel(each["name"], each["path"]) for each in call["kernels"]]
        mine = [self.results[each] for each in dict.fromkeys(kernels)]
        original, migrated = found["original"], found["migrated"]
        shapes = _shapes(call["arguments"])
        for result in mine:
            if shapes and shapes not in result.shapes:
                result.shapes.append(shapes)
        for kernel, launch in zip(kernels, found["launches"][0], strict=False):
            result = self.results[kernel]
            result.launches += 1
            if launch["programs"] >= result.programs:
                result.programs, result.ran = launch["programs"], launch["ran"]
        self._limits(mine, migrated["findings"] or [], (migrated["error"] or {}).get("reason", ""))
        if original["skipped"] or original["error"]:
            why = original["skipped"] or f"the original itself stops: {_reason(original['error'])}"
            _each(mine, Verdict(Word.RUNS, why))
            return
        if migrated["skipped"]:
            word = Word.RUNS if any(each in migrated["skipped"] for each in _NOTHING_SAID) else Word.NOT_RUN
            _each(mine, Verdict(word, f"the migrated program: {migrated['skipped']}"))
            return
        if migrated["error"]:
            reached = min(len(found["launches"][1]), len(kernels) - 1)
            result, error = self.results[kernels[reached]], migrated["error"]
            place = Place(error["path"], error["line"]) if error["path"] else None
            result.differences.append(Difference(error["reason"], place, result.place))
            result.verdicts.append(Verdict(Word.STOPS, _reason(error)))
            return
        self._compared(call, kernels, found["compared"])
        self._orders(mine, original["orders"] or [], migrated["orders"] or [])

    def _limits(self, mine: list[KernelResult], findings: list[dict[str, Any]], stopped: str) -> None:
        """Findings of the card that name a kernel; what `stopped` it is told as such."""
        for each in findings:
            if each["level"] == "info" or f"[{each['code']}]" in stopped:
                continue
            told = f"{each['code']} {each['path']}:{each['line']}: {each['message']}"
            for result in mine:
                if each["message"].startswith(f"kernel {result.kernel.name}:") and told not in result.limits:
                    result.limits.append(told)

    def _compared(self, call: dict[str, Any], kernels: list[Kernel], compared: dict[str, Any]) -> None:
        """What the function gives back decides where it launches otherwise than the original: sums of parts, a row for
        each program, are then others rightly. Where it launches alike, so do the tensors behind each launch."""
        launches, returned = compared["launches"], compared["returned"]
        wrong = _wrong(returned["gaps"]) if returned is not None else []
        decides = returned is not None and returned["results"] > 0
        if not compared["paired"]:
            if returned is None:
                _each([self.results[each] for each in kernels], Verdict(Word.RUNS, "the port launches other kernels"))
                return
            for kernel in dict.fromkeys(kernels):
                self._by_result(self.results[kernel], call, returned)
            return
        told = False
        for kernel, launch in zip(kernels, launches, strict=False):
            result = self.results[kernel]
            result.migrated = Place(launch["migrated"]["path"], launch["migrated"]["line"])
            if not launch["compared"]:
                result.reasons.append("no two of the programs that ran wrote the same elements")
            elif _wrong(launch["gaps"]) and launch["changed"] and decides:
                self._by_result(result, call, returned)
                told = True
            else:
                told |= self._gaps(result, launch["gaps"], launch["reasons"], "argument ")
        if wrong and not told:
            self._gaps(self.results[kernels[-1]], returned["gaps"], returned["reasons"], "", False, call["name"])

    def _by_result(self, result: KernelResult, call: dict[str, Any], returned: dict[str, Any]) -> None:
        remark = f"compared by the results of {call['name']}, which launches kernels differently from the original"
        if remark not in result.remarks:
            result.remarks.append(remark)
        self._gaps(result, returned["gaps"], returned["reasons"], "", True, call["name"])

    def _gaps(
        self, result: KernelResult, gaps: list[dict[str, Any]], reasons: list[str], noun: str, counts: bool = True,
        whose: str = "",
    ) -> bool:  # fmt: skip
        """Whether there is a gap that no rounding explains."""
        result.compared += counts
        for gap in gaps:
            result.largest = max(result.largest, gap["largest"] or 0.0)
            result.share = max(result.share, gap["share"] or 0.0)
            if gap["within"]:
                result.roundings += [each for each in reasons if each not in result.roundings]
                if not reasons and (told := "the requested tolerance") not in result.roundings:
                    result.roundings.append(told)
                continue
            name = f"{noun}{gap['argument']}" + (f" of {whose}" if whose else "")
            what = f"{name}{'' if gap['what'].startswith('[') else ' '}{gap['what']}"
            if gap["largest"]:
                what += f", by {figure(gap['largest'], 3)} at most"
            found = Difference(what, result.migrated, result.place)
            result.differences.append(found)
            result.verdicts.append(Verdict(Word.DIFFERS, str(found)))
            return True
        return False

    def _orders(
        self, mine: list[KernelResult], original: list[dict[str, Any]], migrated: list[dict[str, Any]]
    ) -> None:  # fmt: skip
        """What depends on the order of programs: of the migrated kernels alone, a difference."""
        before = {each["kernel"] for each in original}
        for side, found in (("original", original), ("migrated", migrated)):
            for each in found:
                result = next((r for r in mine if r.kernel.name == each["kernel"]), mine[-1])
                order = _ORDERS[each["order"]]
                what = f"argument {each['argument']}{each['what']}" if each["argument"] else f"it {each['what']}"
                told = f"depends on the order of programs: run {order}, {what}"
                if side == "original":
                    result.verdicts.append(Verdict(Word.RUNS, f"the original itself {told}"))
                elif each["kernel"] not in before:
                    found_there = Difference(told, result.migrated, result.place)
                    result.differences.append(found_there)
                    result.verdicts.append(Verdict(Word.DIFFERS, str(found_there)))


def judge(calls: Calls, found: Iterable[dict[str, Any]]) -> list[KernelResult]:
    """A result for each kernel that was launched, by place."""
    left = calls.left()
    results = {kernel: KernelResult(kernel, place) for kernel, place in sorted(calls.kernels().items())}
    judging = _Judge(results)
    for call, each in zip(calls.calls, found, strict=True):
        judging.call(call, each)
    for kernel, why in left.items():
        results[kernel].reasons.append(f"its arguments cannot be saved: {why}")
    for result in results.values():
        if result.reasons and not result.compared and not result.verdicts:
            result.verdicts.append(Verdict(Word.RUNS, result.reasons[0]))
    return sorted(results.values(), key=lambda each: each.place)


def take_compiled(results: Iterable[KernelResult], compiled: Compiled) -> None:
    """Let a kernel of the migrated program that the compiler of the card refuses stop there."""
    refused = {(each.name, each.path): each for each in compiled.refused}
    for result in results:
        place = result.migrated or result.place
        kernel = refused.get((result.kernel.name, place.path))
        for answer in (kernel.told if kernel is not None else ()):
            where = Place(answer.path, answer.line)
            result.differences.append(Difference(f"the kernel does not compile: {answer.said}", where, result.place))
            result.verdicts.append(Verdict(Word.STOPS, f"{where}: the kernel does not compile: {answer.said}"))


def _wrong(gaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in gaps if not each["within"]]


def _each(results: list[KernelResult], verdict: Verdict) -> None:
    for result in results:
        result.verdicts.append(verdict)


def _reason(error: dict[str, Any]) -> str:
    return f"{error['path']}:{error['line']}: {error['reason']}" if error["path"] else str(error["reason"])


def _shapes(arguments: dict[str, Any]) -> str:
    """`x float32[4, 8], out float16[4]` of the arguments of a call."""
    held = {name: value.get("tensor") for name, value in arguments.items() if isinstance(value, dict)}
    told = [f"{name} {each['dtype']}{each['shape']}" for name, each in held.items() if isinstance(each, dict)]
    return first_of(told, _SHAPES)
