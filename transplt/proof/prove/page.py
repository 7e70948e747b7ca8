"""The proof as one page that needs no network: the verdict on top, then a section for each comparison."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from transplt.base.disk.replace import write_asked_for
from transplt.base.render import plots
from transplt.base.render.cell import figure, visible
from transplt.base.render.templates import asset, fill
from transplt.base.render.verdict import Word
from transplt.proof.prove.found import Curve, Part
from transplt.proof.prove.options import Prove
from transplt.proof.prove.proof import Proof
from transplt.proof.prove.proof_text import how_close, remaining_reasons
from transplt.proof.run_section import add_proof

#: So many rows of figures are listed below the plots; the JSON has all.
_MOST_ROWS = 1000


def report(given: Prove, command: str, migrated: Path, proof: Proof, record: dict[str, Any], text: str) -> None:
    """Write the reports that were asked for; `command` made the proof, and `text` is all of it."""
    if given.json_report is not None:
        write_asked_for(given.json_report, f"{json.dumps(record, indent=1)}\n".encode())
    if given.html_report is not None:
        write_asked_for(given.html_report, render_page(proof, record))
        told = f"$ {visible(command)}\n{text}"
        add_proof(migrated, str(proof.verdict.word), proof.verdict.sentence, told, proof.seen)


def render_page(proof: Proof, record: dict[str, Any]) -> bytes:
    """The bytes of the page, UTF-8. `record` is what `as_json` gives of the proof."""
    versions = dict(record["versions"])
    target, ran_on = versions.pop("torch_npu"), versions.pop("torch_npu_emulated", "")
    versions |= {"torch_npu": ran_on} if ran_on else {}
    versions["target: torch"] = target
    return fill(
        "proof.html.j2",
        command=visible(record["command"]),
        made=record["made"],
        seconds=f"{proof.seconds:.0f}",
        memory=proof.memory,
        versions=visible(", ".join(f"{name} {version}" for name, version in versions.items())),
        settings=visible(", ".join(_setting(*each) for each in record["settings"].items() if each[1] != [])),
        programs=[
            {"side": side, **{name: visible(value) for name, value in record[side].items()}}
            for side in ("original", "migrated")
        ],
        sha256=record["sha256"],
        word=proof.verdict.word.value,
        sentence=visible(proof.verdict.sentence),
        words=[{"text": word.value, "meaning": word.meaning} for word in Word],
        parts=[_part(part) for part in proof.parts],
        box={"width": plots.WIDTH, "height": plots.HEIGHT, "left": plots.LEFT, "right": plots.RIGHT,
             "top": plots.TOP, "bottom": plots.BOTTOM},
        css=asset("colors.css") + asset("report.css") + asset("proof.css"),
        script=asset("theme.js"),
    )  # fmt: skip


def _setting(name: str, value: Any) -> str:
    name = "cards of each host" if name == "npus" else name
    return f"{name} {' '.join(map(str, value)) if isinstance(value, list) else value}"


def _part(part: Part) -> dict[str, Any]:
    found = part.findings
    return {
        "title": visible(part.title),
        "word": part.verdict.word.value,
        "sentence": visible(part.verdict.sentence),
        "held": ", ".join(found.counted),
        "close": how_close(part).removeprefix("tolerance: "),
        "differences": [
            {
                "what": visible(each.what),
                "place": visible(str(each.place)) if each.place else "",
                "original": visible(str(each.original)) if each.original and each.original != each.place else "",
                "step": each.step,
                "cause": visible(each.cause),
            }
            for each in found.differences
        ],
        "properties": [
            {"name": each.name, "word": each.word, "sentence": visible(each.verdict.sentence)}
            for each in found.properties
        ],
        "reasons": [visible(each) for each in remaining_reasons(part)],
        "remarks": [visible(each) for each in found.remarks],
        "sides": found.sides,
        "curves": [_curve(each, found.sides, alone=len(found.curves) == 1) for each in found.curves],
    }


def _curve(curve: Curve, sides: tuple[str, str], *, alone: bool) -> dict[str, Any]:
    name = "" if alone else f", {visible(curve.name)}"
    drawn = (plots.loss_plot(curve.rows, sides), plots.distance_plot(curve.rows))
    return {
        "name": name,
        "plots": [replace(plot, title=f"{plot.title}{name}") for plot in drawn if plot is not None],
        "rows": [["-" if value is None else figure(value) for value in row] for row in curve.rows[:_MOST_ROWS]],
        "more_rows": max(len(curve.rows) - _MOST_ROWS, 0),
    }
