"""The page of a proof: what it says, that it is one file, and how it looks in a browser."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser, browser
from tests.prove.test_record import SETUP
from tests.test_html_report import in_browser
from transplt.base.render.plots import BOTTOM, LEFT, MOST_POINTS, RIGHT, TOP, Plot, distance_plot, loss_plot
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove.found import Curve, Difference, Findings, Part
from transplt.proof.prove.page import render_page
from transplt.proof.prove.proof import Proof
from transplt.proof.prove.proof_text import as_json
from transplt.proof.prove.tolerance import PLAIN
from transplt.proof.prove.training import Place

Rows = list[tuple[float | None, float | None, float | None]]
NASTY = "</script></style><img src=x onerror=alert(1)>\" '"
NAMES = ("original", "migrated")


def part(word: Word = Word.EQUAL, sentence: str = "fine", **found: Any) -> Part:
    return Part("one and the other", Verdict(word, sentence), Findings(**found))


def page(*parts: Part, command: str = "transplt prove old new") -> str:
    proof = Proof(list(parts), 12.3)
    return render_page(proof, as_json(proof, replace(SETUP, command=command))).decode()


def one(rows: Rows) -> list[Curve]:
    return [Curve("optimizer 0 (SGD)", rows)]


def falling(steps: int) -> Rows:
    return [(2 / (step + 1), 2 / (step + 1), 0.0) for step in range(steps)]


# --- what it says ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", Word)
def test_the_verdict_stands_on_top_among_the_five_words(word: Word) -> None:
    text = page(part(word, "one of its own"))
    words = re.findall(r'<li( aria-current="true")? title="[^"]+">([^<]+)</li>', text)
    assert [each for _, each in words] == ["equal", "runs", "differs", "stops", "not run"]
    assert [each for current, each in words if current] == [word.value]
    assert f"{word.value}</strong>: one of its own</p>" in text and word.meaning.replace("'", "&#39;") in text
    assert text.count("one of its own") == 1
    assert text.index("one of its own") < text.index("one and the other")


def test_a_section_for_each_comparison() -> None:
    text = page(part(steps=20, printed=12, rounding=PLAIN), part(Word.RUNS, "ran", reasons=["no loader"]))
    assert text.count("<h2") == 4
    assert "<dt>Compared</dt><dd>20 steps, 12 printed results</dd>" in text
    assert "<dt>Tolerance</dt><dd>none was needed:" in text
    assert "<h3>Not compared</h3>\n  <ul><li>no loader</li></ul>" in text
    assert text.count("<h3>Not compared") == 1 and "<h3>Differences" not in text


def test_differences_have_their_places_and_causes() -> None:
    first = Difference("the loss differs", Place("a/train.py", 14), Place("a/train.py", 12), 8, "StepLR is missing")
    text = page(part(Word.DIFFERS, "d", differences=[first, Difference("no line")]))
    assert 'a/train.py:14</span>, in the original <span class="place">a/train.py:12</span>, step 8</p>' in text
    assert "<p>Cause: StepLR is missing</p>" in text
    assert 'no line\n      <p class="quiet">the line is not known</p>' in text


def test_what_it_was_made_with_stands_at_the_end() -> None:
    text = page(part())
    assert "<code>transplt prove old new</code>" in text and "2026-01-02T03:04:05+00:00, 12 seconds of runs" in text
    assert "transplt 1, python 3.11.4, torch 2.13.0, target: torch 2.8</dd>" in text
    assert "processes 1, cards of each host 8, steps 20, seed 1234, threads 1, timeout 600.0</dd>" in text
    assert f"<dt>original</dt><dd>old, commit {'a' * 40}, files <code>{'b' * 64}</code></dd>" in text
    assert f"<dt>migrated</dt><dd>new, files <code>{'c' * 64}</code></dd>" in text


def test_it_needs_nothing_else() -> None:
    text = page(part(curves=one(falling(3))))
    assert "default-src 'none'" in text
    assert re.findall(r'(?:src|href)="(?!data:,|#)[^"]*"', text) == []
    assert "url(" not in text and "@import" not in text and "http:" not in text and "https:" not in text


def test_texts_are_no_markup() -> None:
    named = Difference(NASTY, Place(NASTY, 1), Place(NASTY + "2", 2), 3, NASTY)
    odd = Part(NASTY, Verdict(Word.DIFFERS, NASTY), Findings(
        3, differences=[named], reasons=[NASTY + "why"], remarks=[NASTY], sides=(NASTY, NASTY),
        curves=[Curve(NASTY, falling(3))] * 2,
    ))  # fmt: skip
    text = page(odd, odd, command=NASTY)
    assert "<img" not in text and text.count("</script>") == 1 and text.count("</style>") == 1
    assert text.count("&lt;img src=x") > 20


def test_control_characters_are_shown() -> None:
    text = page(part(Word.STOPS, "a\x1b[0m\udcff\nb"), command="prove \udc80")
    assert "a\\x1b[0m\\xff\\nb" in text and "prove \\x80" in text


def test_the_figures_are_listed_up_to_a_number() -> None:
    text = page(part(curves=one([(0.5, None, 1e-5)] * 1500)))
    assert text.count("<tr><td") == 1000 and "and 500 more" in text
    assert '<td class="number">0.5</td><td class="number">-</td><td class="number">0.00001</td>' in text


# --- the curves ------------------------------------------------------------------------------------------------------


def points(plot: Plot | None, line: int = 0) -> list[list[tuple[float, float]]]:
    """The points of a line, a list for each stretch."""
    assert plot is not None
    return [[tuple(map(float, each.split(","))) for each in text.split()] for text in plot.lines[line].stretches]  # type: ignore[misc]


@pytest.mark.parametrize("curve", [[], [(None, None, None)], [(math.nan, math.inf, None)]])
def test_nothing_to_draw(curve: Rows) -> None:
    assert loss_plot(curve, NAMES) is None and distance_plot(curve) is None
    assert "<figure" not in page(part(curves=one(curve)))


def test_both_losses_told_apart_without_colour() -> None:
    plot = loss_plot(falling(5), NAMES)
    assert plot is not None
    assert [(line.name, line.kind) for line in plot.lines] == [("original", "one"), ("migrated", "other")]
    assert plot.sentence == "original: from 2 to 0.4; migrated: from 2 to 0.4"
    text = page(part(curves=one(falling(5))))
    assert '<g class="one">' in text and '<circle class="mark"' in text
    assert '<g class="other">' in text and '<path class="mark"' in text
    assert re.search(r"\.plot \.other polyline[^}]*stroke-dasharray", text)
    assert ">step</text>" in text and ">loss</text>" in text and ">share of their norm</text>" in text


def test_a_drawing_for_each_optimizer() -> None:
    curves = [Curve("optimizer 0 (Adam of Generator)", falling(5)), Curve("optimizer 1 (SGD)", falling(3))]
    text = page(part(curves=curves))
    assert re.findall("<figcaption>(.*)</figcaption>", text) == [
        "Loss, optimizer 0 (Adam of Generator)", "Distance of the parameters, optimizer 0 (Adam of Generator)",
        "Loss, optimizer 1 (SGD)", "Distance of the parameters, optimizer 1 (SGD)",
    ]  # fmt: skip
    assert "<summary>The figures, optimizer 1 (SGD)</summary>" in text and text.count("<tr><td") == 8
    assert re.findall("<figcaption>(.*)</figcaption>", page(part(curves=curves[:1]))) == [
        "Loss", "Distance of the parameters",
    ]  # fmt: skip


def test_marks_of_equal_losses_take_turns() -> None:
    plot = loss_plot(falling(60), NAMES)
    assert plot is not None
    one, other = ({*line.marks} for line in plot.lines)
    assert len(one) >= 10 and len(other) >= 10 and not one & other


def test_points_stand_inside_the_axes() -> None:
    for curve in (falling(1), falling(7), [(1e300, -1e300, 1e-300), (5e-324, 0.0, 1e300)], [(3.0, 3.0, 0.0)] * 2):
        for plot in (loss_plot(curve, NAMES), distance_plot(curve)):
            assert plot is not None
            for line in range(len(plot.lines)):
                for x, y in (point for stretch in points(plot, line) for point in stretch):
                    assert LEFT <= x <= RIGHT and TOP <= y <= BOTTOM
            assert 2 <= len(plot.y_ticks) <= 9 or all(row[2] == 0 for row in curve)


def test_a_loss_without_a_number_is_a_gap_and_a_note() -> None:
    plot = loss_plot([(1.0, 1.0, 0.0), (1.0, math.nan, 0.0), (1.0, None, 0.0), (1.0, 1.0, 0.0)], NAMES)
    assert plot is not None
    assert [len(stretch) for stretch in points(plot, 1)] == [1, 1] and len(points(plot, 0)) == 1
    assert plot.notes == ["the loss of migrated is nan at step 2"]


def test_the_distance_on_a_logarithmic_scale() -> None:
    plot = distance_plot([(1.0, 1.0, value) for value in (0.0, 1e-8, 1e-7, 1e-6)])
    assert plot is not None
    assert [tick.text for tick in plot.y_ticks] == ["0", "1e-8", "1e-7", "1e-6"]
    (stretch,) = points(plot)
    assert stretch[0][1] == BOTTOM == plot.y_ticks[0].at  # zero has the line at the bottom
    assert [y for _, y in stretch[1:]] == [tick.at for tick in plot.y_ticks[1:]]
    assert abs((stretch[1][1] - stretch[2][1]) - (stretch[2][1] - stretch[3][1])) < 0.2
    assert plot.sentence == "at most 1e-6 of their norm, at step 4"


def test_equal_parameters_lie_on_the_line_of_zero() -> None:
    plot = distance_plot(falling(4))
    assert plot is not None
    assert [tick.text for tick in plot.y_ticks] == ["0"]
    assert {y for _, y in points(plot)[0]} == {BOTTOM}
    assert plot.sentence == "0 after each of 4 steps: the parameters are the same"


def test_steps_on_the_axis() -> None:
    def ticks(steps: int) -> list[str]:
        plot = loss_plot(falling(steps), NAMES)
        assert plot is not None
        return [tick.text for tick in plot.x_ticks]

    assert ticks(1) == ["1"]
    assert ticks(4) == ["1", "2", "3", "4"]
    assert ticks(20) == ["1", "5", "10", "15", "20"]
    assert ticks(1003) == ["1", "200", "400", "600", "800", "1003"]


def test_long_trainings_are_thinned_and_keep_their_peaks() -> None:
    curve: Rows = [(1.0, 1.0, 0.0)] * 100_000
    curve[54_321] = (9.0, 1.0, 1e-3)
    plot = loss_plot(curve, NAMES)
    (stretch,) = points(plot)
    assert len(stretch) <= MOST_POINTS + 2
    assert len({y for _, y in stretch}) == 2
    assert len(page(part(curves=one(curve)))) < 300_000


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@in_browser
def test_wide_narrow_light_and_dark(shown: Browser, tmp_path: Path) -> None:
    file = tmp_path / "proof.html"
    differences = [Difference("x" * 300, Place("a" * 200 + ".py", 1))]
    file.write_text(page(part(Word.DIFFERS, "y" * 300, differences=differences, curves=one(falling(20)))), "utf-8")
    for width in (1200, 320):
        shown.size(width, 900)
        shown.open(file)
        shown.wait("document.readyState === 'complete'")
        assert shown.run("return document.documentElement.scrollWidth") <= width
    assert shown.run("return document.querySelectorAll('svg.plot[role=img]').length") == 2
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = shown.run(colour)
    shown.click("#theme")
    assert shown.run(colour) != before
    assert shown.log() == []
