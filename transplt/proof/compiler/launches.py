"""The kernels that a run launched, compiled: what is told of each, and what becomes of the findings of estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transplt.base.render.cell import first_of, visible
from transplt.proof.compiler.answers import NO, UNJUDGED, YES, Answer
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.launch.stacks import told_below

#: What tables and estimates say of types and sizes, which the compiler knows better.
ESTIMATED = frozenset(f"NPU57{digit}" for digit in (0, 1, 2, 3, 4, 9))
OVERFLOW, REFUSED = "NPU574", "NPU580"
#: Configurations of an autotuner that are compiled, and those that are named.
MOST_CONFIGURATIONS, _MOST_NAMED = 16, 3
HELP_OVERFLOW = "use a smaller block, or process the block in parts"
HELP_REFUSED = "rewrite this line; docs/triton.md lists replacements"


@dataclass
class CompiledKernel:
    """One kernel, by the file and the line of its `def`, and what the compiler says of each launch that is compiled
    otherwise. The configurations of an autotuner are one answer; `passed_over`: it goes on behind one of them."""

    name: str
    path: str
    line: int
    answers: list[Answer] = field(default_factory=list)
    passed_over: bool = False

    @property
    def word(self) -> str:
        return max((each.word for each in self.answers), key=(YES, UNJUDGED, NO).index, default=YES)

    @property
    def refused_lines(self) -> set[int]:
        """Those at which the compiler stops, of what does not overflow."""
        return {each.line for each in self.answers if each.word == NO and each.overflow is None}

    def leaves_open(self, code: str, *, refuses: bool) -> bool:
        """Whether an estimate may still hold: the compiler did not judge, or stopped before it saw all. What `refuses`
        nothing, but says what a kernel costs or computes, holds for one that compiles, too."""
        if self.word == UNJUDGED or code not in ESTIMATED or not (refuses or code == OVERFLOW):
            return True
        return bool(self.refused_lines) and not (code == OVERFLOW and any(each.overflow for each in self.answers))

    @property
    def told(self) -> list[Answer]:
        """What is worth a line: all that is not "yes", or of those the one that takes the most."""
        rest = list({str(each): each for each in self.answers if each.word != YES}.values())
        return rest or [max(self.answers, key=_taken)]

    def as_json(self) -> dict[str, Any]:
        return {
            "kernel": self.name, "path": self.path, "line": self.line, "compiles": self.word,
            "answers": [vars(each) for each in self.answers],
        }  # fmt: skip


@dataclass
class Compiled:
    """All kernels of a run; `title` says for what and by which versions."""

    title: str
    kernels: list[CompiledKernel]

    @property
    def refused(self) -> list[CompiledKernel]:
        """Those that do not compile as they are launched."""
        return [each for each in self.kernels if each.word == NO]

    def as_json(self) -> dict[str, Any]:
        return {"for": self.title, "kernels": [each.as_json() for each in self.kernels]}

    def lines(self, limit: int = 20) -> list[str]:
        """For a terminal: a head, and a line for each answer."""
        counts = [(sum(each.word == word for each in self.kernels), word) for word in (YES, NO, UNJUDGED)]
        said = ", ".join(f"{count} {word}" for count, word in counts if count) or "no kernel was launched"
        found = [f"kernels compiled for {self.title}: {said}"]
        every = [(kernel, answer) for kernel in self.kernels for answer in kernel.told]
        every.sort(key=lambda each: (YES, UNJUDGED, NO).index(each[1].word), reverse=True)
        for kernel, answer in every[:limit]:
            at = "" if not answer.line or answer.line == kernel.line else f" {answer.path}:{answer.line}:"
            text = str(answer).replace(f"{answer.word}:", f"{answer.word}:{at}", 1)
            found.append(visible(f"  {kernel.name} ({kernel.path}:{kernel.line}): {text}"))
        return [*found, *([f"  ... and {len(every) - limit} more"] if len(every) > limit else [])]

    def left(self, findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those findings of a run that the compiler does not refute or replace; paths are as those of the kernels."""
        return self._left(findings)[0]

    def _left(self, findings: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], set[tuple[str, int]]]:
        words = {(each.name, each.path): each for each in self.kernels}
        found: list[dict[str, Any]] = []
        confirmed: set[tuple[str, int]] = set()
        for each in findings:
            name = each["message"].removeprefix("kernel ").partition(":")[0]
            kernel = words.get((name, each["path"]))
            if kernel is None or kernel.leaves_open(each["code"], refuses=each["level"] == "error"):
                if kernel is not None and each["code"] != OVERFLOW and each["line"] in kernel.refused_lines:
                    confirmed.add((name, each["line"]))
                    each = {**each, "message": f"{each['message']}; the compiler refuses it too"}
                found.append(each)
        return found, confirmed

    def weigh(self, findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Likewise, with its refusals as findings."""
        found, confirmed = self._left(findings)
        for kernel in self.refused:
            for answer in kernel.told:
                if answer.word == NO and (kernel.name, answer.line) not in confirmed:
                    code, what = (OVERFLOW, HELP_OVERFLOW) if answer.overflow else (REFUSED, HELP_REFUSED)
                    message = f"kernel {kernel.name} does not compile: {answer.said}"
                    found.append({"path": answer.path or kernel.path, "line": answer.line or kernel.line, "code": code,
                                  "message": message, "help": what, "level": "error", "count": 1})  # fmt: skip
        return found


def launches_below(processes: Iterable[dict[str, Any]], root: Path) -> list[dict[str, Any]]:
    """The launches that the records of processes hold, each once; paths below `root` are told from there."""
    units = {repr(each): each for process in processes for each in process.get("kernels", ())}
    inside = told_below(units.values(), root)
    return [{**unit, "functions": told_below(unit.get("functions", ()), root)} for unit in inside]


def compile_launches(units: Sequence[dict[str, Any]], compiler: Compiler, say: Callable[[str], None]) -> Compiled:
    return gather(units, compiler.answers(units, say), compiler.title)


def gather(units: Sequence[dict[str, Any]], answers: Sequence[Answer], title: str) -> Compiled:
    """By kernel, with one answer for the configurations of an autotuner that are tried for a launch."""
    kernels: dict[tuple[str, int, str], CompiledKernel] = {}
    tried: dict[tuple[tuple[str, int, str], str], list[tuple[dict[str, Any], Answer]]] = {}
    for unit, answer in zip(units, answers, strict=True):
        key = (unit["path"], unit["line"], unit["name"])
        kernel = kernels.setdefault(key, CompiledKernel(unit["name"], unit["path"], unit["line"]))
        if "configuration" in unit:
            tried.setdefault((key, unit["launch"]), []).append((unit, answer))
            kernel.passed_over |= answer.word == NO
        else:
            kernel.answers.append(answer)
    for (key, _), every in tried.items():
        kernels[key].answers.append(_of_configurations(every))
    return Compiled(title, [each for _, each in sorted(kernels.items())])


def _of_configurations(tried: Sequence[tuple[dict[str, Any], Answer]]) -> Answer:
    """What becomes of a launch: an autotuner takes the fastest of those that compile. It stops at what the front end
    refuses, and where none compiles; not known where it may have others (`of` is 0)."""
    most = tried[0][0]["of"]
    refused = [(_named(unit), answer) for unit, answer in tried if answer.word == NO]
    stop = next((each for each in refused if not each[1].passed_over), None) if most > 1 else None
    if stop is not None:
        return replace(stop[1], configurations=f"with {stop[0]}, which stops the autotuner")
    some = f", the first {len(tried)} of {most}" if len(tried) < most else ""
    fits = [answer for _, answer in tried if answer.word == YES]
    if fits:
        named = first_of([f"{name} ({answer.sentence})" for name, answer in refused], _MOST_NAMED)
        said = f"{len(fits)} of {len(tried)} configurations compile{some}{', not ' * bool(named)}{named}"
        return replace(max(fits, key=_taken), configurations=said * (len(tried) > 1))
    if len(refused) < len(tried):
        return next(answer for _, answer in tried if answer.word != NO)
    least = min((answer for _, answer in refused), key=lambda each: each.overflow[1] if each.overflow else 0)
    if most == len(tried):
        return replace(least, configurations=f"none of its {most} configurations compiles" if most > 1 else "")
    what = f"{len(tried)} configurations{some}" if len(tried) > 1 else "the one configuration that is known"
    return replace(least, word=UNJUDGED, configurations=f"the compiler refuses {what}; others are possible")


def _named(unit: dict[str, Any]) -> str:
    return " and ".join(f"{name} = {value}" for name, value in unit["configuration"].items()) or "no sizes"


def _taken(answer: Answer) -> int:
    return answer.memory.get("UB", [0])[0]

