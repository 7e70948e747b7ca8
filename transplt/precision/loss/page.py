"""Two loss curves as one page that needs no network."""

from __future__ import annotations

import transplt
from transplt.base.render import plots
from transplt.base.render.cell import figure, visible
from transplt.base.render.templates import asset, fill
from transplt.precision.loss.answer_text import Answer, advice, facts, remarks, sentence, share

#: So many rows of figures are listed; the JSON has all.
_MOST_ROWS = 1000
_DIFFERENCE = plots.Distance("Difference", "|A - B|", "", "the curves are the same")


def loss_page(answer: Answer) -> bytes:
    """The bytes of the page, UTF-8."""
    pairs, judged = answer.found.pairs, answer.judged
    summary = sentence(answer)
    word = "same" if judged.same else "different"
    by_step = all(pair.step is not None and pair.epoch is None for pair in pairs)
    places = [f"{pair.step:g}" for pair in pairs] if by_step else None
    curve = [(pair.a, pair.b, abs(pair.a - pair.b)) for pair in pairs]
    drawn = plots.loss_plot(curve, ("A", "B"), places), plots.distance_plot(curve, _DIFFERENCE, places)
    return fill(
        "loss.html.j2",
        version=transplt.__version__,
        a=visible(answer.names[0]),
        b=visible(answer.names[1]),
        word=word,
        rest=visible(summary.removeprefix(word)),
        facts=[(label.capitalize(), visible(text)) for label, text in facts(answer)],
        advice=[visible(text) for text in advice(answer)],
        remarks=[visible(text) for text in remarks(answer)],
        plots=[plot for plot in drawn if plot is not None],
        parts=[
            (part.first.place, part.last.place, figure(part.mean, 4), share(part.share),
             "fine" if judged.limits.holds(part.mean, part.loss) else "apart")
            for part in judged.parts
        ],
        rows=[
            (pair.place, figure(pair.a), figure(pair.b), figure(abs(pair.a - pair.b), 4)) for pair in pairs[:_MOST_ROWS]
        ],
        more_rows=max(len(pairs) - _MOST_ROWS, 0),
        box={"width": plots.WIDTH, "height": plots.HEIGHT, "left": plots.LEFT, "right": plots.RIGHT,
             "top": plots.TOP, "bottom": plots.BOTTOM},
        css=asset("colors.css") + asset("report.css") + asset("proof.css"),
        script=asset("theme.js"),
    )  # fmt: skip
