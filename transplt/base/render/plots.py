"""Where the points of a plot stand: two losses on a linear scale, a distance on a logarithmic one with a line for 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from transplt.base.render.cell import figure, many

#: The size of a drawing, and the box in it that the axes make, in units of its viewBox.
WIDTH, HEIGHT = 520, 250
LEFT, RIGHT, TOP, BOTTOM = 78, 508, 14, 202
#: The lowest power of ten stands so far above the line for 0.
_ABOVE_ZERO = 24
#: More points than that are thinned: of each stretch its lowest and its highest stay.
MOST_POINTS = 240
_MARKS, _TICKS = 10, 6


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """One curve. `stretches` are the points ("x,y x,y") between gaps, `marks` the points that get a mark."""

    name: str
    kind: str
    stretches: list[str]
    marks: list[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """`sentence` is the plot in words, for those who do not see it; `notes` are what it cannot show."""

    title: str
    y_label: str
    sentence: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    lines: list[Line]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Distance:
    """What a distance is of. `share` follows a figure of it, `zero` says what 0 means."""

    title: str
    unit: str
    share: str
    zero: str


PARAMETERS = Distance(
    "Distance of the parameters", "share of their norm", " of their norm", "the parameters are the same"
)


def loss_plot(
    curve: Sequence[tuple[float | None, float | None, float | None]],
    names: tuple[str, str],
    places: Sequence[str] | None = None,
) -> Plot | None:
    """Both losses by step; None where no step has one that can be drawn. `names` are those of the two programs,
    `places` how each step is called (by its number from 1 on)."""
    columns = [row[0] for row in curve], [row[1] for row in curve]
    drawn = [value for column in columns for value in column if value is not None and math.isfinite(value)]
    if not drawn:
        return None
    ticks = _steps_of(min(drawn), max(drawn))
    low, high = ticks[0], ticks[-1]

    def y(value: float) -> float:
        return BOTTOM - (min(max(value, low), high) - low) / (high - low) * (BOTTOM - TOP)

    lines = [_line(name, kind, column, y) for name, kind, column in zip(names, ("one", "other"), columns, strict=True)]
    notes = [_not_finite(f"the loss of {name}", column) for name, column in zip(names, columns, strict=True)]
    return Plot(
        "Loss", "loss", f"{_course(names[0], columns[0])}; {_course(names[1], columns[1])}",
        _x_ticks(len(curve), places),
        [Tick(round(y(value), 1), figure(value)) for value in ticks], lines, [note for note in notes if note],
    )  # fmt: skip


def distance_plot(
    curve: Sequence[tuple[float | None, float | None, float | None]],
    of: Distance = PARAMETERS,
    places: Sequence[str] | None = None,
) -> Plot | None:
    """A distance by step; None where no step has one."""
    column = [row[2] for row in curve]
    known = [value for value in column if value is not None]
    if not known:
        return None
    drawn = [value for value in known if math.isfinite(value) and value > 0]
    low = math.floor(math.log10(min(drawn))) if drawn else 0
    high = max(math.ceil(math.log10(max(drawn))), low + 1) if drawn else 0
    floor = BOTTOM - _ABOVE_ZERO

    def y(value: float) -> float:
        return floor - (math.log10(value) - low) / (high - low) * (floor - TOP) if value > 0 else BOTTOM

    every = math.ceil((high - low) / _TICKS) if drawn else 1
    powers = range(low, high + 1, every) if drawn else ()
    ticks = [Tick(BOTTOM, "0"), *(Tick(round(y(10.0**power), 1), figure(10.0**power)) for power in powers)]
    if drawn:
        at = column.index(max(drawn))
        sentence = f"at most {figure(max(drawn), 2)}{of.share}, at step {places[at] if places else at + 1}"
    elif any(math.isfinite(value) for value in known):
        sentence = f"0 after each of {many(len(known), 'step')}: {of.zero}"
    else:
        sentence = "no number at any step"
    notes = [note] if (note := _not_finite("the distance", column)) else []
    return Plot(
        of.title, of.unit, sentence, _x_ticks(len(curve), places), ticks,
        [_line("distance", "one", column, y)], notes,
    )  # fmt: skip


def _x(step: int, steps: int) -> float:
    """Where a step (from 1) stands; a single one in the middle."""
    share = (step - 1) / (steps - 1) if steps > 1 else 0.5
    return round(LEFT + share * (RIGHT - LEFT), 1)


def _x_ticks(steps: int, places: Sequence[str] | None = None) -> list[Tick]:
    size = max(int(_round_step(max(steps - 1, 1) / _TICKS)), 1)
    numbers = [1, *(number for number in range(size, steps, size) if number > 1 + size / 2), steps]
    if len(numbers) > 2 and steps - numbers[-2] < size / 2:
        del numbers[-2]
    texts = places or [str(number) for number in range(1, steps + 1)]
    return [Tick(_x(number, steps), texts[number - 1]) for number in sorted({*numbers})]


def _round_step(rough: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is not smaller."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough * (1 - 1e-9)), 10 * power)


def _steps_of(low: float, high: float) -> list[float]:
    """Round numbers from at most `low` to at least `high`."""
    low, high = max(low, -1e300), min(high, 1e300)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = abs(high) * 0.1 or 1.0
        low, high = low - room, high + room
    size = _round_step((high - low) / (_TICKS - 1))
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return [number * size for number in range(first, max(last, first + 1) + 1)]


def _line(name: str, kind: str, column: Sequence[float | None], y: Callable[[float], float]) -> Line:
    stretches: list[list[tuple[float, float]]] = [[]]
    for place in _thinned(column):
        value = column[place]
        if value is None or not math.isfinite(value):
            stretches.append([])
        else:
            stretches[-1].append((_x(place + 1, len(column)), round(y(value), 1)))
    points = [point for stretch in stretches for point in stretch]
    every = max(len(points) // _MARKS, 1)
    # Marks of two lines that lie on one another take turns.
    first = every // 2 if kind == "other" else 0
    texts = [" ".join(f"{a:g},{b:g}" for a, b in stretch) for stretch in stretches if stretch]
    return Line(name, kind, texts, points[first::every])


def _thinned(column: Sequence[float | None]) -> list[int]:
    """The places that are drawn."""
    if len(column) <= MOST_POINTS:
        return list(range(len(column)))
    size = math.ceil(2 * len(column) / MOST_POINTS)
    kept: set[int] = {0, len(column) - 1}
    for begin in range(0, len(column), size):
        stretch = range(begin, min(begin + size, len(column)))
        known = [(value, place) for place in stretch if (value := column[place]) is not None and math.isfinite(value)]
        kept |= {min(known)[1], max(known)[1]} if known else {begin}
    return sorted(kept)


def _course(name: str, column: Sequence[float | None]) -> str:
    drawn = [value for value in column if value is not None and math.isfinite(value)]
    return f"{name}: from {figure(drawn[0], 4)} to {figure(drawn[-1], 4)}" if drawn else f"{name}: no loss"


def _not_finite(name: str, column: Sequence[float | None]) -> str:
    places = [place for place, value in enumerate(column) if value is not None and not math.isfinite(value)]
    if not places:
        return ""
    return f"{name} is {column[places[0]]} at step {places[0] + 1}" + (
        f" and at {len(places) - 1} more" if len(places) > 1 else ""
    )
