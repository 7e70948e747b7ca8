"""The proof as text for a terminal and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from transplt.base.render.cell import visible
from transplt.base.render.verdict import Word
from transplt.proof.prove.found import Part
from transplt.proof.prove.proof import Proof
from transplt.proof.prove.record import Setup, sealed
from transplt.proof.prove.tolerance import TIMES, in_words

SCHEMA_VERSION = 2
_SHOWN = 5


def as_text(proof: Proof) -> str:
    """The verdict, then a paragraph for each comparison; where there is but one, its verdict stands on top only."""
    lines = [f"transplt prove: {visible(str(proof.verdict))}"]
    for part in proof.parts:
        lines.append(f"  {visible(part.title)}")
        if len(proof.parts) > 1:
            lines.append(f"    {visible(str(part.verdict))}")
        lines += [f"    {visible(str(each))}" for each in part.findings.properties]
        lines += [f"    {visible(line)}" for line in _more(part)]
    return "\n".join(lines)


def _more(part: Part) -> list[str]:
    found = part.findings
    lines = [closeness] if (closeness := how_close(part)) else []
    said = {each.verdict.sentence for each in found.properties}
    more = [each for each in map(str, found.differences[1:]) if each not in said]
    lines += [f"also: {line}" for line in more[:_SHOWN]]
    if len(more) > _SHOWN:
        lines.append(f"... and {len(more) - _SHOWN} more")
    lines += [f"not compared: {reason}" for reason in remaining_reasons(part)]
    return lines + found.remarks


def how_close(part: Part) -> str:
    """How far figures may be apart and count as equal; empty where nothing was compared."""
    found = part.findings
    # What differs at once was held against nothing: no bound was needed, and none is named.
    judged = part.verdict.word is Word.EQUAL or (part.verdict.word is Word.DIFFERS and found.widths)
    judged = bool(judged and (found.steps or found.printed or found.saved))
    return f"tolerance: {in_words(found.widths)}" if judged and found.rounding is not None else ""


def remaining_reasons(part: Part) -> list[str]:
    """Why something was not compared, without the reason that the verdict's sentence has."""
    return [reason for reason in part.findings.reasons if reason not in part.verdict.sentence]


def as_json(proof: Proof, setup: Setup, **more: Any) -> dict[str, Any]:
    """The record of the proof: what it was made with, what it found, `more` of that, a hash that a change breaks."""
    return sealed(
        {
            "schema_version": SCHEMA_VERSION,
            "verdict": proof.verdict.word.value,
            "sentence": proof.verdict.sentence,
            **asdict(setup),
            "comparisons": [_part_as_json(part) for part in proof.parts],
            **more,
            "seconds_of_runs": round(proof.seconds, 1),
        }
    )


def _part_as_json(part: Part) -> dict[str, Any]:
    found = part.findings
    return {
        "title": part.title,
        "verdict": part.verdict.word.value,
        "sentence": part.verdict.sentence,
        "steps": found.steps,
        "printed_results": found.printed,
        "saved_tensors": found.saved,
        # Shares of the figures; null where none was held to one.
        "tolerance": found.rounding
        and {"rounding": found.rounding.share, "times": TIMES, "steps": [asdict(width) for width in found.widths]},
        "differences": [
            {
                "what": each.what,
                "path": each.place.path if each.place else None,
                "line": each.place.line if each.place else None,
                "original_path": each.original.path if each.original else None,
                "original_line": each.original.line if each.original else None,
                "step": each.step,
                "cause": each.cause,
            }
            for each in found.differences
        ],
        "properties": [
            {"name": each.name, "verdict": each.verdict.word.value, "sentence": each.verdict.sentence}
            for each in found.properties
        ],
        "not_compared": found.reasons,
        "remarks": found.remarks,
        # JSON has no NaN and no infinity: they are the texts that `float` reads.
        "curves": [
            {"name": curve.name,
             "steps": [[x if x is None or math.isfinite(x) else str(x) for x in row] for row in curve.rows]}
            for curve in found.curves
        ],
    }
