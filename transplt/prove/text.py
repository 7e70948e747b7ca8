"""The proof as text for a terminal and as JSON."""

from __future__ import annotations

from typing import Any

from transplt.prove.proof import Part, Proof
from transplt.report.cell import visible

SCHEMA_VERSION = 1
_SHOWN = 5


def as_text(proof: Proof) -> str:
    """The verdict, then a paragraph for each comparison."""
    lines = [f"transplt prove: {visible(str(proof.verdict))}"]
    for part in proof.parts:
        lines += _part(part)
    return "\n".join(lines)


def _part(part: Part) -> list[str]:
    found = part.findings
    lines = [f"  {part.title}", f"    {visible(str(part.verdict))}"]
    more = [visible(str(each)) for each in found.differences[1:]]
    lines += [f"    also: {line}" for line in more[:_SHOWN]]
    if len(more) > _SHOWN:
        lines.append(f"    ... and {len(more) - _SHOWN} more")
    lines += [f"    not compared: {visible(reason)}" for reason in found.reasons]
    lines += [f"    {visible(remark)}" for remark in found.remarks]
    return lines


def as_json(proof: Proof, command: list[str], torch: str, version: str) -> dict[str, Any]:
    """What the proof rests on."""
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": proof.verdict.word.value,
        "sentence": proof.verdict.sentence,
        "command": command,
        "torch": torch,
        "target_torch_version": version,
        "comparisons": [part.as_json() for part in proof.parts],
        "seconds_of_runs": round(proof.seconds, 1),
    }
