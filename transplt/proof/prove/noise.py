"""The random numbers of a training: whether the ranks draw their own, and whether they come again at a later step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from transplt.base.render.cell import many
from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Place, Training


@dataclass(frozen=True)
class Draw:
    """What a line drew for a backward pass: the `number`-th time (from 0) in a step, with a checksum of the numbers,
    for the samples of a batch."""

    place: Place | None
    step: int
    number: int
    checksum: int
    samples: tuple[int, ...]
    rows: int = 0


def draws(training: Training) -> Iterator[Draw]:
    """Those between a batch and the backward pass on it; what an evaluation draws is not among them."""
    samples: tuple[int, ...] | None = None
    found: list[Draw] = []
    for event in training.events:
        if event.kind == "batch":
            samples, found = tuple(event.fields["indices"]), []
        elif event.kind == "noise" and samples is not None and not event.fields.get("few"):
            step, number, drawn = (event.fields[name] for name in ("step", "number", "sum"))
            found.append(Draw(event.place, step, number, drawn, samples, event.fields.get("rows", 0)))
        elif event.kind == "backward":
            yield from found
            found = []


def evaluates_with_draws(training: Training) -> bool:
    """Whether something is drawn for a batch that no backward pass follows: what is decided by it hangs on the draw."""
    drawn = False
    for event in training.events:
        if event.kind == "noise" and not event.fields.get("few"):
            drawn = True
        elif event.kind in ("batch", "backward", "loader"):
            if drawn and event.kind != "backward":
                return True
            drawn = False
    return drawn


def of_its_own(ranks: Sequence[Training], one: Training | None = None) -> Difference | str:
    """A rank that draws what another draws at the same line of the same step, for other samples; else how many draws
    were compared, "" for none. Where all draw the numbers of the global batch, each may take its part of them: those
    with a row for each sample, and those that `one` process draws in the same step for as many samples as all have."""
    whole = {(draw.step, draw.checksum, len(draw.samples)) for draw in (draws(one) if one is not None else ())}
    known: dict[tuple[Place | None, int, int], list[tuple[int, Draw]]] = {}
    compared = 0
    for training in ranks:
        for draw in draws(training):
            others = known.setdefault((draw.place, draw.step, draw.number), [])
            for rank, other in others:
                every = len(draw.samples) * len(ranks)
                of_all = draw.rows == every > 0 or (draw.step, draw.checksum, every) in whole
                if draw.samples == other.samples or of_all:
                    continue
                if draw.checksum == other.checksum:
                    what = f"rank {training.rank} draws the random numbers of rank {rank} at step {draw.step + 1}"
                    return Difference(f"{what}, for other samples", draw.place, step=draw.step + 1)
                compared += 1
            others.append((training.rank, draw))
    again = _of_all_once_more(ranks, one) if one is not None else None
    return again or ("each rank draws its own random numbers" if compared else "")


def as_of(ranks: Sequence[Training], originals: Sequence[Training]) -> Difference | str:
    """Whether no two ranks draw alike at one line and step, where none of the original do, whatever they draw for."""
    both = [_drawn_by_two(side) for side in (ranks, originals)]
    if not all(each.of("noise") for each in (*ranks, *originals)) or not originals or both[1] is not None:
        return ""
    return both[0] or "each rank draws its own random numbers"


def _drawn_by_two(ranks: Sequence[Training]) -> Difference | None:
    known: dict[tuple[Place | None, int, int, int], int] = {}
    for rank in ranks:
        for event in rank.of("noise"):
            step, number, drawn = (event.fields[name] for name in ("step", "number", "sum"))
            first = known.setdefault((event.place, step, number, drawn), rank.rank)
            if first != rank.rank and not event.fields.get("few"):
                what = f"rank {rank.rank} draws the random numbers of rank {first} at step {step + 1}"
                return Difference(f"{what}; in the original it draws its own", event.place, step=step + 1)
    return None


def _of_all_once_more(ranks: Sequence[Training], one: Training) -> Difference | None:
    """Numbers behind the training that all ranks draw alike, each a share of how many one process draws there."""
    every = (each.of("backward", "noise") for each in (*ranks, one))
    first, *others, alone = ([*takewhile(lambda each: each.kind == "noise", events[::-1])][::-1] for events in every)
    for mine, whole in zip(first, alone, strict=False):
        drawn, rows = (mine.place, mine.fields["sum"]), mine.fields.get("rows", 0)
        alike = all(drawn in ((each.place, each.fields["sum"]) for each in other) for other in others)
        if alike and not mine.fields.get("few") and 0 < rows * len(ranks) == whole.fields.get("rows"):
            what = f"all ranks draw the same {many(rows, 'row')} of random numbers"
            return Difference(f"{what}, where one process draws {whole.fields['rows']}", mine.place, whole.place)
    return None


def of_the_global_batch(ranks: Sequence[Training]) -> bool:
    """Whether numbers are drawn in training, all alike on all ranks, with a row for each sample of all of them."""
    lines = {event.place for training in ranks for event in training.of("draw")}
    every = [[draw for draw in draws(training) if draw.place in lines] for training in ranks]
    alike = len({tuple(replace(draw, samples=()) for draw in each) for each in every}) == 1
    whole = all(draw.rows == len(draw.samples) * len(ranks) for each in every for draw in each)
    return alike and whole and {draw.place for draw in every[0]} == lines != set()


def drawn_by_all(trainings: Sequence[Training]) -> bool:
    """Whether all processes draw the same numbers in training, each of them recorded, or none at all."""
    every = []
    for training in trainings:
        lines = {event.place for event in training.of("draw")}
        drawn = [event for event in training.of("noise") if event.place in lines]
        if {event.place for event in drawn} != lines:
            return False
        every.append([(event.fields["step"], event.fields["number"], event.fields["sum"]) for event in drawn])
    return all(each == every[0] for each in every)


def drawn_again(training: Training, one: Training) -> Difference | None:
    """A line that draws the same numbers at a later step, where no line of the original does."""
    return None if _repeated(one) is not None else _repeated(training)


def _repeated(training: Training) -> Difference | None:
    known: dict[tuple[Place | None, int], int] = {}
    for draw in draws(training):
        first = known.setdefault((draw.place, draw.checksum), draw.step)
        if first != draw.step:
            what = f"step {draw.step + 1} draws the same random numbers as step {first + 1}"
            return Difference(f"{what}; in the original it does not", draw.place, step=draw.step + 1)
    return None
