"""The proof as one page that needs no network: the verdict on top, then a section for each comparison."""

from __future__ import annotations

from typing import Any

import transplt
from transplt.proof.prove.found import Difference, Part
from transplt.proof.prove.proof import Proof
from transplt.proof.prove.proof_text import how_close, remaining_reasons
from transplt.render import plots
from transplt.render.cell import figure, many, visible
from transplt.render.templates import asset, fill
from transplt.render.verdict import Word

#: So many rows of figures are listed below the plots; the JSON has all.
_MOST_ROWS = 1000


def render_page(proof: Proof, command: list[str], torch: str, version: str) -> bytes:
    """The bytes of the page, UTF-8. `command` are the two programs and their arguments, `torch` the version that ran,
    `version` the one whose torch_npu is the target."""
    return fill(
        "proof.html.j2",
        version=transplt.__version__,
        command=[visible(each) for each in command],
        torch=visible(torch),
        target=visible(version),
        seconds=f"{proof.seconds:.0f}",
        word=proof.verdict.word.value,
        sentence=visible(proof.verdict.sentence),
        words=[{"text": word.value, "meaning": word.meaning} for word in Word],
        parts=[_part(part) for part in proof.parts],
        box={"width": plots.WIDTH, "height": plots.HEIGHT, "left": plots.LEFT, "right": plots.RIGHT,
             "top": plots.TOP, "bottom": plots.BOTTOM},
        css=asset("report.css") + asset("proof.css"),
        script=asset("theme.js"),
    )  # fmt: skip


def _part(part: Part) -> dict[str, Any]:
    found = part.findings
    drawn = (plots.loss_plot(found.curve, found.sides), plots.distance_plot(found.curve))
    counted = ((found.steps, "step"), (found.printed, "printed result"), (found.saved, "saved tensor"))
    return {
        "title": visible(part.title),
        "word": part.verdict.word.value,
        "sentence": visible(part.verdict.sentence),
        "held": ", ".join(many(count, noun) for count, noun in counted if count),
        "close": how_close(part).removeprefix("tolerance: "),
        "differences": [_difference(each) for each in found.differences],
        "reasons": [visible(each) for each in remaining_reasons(part)],
        "remarks": [visible(each) for each in found.remarks],
        "plots": [plot for plot in drawn if plot is not None],
        "sides": found.sides,
        "rows": [[_shown(value) for value in row] for row in found.curve[:_MOST_ROWS]],
        "more_rows": max(len(found.curve) - _MOST_ROWS, 0),
    }


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "what": visible(each.what),
        "place": visible(str(each.place)) if each.place else "",
        "original": visible(str(each.original)) if each.original and each.original != each.place else "",
        "step": each.step,
        "cause": visible(each.cause),
    }


def _shown(value: float | None) -> str:
    return "-" if value is None else figure(value)
