"""What a comparison of kernels came to, as text, and as the record and page of a proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from transplt.base.render.cell import figure, first_of, many, visible
from transplt.base.render.verdict import Verdict, Word, gravest
from transplt.proof.compiler.launches import Compiled
from transplt.proof.kernels.calls import Calls
from transplt.proof.kernels.judged import KernelResult
from transplt.proof.prove import proof_text
from transplt.proof.prove.found import Findings, Part
from transplt.proof.prove.proof import Proof
from transplt.proof.prove.record import Setup

_SHOWN = 5
_HEAD = ("kernel", "place", "launches", "programs", "verdict", "largest difference")


@dataclass
class KernelProof(Proof):
    """All kernels. `never` are those of the original that were not launched; `why` is why its script ended early."""

    kernels: list[KernelResult] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    why: str = ""
    shortened: list[str] = field(default_factory=list)
    compiled: Compiled | None = None

    @classmethod
    def of(cls, kernels: list[KernelResult], calls: Calls, never: list[str], seconds: float) -> KernelProof:
        more = [
            f"{one['name']} was called with {one['different']} different arguments; the first are compared"
            for one in calls.told["more"]
        ]
        parts = []
        for each in kernels:
            remarks = [f"shapes: {shape}" for shape in each.shapes[:_SHOWN]]
            remarks += [f"limit: {limit}" for limit in each.limits] + each.remarks
            findings = Findings(differences=each.differences, reasons=[*dict.fromkeys(each.reasons)], remarks=remarks)
            parts.append(Part(each.title, each.verdict, findings))
        proof = cls(parts, seconds, "", kernels, never, calls.why, more)
        libraries = calls.told["libraries"]
        if libraries:
            proof.shortened.append(f"kernels of libraries: {first_of(libraries, _SHOWN)}")
        return proof

    @property
    def verdict(self) -> Verdict:
        verdicts = [each.verdict for each in self.kernels]
        worst = gravest(verdicts)
        count = sum(each.word is Word.EQUAL for each in verdicts)
        told = f"{count} of {many(len(verdicts), 'kernel')} equal"
        if worst.word is not Word.EQUAL:
            first = next(each for each in self.kernels if each.verdict == worst)
            return Verdict(worst.word, f"{told}; {first.title}: {worst.sentence}")
        launches = sum(each.compared for each in self.kernels)
        told = f"{many(count, 'kernel')} compared in {launches} launch{'es' if launches != 1 else ''}"
        near = [each for each in self.kernels if each.largest]
        told += f", {len(near)} of them within roundings" if near else ", bit-identical"
        sampled = [each for each in self.kernels if each.sampled]
        if sampled:
            most = max(sampled, key=lambda each: each.programs)
            told += f"; large grids were sampled: {most.ran:,} of {most.programs:,} programs"
        return Verdict(Word.EQUAL, told + (f"; {len(self.never)} never launched" if self.never else ""))

    def left(self) -> list[str]:
        found = [f"{each} (never launched)" for each in self.never[:_SHOWN]]
        if len(self.never) > _SHOWN:
            found.append(f"{len(self.never) - _SHOWN} more kernels that were never launched")
        if self.why:
            found.append(f"kernels after the place where the original stopped: {self.why}")
        return found + self.shortened


def as_text(proof: KernelProof) -> str:
    """The verdict, a table by kernel, and a sentence for each that is not equal."""
    lines = [f"transplt prove: {visible(str(proof.verdict))}"]
    rows = [_HEAD, *(_row(each) for each in proof.kernels)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"  {'  '.join(cells)}".rstrip())
    for each in proof.kernels:
        said = [] if each.verdict.word is Word.EQUAL else [each.verdict.sentence]
        also = [str(other) for other in each.differences if other.what not in each.verdict.sentence]
        said += [f"also: {other}" for other in dict.fromkeys(also[:_SHOWN])]
        said += [f"limit: {limit}" for limit in each.limits[:_SHOWN]] + each.remarks
        if each.verdict.word is Word.EQUAL and each.largest:
            said.insert(0, f"within roundings: {'; '.join(each.roundings)}")
        lines += [visible(f"  {each.kernel.name}: {line}") for line in said]
    lines += [f"  {line}" for line in (proof.compiled.lines() if proof.compiled is not None else ())]
    lines += [visible(f"  not compared: {reason}") for reason in proof.left()]
    return "\n".join(lines)


def _row(result: KernelResult) -> tuple[str, ...]:
    programs = f"{result.ran:,} of {result.programs:,}" if result.sampled else f"{result.programs:,}"
    largest = "none" if result.compared and not result.differences else "-"
    if result.largest:
        largest = f"{figure(result.largest, 3)} ({figure(result.share, 2)} of the largest)"
    return (
        visible(result.kernel.name), visible(str(result.place)), str(result.launches), programs,
        result.verdict.word.value, largest,
    )  # fmt: skip


def as_json(proof: KernelProof, setup: Setup) -> dict[str, Any]:
    """As the record of a proof, each kernel a comparison, and `kernels` with their numbers."""
    compiled = proof.compiled.as_json() if proof.compiled is not None else None
    kernels = [_kernel(each) for each in proof.kernels]
    return proof_text.as_json(proof, setup, kernels=kernels, compiled=compiled, not_compared=proof.left())


def _kernel(result: KernelResult) -> dict[str, Any]:
    return {
        "name": result.kernel.name, "path": result.place.path, "line": result.place.line,
        "migrated_path": result.migrated.path if result.migrated else None,
        "migrated_line": result.migrated.line if result.migrated else None,
        "verdict": result.verdict.word.value, "launches": result.launches, "compared": result.compared,
        "programs": result.programs, "programs_run": result.ran, "shapes": result.shapes,
        "largest_difference": result.largest, "largest_share": result.share, "roundings": result.roundings,
        "limits": result.limits,
    }  # fmt: skip
