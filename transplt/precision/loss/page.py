"""Two loss curves as one page that needs no network."""

from __future__ import annotations

import transplt
from transplt.base.render import plots
from transplt.base.render.cell import figure, many, visible
from transplt.base.render.templates import asset, fill
from transplt.precision.loss.answer_text import Answer, advice, drift, fifth_text, remarks, sentence, share

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
    drawn = (
        plots.loss_plot(curve, ("A", "B"), places),
        plots.distance_plot(curve, _DIFFERENCE, places),
    )
    return fill(
        "loss.html.j2",
        version=transplt.__version__,
        a=visible(answer.names[0]),
        b=visible(answer.names[1]),
        word=word,
        rest=visible(summary.removeprefix(word)),
        facts=[(label, visible(text)) for label, text in _facts(answer)],
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


def _facts(answer: Answer) -> list[tuple[str, str]]:
    found, judged = answer.found, answer.judged
    facts = [
        ("A", f"{answer.names[0]}: {many(found.counts[0], 'value')} of {found.names[0]}"),
        ("B", f"{answer.names[1]}: {many(found.counts[1], 'value')} of {found.names[1]}"),
        ("Compared", many(len(found.pairs), "value")),
        ("Limits", f"mean |A - B| up to {figure(judged.limits.absolute)}, or {share(judged.limits.share)} of the loss"),
    ]
    if judged.parts:
        facts.append(("Drift", drift(judged)))
    if answer.fifth is not None:
        facts.append(("First fifth", fifth_text(answer.fifth)))
    return facts
