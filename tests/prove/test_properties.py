"""What has to hold between ranks: trainings made by hand, and the one property that each of them breaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.prove.trainings import ROOT, Told, figures
from transplt.proof.prove.found import Difference
from transplt.proof.prove.loaders import in_step, same_order
from transplt.proof.prove.noise import as_of, drawn_again, evaluates_with_draws
from transplt.proof.prove.properties import FILES, PARAMETERS, Judged, excused, judge, other_mode
from transplt.proof.prove.ranks import not_loaded, unequal_ranks
from transplt.proof.prove.training import Place, Training

#: An event of a training: its kind, and what it has beside the defaults of `told`.
Events = Sequence[tuple[str, dict[str, Any]]]
LINES = {"noise": 20, "scheduler": 30, "save": 40, "evaluated": 50, "loader": 60}
FIELDS: dict[str, dict[str, Any]] = {
    "loader": {"loader": 0, "epoch": 0, "sampler": "DistributedSampler", "shuffle": True, "made": None, "batch": 1,
               "size": 8, "length": 2, "drop_last": False},
    "batch": {"loader": 0, "epoch": 0},
    "noise": {"step": 0, "number": 0},
    "coll": {"kind": "all_reduce", "shape": [1], "n": 0},
    "evaluated": {"of": "Net", "b": {}, "p": {}},
    "save": {"file": "net.pt"},
    "scheduler": {"kind": "ReduceLROnPlateau"},
}  # fmt: skip


def told(events: Events, rank: int | None = None) -> Training:
    """One process; `step` is a backward pass and a step."""
    training = Told()
    if rank is not None:
        training.tell("group", rank=rank, world=2)
    training.made()
    for kind, fields in events:
        if kind == "step":
            training.step(**fields)
        else:
            training.tell(kind, LINES.get(kind), **{**FIELDS.get(kind, {}), **fields})
    return training.training()


def broken(one: Events, *ranks: Events) -> list[str]:
    """What is found broken, but for collectives."""
    judged, _ = judge([told(events, rank) for rank, events in enumerate(ranks)], told(one), ROOT)
    return [str(each.as_property.verdict.sentence) for each in judged if each.as_property.verdict.word.value != "equal"]


def batch(*indices: int, loader: int = 0, epoch: int = 0) -> tuple[str, dict[str, Any]]:
    return "batch", {"indices": list(indices), "loader": loader, "epoch": epoch}


@pytest.mark.parametrize(
    ("originals", "ranks", "found"),
    [
        ((1, 2), (3, 4), "each rank draws its own random numbers"),
        ((1, 2), (3, 3), "rank 1 draws the random numbers of rank 0 at step 1; in the original it draws its own"),
        ((1, 1), (3, 3), ""),  # as in the original
        ((), (3, 3), ""),
        ((1, 2), (None, None), ""),
    ],
)
def test_draws_that_no_loader_tells_the_samples_of(
    originals: Sequence[int], ranks: Sequence[int | None], found: str
) -> None:
    both = [[told([noise(drawn)] if drawn else [], rank) for rank, drawn in enumerate(each)]
            for each in (ranks, originals)]  # fmt: skip
    told_of = as_of(*both)
    assert (told_of.what if isinstance(told_of, Difference) else told_of) == found


def noise(checksum: int, step: int = 0) -> tuple[str, dict[str, Any]]:
    return "noise", {"sum": checksum, "step": step}


STEP: tuple[str, dict[str, Any]] = ("step", {})
OWN = [batch(0), noise(7), STEP]


@pytest.mark.parametrize(
    ("zero", "one"),
    [
        ([batch(0), noise(7), STEP], [batch(1), noise(8), STEP]),
        # The same samples: the same noise is that of one process.
        ([batch(0), noise(7), STEP], [batch(0), noise(7), STEP]),
        # Of no batch, of an evaluation, and behind the backward pass.
        ([noise(7), STEP], [noise(7), STEP]),
        ([batch(0), STEP, batch(2), noise(7), batch(4), STEP], [batch(1), STEP, batch(3), noise(7), batch(5), STEP]),
        ([batch(0), STEP, noise(7)], [batch(1), STEP, noise(7)]),
        # At another step.
        ([batch(0), noise(7), STEP], [batch(1), STEP, batch(3), noise(7, 1), STEP]),
    ],
    ids=["its own", "same samples", "no batch", "evaluation", "behind", "another step"],
)
def test_noise_of_its_own(zero: Events, one: Events) -> None:
    assert [each for each in broken([], zero, one) if "noise" in each] == []


def test_the_noise_of_another_rank() -> None:
    found = broken([], [batch(0), noise(7), STEP], [batch(1), noise(7), STEP])
    assert found == ["train.py:20: rank 1 draws the random numbers of rank 0 at step 1, for other samples"]


@pytest.mark.parametrize(
    ("events", "decides"),
    [
        (OWN, False),
        ([batch(0), noise(7), ("backward", {"loss": [1.0], "dtype": ["float32"]}), noise(8), STEP], False),
        ([batch(0), STEP], False),
        ([*OWN, batch(1), noise(8), batch(2), *OWN], True),
        ([*OWN, batch(1), noise(8)], True),
        ([*OWN, batch(1), noise(8), ("loader", {})], True),
    ],
)
def test_draws_that_no_backward_pass_follows(events: Events, decides: bool) -> None:
    assert evaluates_with_draws(told(events)) is decides


TWICE = [batch(0), noise(7), STEP, batch(1), noise(7, 1), STEP]


@pytest.mark.parametrize(
    ("original", "port", "found"),
    [
        (OWN, TWICE, "train.py:20: step 2 draws the same random numbers as step 1; in the original it does not"),
        (TWICE, TWICE, ""),
        (OWN, [batch(0), noise(7), STEP, batch(1), noise(8, 1), STEP], ""),
        # Twice in one step: an activation that is computed again.
        (OWN, [batch(0), noise(7), noise(7), STEP], ""),
    ],
)
def test_noise_that_comes_again(original: Events, port: Events, found: str) -> None:
    assert str(drawn_again(told(port), told(original)) or "") == found


def epochs(*orders: list[int], sampler: str = "RandomSampler", loader: int = 0) -> Events:
    events: list[tuple[str, dict[str, Any]]] = []
    for epoch, order in enumerate(orders):
        events.append(("loader", {"sampler": sampler, "epoch": epoch, "loader": loader}))
        for index in order:
            events += [batch(index, epoch=epoch, loader=loader), STEP]
    return events


ONE, TWO = [0, 1, 2, 3, 4, 5], [2, 0, 5, 1, 4, 3]


@pytest.mark.parametrize(
    ("original", "port", "found"),
    [
        (epochs(ONE, TWO), epochs(ONE, TWO), False),
        (epochs(ONE, TWO), epochs(ONE, ONE), True),
        (epochs(ONE, ONE), epochs(ONE, ONE), False),
        (epochs(ONE), epochs(ONE, ONE), False),
        (epochs(ONE, TWO), epochs(ONE, ONE[:5]), False),
    ],
    ids=["new", "the first again", "as in the original", "one epoch of the original", "too few samples to tell"],
)
def test_orders_of_any_sampler(original: Events, port: Events, found: bool) -> None:
    assert (same_order(told(port), told(original)) is not None) is found


def side_by_side(first: list[int], second: list[int]) -> Training:
    begin = [("loader", {"loader": which, "epoch": 0, "sampler": "DistributedSampler"}) for which in (0, 1)]
    pairs = zip(first, second, strict=True)
    steps = [each for one, other in pairs for each in (batch(one), batch(other, loader=1), STEP)]
    return told([*begin, *steps])


@pytest.mark.parametrize(
    ("original", "port", "found"),
    [
        ((ONE, TWO), (TWO, TWO), True),
        ((ONE, TWO), (TWO, ONE), False),
        ((ONE, ONE), (TWO, TWO), False),
        ((ONE[:5], TWO[:5]), (TWO[:5], TWO[:5]), False),
    ],
)
def test_loaders_in_step(original: tuple[list[int], list[int]], port: tuple[list[int], list[int]], found: bool) -> None:
    assert (in_step(side_by_side(*port), side_by_side(*original)) is not None) is found


def test_loaders_of_two_optimizers() -> None:
    """One of them may train on the one loader, and one on the other."""
    port, original = side_by_side(TWO, TWO), side_by_side(ONE, TWO)
    every = [replace(step, optimizer=step.number % 2) for step in port.steps]
    assert in_step(replace(port, steps=tuple(every)), original) is None


def test_loaders_one_after_the_other() -> None:
    port, original = ([*epochs(ONE, loader=0), *epochs(TWO if new else ONE, loader=1)] for new in (False, True))
    assert in_step(told(port), told(original)) is None


def epoch_of(*batches: list[int], **loader: Any) -> Events:
    """A pass of training over eight samples."""
    return [("loader", {"length": len(batches), **loader}), *(each for one in batches for each in (batch(*one), STEP))]


PLAIN = epoch_of([0, 1, 2, 3], [4, 5, 6, 7], sampler="RandomSampler", batch=4)
NINE = epoch_of([0, 1, 2, 3], [4, 5, 6, 7], [8], sampler="RandomSampler", batch=4, size=9)
AGAIN = epoch_of([0, 0, 2, 2], [4, 5, 6, 6], sampler="WeightedRandomSampler", batch=4)
OFTEN = epoch_of([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], sampler="WeightedRandomSampler", batch=6)
TURNED = epoch_of([1, 0, 3, 2, 5, 4], [4, 5, 3, 2, 0, 1], sampler="WeightedRandomSampler", batch=6)
PART = epoch_of([0, 1, 2, 3], sampler="SubsetRandomSampler", batch=4)


@pytest.mark.parametrize(
    ("original", "zero", "one", "found"),
    [
        (PLAIN, epoch_of([0, 2], [4, 6]), epoch_of([1, 3], [5, 7]), ""),
        # Nine samples: the last share is padded with one of the first.
        (NINE, epoch_of([0, 2], [4, 6], [8], size=9), epoch_of([1, 3], [5, 7], [0], size=9), ""),
        # A pass that was cut, and one whose last samples are dropped.
        (PLAIN, epoch_of([0, 2], length=2), epoch_of([1, 3], length=2), ""),
        (PLAIN, epoch_of([0, 2], drop_last=True, batch=2), epoch_of([1, 3], drop_last=True, batch=2), ""),
        # The original draws again, or trains on a part.
        (AGAIN, epoch_of([0, 2], [2, 2]), epoch_of([2, 0], [5, 2]), ""),
        (OFTEN, epoch_of([0, 1, 2], [3, 4, 5]), epoch_of([5, 1, 0], [4, 3, 2]), ""),
        (OFTEN, OFTEN, TURNED, "every rank goes through all samples in its own order: an epoch is W times as long"),
        (PART, epoch_of([0, 2]), epoch_of([1, 3]), ""),
        # Data sets that the program divides by itself: the indices are those of the parts.
        (PLAIN, epoch_of([0, 1], size=4), epoch_of([0, 1], size=4), ""),
        (PLAIN, epoch_of([0, 1]), epoch_of([0, 1]),
         "every rank trains on the same samples in the same order, so W cards do the work of one"),
        (PLAIN, epoch_of([0, 2], [4, 6]), epoch_of([0, 2], [5, 7]),
         "2 samples of epoch 1 are given to more than one rank"),
        (PLAIN, epoch_of([0, 2], [4]), epoch_of([1, 3], [5]), "2 of 8 samples are given to no rank in epoch 1"),
    ],
)  # fmt: skip
def test_shares(original: Events, zero: Events, one: Events, found: str) -> None:
    told_of = [each for each in broken(original, zero, one) if "sample" in each]
    assert [each.removeprefix("train.py:60: ").partition(";")[0] for each in told_of] == ([found] if found else [])


def test_a_pass_that_one_process_did_not_come_to_lacks_nothing() -> None:
    # Later epochs may choose some of the samples, and W cards are sooner there.
    later = [[("loader", {"length": 1, "epoch": 1}), batch(*share, epoch=1), STEP] for share in SHARES]
    ranks = [[*epoch_of([rank, 2 + rank], [4 + rank, 6 + rank]), *more] for rank, more in enumerate(later)]
    assert [each for each in broken(PLAIN, *ranks) if "sample" in each] == []
    both = [*PLAIN, ("loader", {"length": 2, "epoch": 1}), batch(0, 1, 2, 3, epoch=1), STEP]
    assert [each for each in broken(both, *ranks) if "given to no rank in epoch 2" in each] == []
    both[-3] = ("loader", {"length": 2, "epoch": 1, "batch": 4})
    assert [each for each in broken(both, *ranks) if "given to no rank in epoch 2" in each] != []


def evaluation(*indices: int, between: Events = (), size: int = 8, mode: bool = True, **loader: Any) -> Events:
    """A step, an evaluation, what comes after it, and a step of the next epoch."""
    return [
        batch(9), STEP, *([("mode", {"train": False})] if mode else []),
        ("loader", {"loader": 1, "length": 1, "size": size, **loader}), batch(*indices, loader=1), *between,
        *([("mode", {"train": True})] if mode else []), batch(8), STEP,
    ]  # fmt: skip


ALL, REDUCED = evaluation(0, 1, 2, 3), [("coll", {})]
SHARES = ([0, 2], [1, 3])
#: The next epoch begins, in a program that knows no modes.
NEXT: Events = [("loader", {"epoch": 1})]
ALONE = (
    "train.py:60: each rank evaluates its own share, and the results are not combined: what is printed or "
    "decided (early stopping, best checkpoint, ReduceLROnPlateau) is that of one rank's share"
)


@pytest.mark.parametrize(
    ("zero", "one"),
    [
        (ALL, ALL),
        (ALL, evaluation(3, 2, 1, 0)),
        # Rank 0 alone, on all or on a part; shares that are summed, or whose results are kept; no mode to know it by.
        (ALL, OWN),
        (evaluation(0, 1, size=4), OWN),
        (evaluation(0, 2, between=REDUCED), evaluation(1, 3, between=REDUCED)),
        (evaluation(0, 2), evaluation(1, 3, between=[("save", {"path": "/project/results1.pt"})])),
        (evaluation(0, 2, mode=False), evaluation(1, 3, mode=False)),
        (evaluation(0, 2, mode=False, between=NEXT), evaluation(1, 3, mode=False, between=NEXT)),
        # Some batches of a shuffled loader, of which each rank has the whole.
        (evaluation(0, 2, sampler="RandomSampler", length=4), evaluation(1, 3, sampler="RandomSampler", length=4)),
    ],
    ids=[
        "all",
        "another order",
        "rank 0 alone",
        "on a part",
        "summed",
        "kept in files",
        "fetched for training",
        "with gradients",
        "some of all",
    ],
)
def test_evaluations(zero: Events, one: Events) -> None:
    assert [each for each in broken(ALL, zero, one) if "evaluates" in each] == []


@pytest.mark.parametrize("beside", [[], [("coll", {"kind": "barrier"})], [("coll", {"kind": "broadcast", "root": 0})]])
def test_evaluations_of_shares(beside: Events) -> None:
    found = broken(ALL, evaluation(0, 2, between=beside), evaluation(1, 3, between=beside))
    assert [each for each in found if "evaluates" in each] == [ALONE]


def test_evaluations_without_gradients() -> None:
    shares = [[batch(9), STEP, ("no_grad", {}), *evaluation(*share, mode=False, between=NEXT)[2:]] for share in SHARES]
    assert ALONE in broken(ALL, *shares)


def test_evaluations_of_parts_of_the_data() -> None:
    assert ALONE in broken(ALL, evaluation(0, 1, size=4), evaluation(0, 1, size=4))


@pytest.mark.parametrize(
    ("given", "between", "alone"),
    [(4, [], True), (4, REDUCED, False), (8, [], False), (0, [], False)],
)
def test_evaluations_of_shares_without_a_loader(given: int, between: Events, alone: bool) -> None:
    def evaluated(size: int) -> Events:
        return [STEP, ("evaluated", {"given": size}), *between, STEP]

    found = broken(evaluated(8), evaluated(given), evaluated(given))
    assert [each for each in found if "evaluates" in each] == [ALONE.replace(":60:", ":50:")] * alone


@pytest.mark.parametrize(
    ("shares", "loader", "lacks"),
    [
        (([0, 1], [0, 1]), {}, 2),
        (([0, 1], [2]), {}, 0),  # the sampler may drop it
        (([0], [2]), {}, 2),
        (([0, 1], [2, 3]), {}, 0),
        (([0, 1], [0, 1]), {"whole": 2}, 0),  # each has a data set of its own
        (([0], [2]), {"drop_last": True}, 0),
        (([0], [2]), {"length": 2}, 0),  # it was left
    ],
)
def test_samples_that_no_rank_evaluates(shares: Sequence[list[int]], loader: dict[str, Any], lacks: int) -> None:
    ranks = [told(evaluation(*share, between=REDUCED, **loader), rank) for rank, share in enumerate(shares)]
    found, _ = judge(ranks, told(ALL), ROOT)
    said = next(str(each.found) for each in found if each.name == "results of all ranks")
    assert (f"{lacks} of 4 samples are evaluated by no rank" in said) == (lacks > 0)


def test_samples_that_pad_shares() -> None:
    ranks = [told(evaluation(*share, between=REDUCED), rank) for rank, share in enumerate([[0, 2], [1, 0]])]
    _, remarks = judge(ranks, told(evaluation(0, 1, 2)), ROOT)
    assert remarks == ["1 sample counted twice in the evaluation at train.py:60: shares are padded"]


MODE = ("mode", {"train": True})
OTHER = (
    "train.py:50: rank 1 evaluates with a different Net.norm.running_mean than rank 0; the buffers of rank 0 are "
    "not sent to the other ranks"
)
PLATEAU = [("scheduler", {"kind": "ReduceLROnPlateau", "metric": 0.5})]


def held(mean: float, name: str = "norm.running_mean") -> tuple[str, dict[str, Any]]:
    return "evaluated", {"b": {name: figures(mean)}}


@pytest.mark.parametrize(
    ("zero", "one", "found"),
    [
        ([STEP, held(1.0)], [STEP, held(1.0)], []),
        ([STEP, held(1.0)], [STEP], []),
        ([STEP, held(1.0)], [STEP, STEP, held(2.0)], []),
        ([STEP, held(1.0, "queue")], [STEP, held(2.0, "queue")], []),
        # Only one of them tells its result.
        ([STEP, held(1.0)], [STEP, held(2.0)], []),
        ([STEP, held(1.0), MODE, STEP], [STEP, held(2.0), MODE, STEP], []),
        # What it computes is what another network is trained with.
        ([STEP, held(1.0), STEP], [STEP, held(2.0), STEP], [OTHER]),
        ([STEP, held(1.0), *PLATEAU], [STEP, held(2.0), *PLATEAU], [OTHER]),
    ],
    ids=["the same", "rank 0 alone", "at another step", "no statistics", "other statistics", "and trains again",
         "a teacher", "they decide"],
)  # fmt: skip
def test_buffers_of_evaluations(zero: Events, one: Events, found: list[str]) -> None:
    assert [each for each in broken([], zero, one) if "evaluates" in each] == found


def copied(value: float) -> tuple[str, dict[str, Any]]:
    return "evaluated", {"p": {"0.weight": figures(value)}}


COPY = (
    "train.py:50: rank 1 evaluates with a different Net.0.weight than rank 0; no optimizer has it, and the ranks keep "
    "their own copies"
)


@pytest.mark.parametrize(
    ("zero", "one", "found"),
    [
        ([STEP, copied(1.0), *PLATEAU], [STEP, copied(1.0), *PLATEAU], []),
        ([STEP, copied(1.0)], [STEP, copied(2.0)], []),  # only one of them tells its result
        ([copied(1.0), *PLATEAU, STEP], [copied(2.0), *PLATEAU, STEP], []),  # nobody has trained yet
        ([STEP, copied(1.0), *PLATEAU], [STEP, *PLATEAU], []),  # rank 0 alone has one
        ([STEP, copied(1.0), *PLATEAU], [STEP, copied(2.0), *PLATEAU], [COPY]),
    ],
)
def test_copies_that_no_optimizer_has(zero: Events, one: Events, found: list[str]) -> None:
    assert [each for each in broken([], zero, one) if "evaluates" in each] == found


def plateau(metric: float) -> tuple[str, dict[str, Any]]:
    return "scheduler", {"metric": metric}


@pytest.mark.parametrize(
    ("zero", "one", "found"),
    [
        ([STEP, plateau(0.5)], [STEP, plateau(0.5)], ""),
        ([STEP, plateau(float("nan"))], [STEP, plateau(float("nan"))], ""),
        ([STEP, ("scheduler", {"kind": "StepLR"})], [STEP, ("scheduler", {"kind": "StepLR"})], ""),
        ([STEP, plateau(0.51)], [STEP, plateau(0.48)],
         "train.py:30: rank 0 steps ReduceLROnPlateau with 0.51, rank 1 with 0.48"),
        ([STEP, plateau(0.5), STEP, plateau(0.5)], [STEP, plateau(0.5), STEP], ""),  # which may have been cut there
        ([STEP, plateau(0.5), STEP, plateau(0.5)], [STEP, STEP],
         "train.py:30: rank 0 steps ReduceLROnPlateau 2 times, rank 1 0 times"),
        ([STEP, ("scheduler", {}), ("step", {"lr": 0.05})], [STEP, STEP],
         "train.py:30: lr is 0.05 on rank 0 and 0.1 on rank 1 at step 2"),
    ],
)  # fmt: skip
def test_schedules(zero: Events, one: Events, found: str) -> None:
    assert broken([], zero, one) == ([found] if found else [])


def test_a_schedule_is_why_parameters_differ() -> None:
    found = broken([], [STEP, plateau(0.5), STEP], [STEP, plateau(0.4), ("step", {"value": 0.8})])
    assert found[0] == (
        "train.py:30: Net.0 differs between rank 0 and rank 1 after step 2; rank 0 steps ReduceLROnPlateau with 0.5, "
        "rank 1 with 0.4"
    )
    found = broken([], [STEP, plateau(0.5), STEP], [("step", {"value": 0.8}), plateau(0.4), STEP])
    assert "ReduceLROnPlateau" not in found[0]


@pytest.mark.parametrize(
    ("zero", "one", "found"),
    [
        ("/project/net.pt", "", ""),
        ("", "", ""),
        ("/project/0/net.pt", "/project/1/net.pt", ""),
        ("/project/net.pt", "/project/net.pt", "train.py:40: ranks 0 and 1 both write net.pt"),
    ],
    ids=["rank 0", "in memory", "a folder of its own", "both"],
)
def test_files(zero: str, one: str, found: str) -> None:
    assert broken([], [STEP, ("save", {"path": zero})], [STEP, ("save", {"path": one})]) == ([found] if found else [])


def test_what_the_original_breaks_itself() -> None:
    both = [STEP, ("save", {"path": "/project/net.pt"})]
    judged, _ = judge([told(both, 0), told(both, 1)], None, ROOT)
    assert [each.name for each in judged if not isinstance(each.found, str)] == ["files"]
    assert excused(judged, judged, {})[-1].found == "as in the original: train.py:40: ranks 0 and 1 both write net.pt"
    # Parameters have to be equal whatever the original does.
    apart, _ = judge([told([STEP], 0), told([("step", {"value": 0.8})], 1)], None, ROOT)
    assert [each.name for each in excused(apart, apart, {}) if not isinstance(each.found, str)] == [PARAMETERS]


@pytest.mark.parametrize(
    ("name", "what", "line", "is_excused"),
    [
        ("order of each epoch", "epoch 2 has the order of the first", 62, True),
        ("order of each epoch", "epoch 2 has the order of the first", 60, False),  # another loader
        ("noise", "epoch 2 has the order of the first", 62, False),
        (FILES, "ranks 0 and 1 both write net.pt", 7, True),
        (FILES, "ranks 0 and 1 both write log.pt", 62, False),
    ],
)
def test_what_is_the_fault_of_the_original(name: str, what: str, line: int, is_excused: bool) -> None:
    order = Judged("order of each epoch", Difference("epoch 2 has the order of the first", Place("a.py", 60)))
    files = Judged(FILES, Difference("ranks 0 and 1 both write net.pt", Place("a.py", 40)))
    judged = [Judged(name, Difference(what, Place("a.py", line)))]
    found = excused(judged, [order, files], {Place("a.py", number): Place("a.py", number + 2) for number in (40, 60)})
    assert isinstance(found[0].found, str) == is_excused


def test_what_was_not_seen_is_not_listed() -> None:
    judged, remarks = judge([told([STEP], 0), told([STEP], 1)], told([STEP]), ROOT)
    assert judged == [
        Judged(PARAMETERS, "the same bytes after each of 1 step"),
        Judged("same schedules", "the same numbers of the optimizers at each of 1 step"),
    ]
    assert remarks == []


def chosen(sampler: str, *indices: int, chosen: int = 0, whole: int = 99) -> Events:
    """A pass of training over a subset of a data set, with a checksum of what was chosen."""
    loader = {"sampler": sampler, "chosen": chosen, "whole": whole, "size": len(indices), "subset": ["train.py", 7]}
    return [("loader", loader), *(each for index in indices for each in (batch(index), ("step", {"loss": index})))]


@pytest.mark.parametrize(
    ("zero", "one"),
    [
        (chosen("DistributedSampler", 1, 2), chosen("DistributedSampler", 3, 4)),
        (chosen("RandomSampler", 1, 2), chosen("RandomSampler", 3, 4, chosen=1)),  # a share of its own
        (chosen("RandomSampler", 1, 2, whole=5), chosen("RandomSampler", 1, 2, chosen=1, whole=6)),
    ],
)
def test_subsets_that_ranks_share(zero: Events, one: Events) -> None:
    assert "chooses" not in str(broken([], zero, one))


@pytest.mark.parametrize("sampler", ["DistributedSampler", "RandomSampler"])
def test_subsets_that_each_rank_draws_by_itself(sampler: str) -> None:
    found = broken([], chosen(sampler, 1, 2), chosen(sampler, 2, 3, chosen=1))
    assert "rank 1 chooses other samples than rank 0 for its data set" in found[0]


LOSSES = [("step", {"loss": loss}) for loss in (3.0, 2.0, 1.0)]


@pytest.mark.parametrize(
    ("zero", "one"),
    [
        (LOSSES, [("step", {"loss": loss}) for loss in (3.0, 2.1, 1.0)]),
        ([("step", {"loss": 3.0})] * 3, [("step", {"loss": 3.0})] * 3),
        (LOSSES[:2], LOSSES[:2]),
        ([each for step in LOSSES for each in (("coll", {}), step)],) * 2,  # which may have made them alike
    ],
)
def test_losses_that_tell_nothing_of_the_samples(zero: Events, one: Events) -> None:
    assert "every rank trains on the same" not in str(broken([], zero, one))


def test_losses_that_are_the_same_on_all_ranks() -> None:
    assert "every rank trains on the same samples, so W cards do the work of one" in broken([], LOSSES, LOSSES)[0]


def test_other_norms_to_clip_come_of_parameters_that_are_apart() -> None:
    ranks = [[("clip", {"bound": 1.0, "norm": norm}), ("coll", {}), ("step", {"value": norm})] for norm in (2.0, 2.5)]
    assert [each for each in broken([], *ranks) if "clip" in each] == []


@pytest.mark.parametrize(
    ("zero", "one", "what"),
    [
        ((0.5, 0.4, 0.3), (0.5, 0.4, 0.2), "Net.2 differs between rank 0 and rank 1 after step 1; its gradients are"),
        ((0.5, 0.4, 0.3), (1.0, 0.8, 0.2), "Net.2 differs between rank 0 and rank 1 after step 1; its gradients are"),
        ((0.5, 0.4, 0.3), (1.0, 0.8, 0.6), "Net.0 differs between rank 0 and rank 1 after step 1"),  # clipped by others
        ((0.5, 0.4, 0.3), (0.6, 0.7, 0.2), "Net.0 differs between rank 0 and rank 1 after step 1"),
    ],
)
def test_one_parameter_whose_gradients_are_not_exchanged(
    zero: tuple[float, ...], one: tuple[float, ...], what: str
) -> None:
    ranks = []
    for rank, norms in enumerate((zero, one)):
        made = Told().tell("group", rank=rank, world=2).made(start=(1.0, 1.0, 1.0))
        made.tell("backward", 12, loss=[1.0], dtype=["float32"]).tell("coll", 13, kind="all_reduce")
        made.tell("grads", o=0, k=0, g=[[each, each / 2, 0.0] for each in norms])
        made.tell("step", 14, o=0, k=0, p=[figures(each) for each in norms], b={})
        ranks.append(made.training())
    found = unequal_ranks(ranks)
    assert found is not None
    assert str(found).partition(": ")[2].startswith(what)
    assert "those of most others are" in str(found) or "Net.0" in what


@pytest.mark.parametrize(("name", "line"), [("Head.weight", 5), ("0.1", 12)])
def test_a_parameter_in_no_wrapper(name: str, line: int) -> None:
    """A layer belongs into one, which the optimizer's line shows; a weight of a loss is averaged behind a backward."""
    ranks = []
    for rank in range(2):
        told = Told().tell("group", rank=rank, world=2).tell("wrap", 4, of="Net", parameters=1, ids=[1])
        told.tell("optimizer", 5, o=0, kind="SGD", hyper=[])
        start = {"dtypes": ["float32"] * 2, "p": [figures(1.0)] * 2, "ids": [1, 2]}
        told.tell("start", o=0, kind="SGD", names=["Net.weight", name], **start)
        told.tell("backward", 12, loss=[1.0], dtype=["float32"])
        told.tell("step", 14, o=0, k=0, p=[figures(0.9), figures(0.8 - rank / 10)], b={})
        ranks.append(told.training())
    found = unequal_ranks(ranks)
    assert found is not None and found.place is not None
    assert (found.place.line, found.cause.partition(":")[0]) == (line, "no wrapper exchanges its gradients")


def test_gradients_that_are_clipped_before_they_are_exchanged() -> None:
    ranks = [[("clip", {"bound": 1.0, "norm": norm}), ("coll", {}), STEP] for norm in (2.0, 2.5)]
    assert "clips gradients with the norm 2, rank 1 with 2.5; they are clipped before" in broken([], *ranks)[0]
    assert "they are clipped before" not in broken([], *([each[0], each[2]] for each in ranks))[0]
    assert broken([], ranks[0], ranks[0]) == []


def test_how_many_samples_a_pass_has() -> None:
    one = [("loader", {}), batch(0, 1, 2, 3), STEP, ("loader", {"epoch": 1}), batch(0, 1, epoch=1), STEP]
    ranks = [
        [("loader", {}), batch(*own), STEP, ("loader", {"epoch": 1}), batch(own[1], epoch=1), STEP]
        for own in ([0, 1], [2, 3])
    ]
    judged, _ = judge([told(events, rank) for rank, events in enumerate(ranks)], told(one), ROOT)
    assert "; 4 different samples in a pass, 4 in one process" in str([each.found for each in judged])


def test_numbers_of_the_global_batch_are_drawn_alike() -> None:
    """Each rank takes its rows of them; numbers for its own samples alone are its own."""
    for rows, found in ((2, []), (1, ["train.py:20: rank 1 draws the random numbers of rank 0 at step 1"])):
        ranks = [[batch(rank), ("noise", {"sum": 7, "step": 0, "rows": rows}), STEP] for rank in range(2)]
        assert [each.partition(", for")[0] for each in broken(OWN, *ranks)] == found


@pytest.mark.parametrize(
    ("rows", "sums", "whole", "found"),
    [(2, (7, 7), 4, True), (4, (7, 7), 4, False), (2, (7, 8), 4, False), (2, (7, 7), 2, False)],
)
def test_numbers_of_all_behind_the_training(rows: int, sums: tuple[int, int], whole: int, found: bool) -> None:
    """Samples that ranks make together are as many as those of one process, and others on each rank."""
    ranks = [[batch(rank), STEP, ("noise", {"sum": each, "step": 1, "rows": rows})] for rank, each in enumerate(sums)]
    one = [batch(0, 1), STEP, ("noise", {"sum": 7, "step": 1, "rows": whole})]
    assert bool([each for each in broken(one, *ranks) if "all ranks draw the same" in each]) is found


def test_few_numbers_may_come_again() -> None:
    few = ("noise", {"sum": 7, "step": 0, "rows": 1, "few": True})
    assert broken([], *[[batch(rank), few, STEP] for rank in range(2)]) == []


@pytest.mark.parametrize(
    ("single", "found"),
    [
        ([batch(0, 1), noise(7), STEP], 0),  # one process draws the same for the samples of both ranks
        ([batch(0, 1), noise(8), STEP], 1),
        ([batch(0), noise(7), STEP], 1),  # for as many samples as a rank has
        ([batch(2, 3), STEP, batch(0, 1), noise(7, 1), STEP], 1),
    ],
)
def test_numbers_that_one_process_draws_for_all_samples(single: Events, found: int) -> None:
    assert len(broken(single, *([batch(rank), noise(7), STEP] for rank in range(2)))) == found


def test_a_schedule_that_one_rank_steps_alone() -> None:
    stepped = ("scheduler", {"kind": "StepLR", "s": 0})
    each, alone, behind = [batch(0), STEP, stepped, STEP], [batch(1), STEP, STEP], [batch(1), STEP, STEP, stepped]
    both = [batch(1), STEP, stepped, STEP]
    assert broken(OWN, each, alone) == ["train.py:30: rank 0 steps StepLR 1 time, rank 1 0 times"]
    assert broken(OWN, each, both) == broken(OWN, alone, behind) == []


def meta(rank: int, inner: float, outer: float) -> Training:
    """An optimizer that is made once, and one that each round makes again for a copy."""
    told = Told().tell("group", rank=rank, world=2)
    for number in range(3):
        told.tell("optimizer", 5 + bool(number), o=number, kind="SGD", sizes=[1], hyper=[])
        told.tell("start", o=number, kind="SGD", names=["Net.0"], dtypes=["float32"], p=[figures(1.0)])
    for number, value in ((1, inner), (2, inner), (0, outer)):
        told.tell("grads", o=number, k=0, g=[[0.5, 0.2, 0.0]])
        told.tell("step", 14, o=number, k=0, p=[figures(value)], b={})
    return told.training()


def test_copies_that_each_rank_trains_for_itself() -> None:
    assert unequal_ranks([meta(0, 0.5, 0.9), meta(1, 0.6, 0.9)]) is None
    found = unequal_ranks([meta(0, 0.5, 0.9), meta(1, 0.5, 0.8)])
    assert found is not None and found.what == "Net.0 differs between rank 0 and rank 1 after step 1"


@pytest.mark.parametrize("apart", [False, True])
def test_a_target_that_one_rank_moves_alone(*, apart: bool) -> None:
    ranks = []
    for rank in range(2):
        told = Told().tell("group", rank=rank, world=2).made()
        told.tell("others", o=0, p={"Target.0": figures(1.0)}).step()
        if rank == 0 or not apart:
            told.tell("load_state_dict", 40, of="Target")
        ranks.append(told.tell("end", p={"Target.0": figures(2.0 if rank and apart else 1.0)}, b={}).training())
    found = unequal_ranks(ranks)
    assert (str(found.place) if found is not None else "") == "train.py:40" * apart


@pytest.mark.parametrize(
    ("zero", "one", "found"),
    [
        ([("mode", {"train": False})], [("mode", {"train": False})], ""),
        ([("mode", {"train": False})], [], "not every rank switches to evaluation there, as rank 0 does"),
        ([], [("mode", {"train": True})], "not every rank switches to training there, as rank 1 does"),
    ],
)
def test_a_mode_that_only_one_rank_is_in(zero: Events, one: Events, found: str) -> None:
    turned = other_mode([told(zero, 0), told(one, 1)])
    assert (turned.what if turned is not None else "") == found


def test_statistics_that_only_one_rank_has_loaded() -> None:
    loads = ("load_state_dict", {"of": "Net"})
    reduced = ("scheduler", {"metric": 1.0})
    sides = [STEP, loads, held(1.0), reduced, STEP], [STEP, held(2.0), reduced, STEP]
    assert any("load_state_dict of Net is called on rank 0 only" in each for each in broken([], *sides))
    assert not any("is called on rank" in each for each in broken([], [STEP, loads, *sides[1][1:]], sides[0]))


WRAP = ("wrap", {"ids": []})
THROUGH = ("through", {"grad": True})


@pytest.mark.parametrize(
    ("exchanged", "told_of"),
    [
        ([("backward", {"loss": [1.0], "dtype": ["float32"]}), ("coll", {"shape": [9]})], True),  # not behind the last
        ([("coll", {"shape": [1]})], True),  # a loss to be printed
        ([], False),  # no collective at all is another sentence
    ],
)
def test_gradients_that_the_last_backward_pass_does_not_exchange(exchanged: Events, told_of: bool) -> None:
    events = [WRAP, THROUGH, *exchanged]
    found = unequal_ranks([told([*events, ("step", {"value": 1.0 + rank})], rank) for rank in (0, 1)])
    assert found is not None
    assert ("in the last backward pass before this step" in found.cause) is told_of


def test_a_state_that_lacks_what_the_original_finds() -> None:
    lacks = told([("missing", {"names": ["net.w", "net.b"]})])
    found = not_loaded(told([]), lacks)
    assert found is not None and found.what == "the state that is loaded has no net.w and 1 more"
    assert not_loaded(lacks, lacks) is None and not_loaded(told([]), told([])) is None
