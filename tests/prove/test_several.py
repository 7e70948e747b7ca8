"""Several processes against one with the same batches, and the passes of a loader that are epochs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.prove.trainings import ROOT, Told
from transplt.base.render.verdict import Word
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.found import Difference, Part
from transplt.proof.prove.loaders import global_batches, lengths, same_order
from transplt.proof.prove.noise import drawn_by_all, of_the_global_batch
from transplt.proof.prove.numbers import writing
from transplt.proof.prove.proof_text import how_close
from transplt.proof.prove.ranks import by_collective, unequal_ranks, with_cause
from transplt.proof.prove.runs import Replay, Run, Stop
from transplt.proof.prove.several import Several
from transplt.proof.prove.training import Place, Training

Step = dict[str, Any]
#: Programs that begin a process group by themselves, and not.
BY_ITSELF, ALONE = (SimpleNamespace(root=ROOT, distributed=distributed) for distributed in (True, False))
#: A step that a scaler leaves out.
SKIPPED: Step = {"loss": 1.0}


def told(steps: Sequence[Step], *, rank: int | None = None, half: bool = False, width: int = 1) -> Training:
    """One process with its batches of `width` samples (0: no loader gives them); that of a `rank` has samples of its
    own, and `half` is in mixed precision."""
    training = Told()
    if rank is not None:
        training.tell("group", rank=rank, world=2)
    if half:
        training.tell("autocast", dtype="float16", enabled=True)
    training.made()
    sampler = "RandomSampler" if rank is None else "DistributedSampler"
    if width:
        training.tell("loader", 3, loader=0, epoch=0, sampler=sampler, shuffle=True, made=None)
    for number, step in enumerate(steps):
        begin = width * (2 * number + (rank or 0))
        if width:
            training.tell("batch", loader=0, epoch=0, indices=[*range(begin, begin + width)])
        take = training.skipped if step is SKIPPED else training.step
        take(**step)
    return training.training()


def run(*trainings: Training, stop: Stop | None = None) -> Run:
    return Run([*trainings], stop, ScriptRun(0, (), 0.0, ""), len(trainings), {}, 1, [], [])


def against_one(one: Training, ranks: Sequence[Training], shaken: Training | None = None) -> Part:
    """The comparison of W processes with one, which is `shaken` when it is run again."""
    runs = itertools.chain([run(one)], itertools.repeat(run(shaken or one)))
    original = SimpleNamespace(inserted={}, project=ALONE, run=lambda world=1, **how: next(runs))
    migrated = SimpleNamespace(inserted={}, project=BY_ITSELF, run=lambda world=1, **how: run(*ranks))
    parts = Several(original, migrated, lambda text: None).parts(len(ranks), run(one))  # type: ignore[arg-type]
    return parts[-1]


@pytest.mark.parametrize("half", [False, True])
def test_the_losses_of_the_ranks_are_those_of_their_shares(half: bool) -> None:
    ranks = [told([{"loss": 0.5}, {"loss": 1.4}], rank=0, half=half), told([{"loss": 1.5}, {"loss": 0.6}], rank=1)]
    assert against_one(told([{}, {}]), ranks).verdict.word is Word.EQUAL


@pytest.mark.parametrize("half", [False, True])
def test_other_losses(half: bool) -> None:
    ranks = [told([{"loss": 0.5}, {"loss": 1.4}], rank=0, half=half), told([{"loss": 1.5}, {"loss": 1.6}], rank=1)]
    part = against_one(told([{}, {}]), ranks)
    assert part.verdict.word is Word.DIFFERS
    assert "the loss of step 2 is 1.5, in the original 1" in part.verdict.sentence


@pytest.mark.parametrize(
    ("shaken", "word"),
    [
        # One process is as far away when its parameters are off by a few roundings.
        ([{}, {"value": 0.86}], Word.EQUAL),
        # It stands still, or another figure moves.
        ([{}, {}], Word.DIFFERS),
        ([{"grad": 0.6}, {}], Word.DIFFERS),
    ],
)
def test_what_one_process_makes_of_roundings(shaken: list[Step], word: Word) -> None:
    ranks = [told([{}, {"value": 0.85}], rank=rank) for rank in range(2)]
    part = against_one(told([{}, {}]), ranks, told(shaken))
    assert part.verdict.word is word
    assert ("rounding errors decide them" in part.verdict.sentence) == (word is Word.EQUAL)


@pytest.mark.parametrize(
    ("shaken", "word"),
    [([{"value": 0.9001}, {}], Word.EQUAL), ([{}, {}], Word.RUNS), ([{"grad": 0.6}, {}], Word.RUNS)],
)
def test_ranks_without_a_loader_may_be_off_by_roundings(shaken: list[Step], word: Word) -> None:
    """They may all have the samples of one process: what is more than roundings says nothing, for they need not."""
    ranks = [told([{"value": 0.9002}, {}], rank=rank, width=0) for rank in range(2)]
    part = against_one(told([{}, {}], width=0), ranks, told(shaken, width=0))
    assert part.verdict.word is word
    assert ("come from no loader with a sampler" in part.verdict.sentence) == (word is Word.RUNS)


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"grad": 0.6}, Word.DIFFERS),
        ({"value": 0.8}, Word.DIFFERS),
        ({"lr": 0.2}, Word.DIFFERS),
        ({"loss": 1.1, "grad": 0.6}, Word.RUNS),  # other samples
    ],
)
def test_ranks_without_a_loader_that_agree_at_first(other: Step, word: Word) -> None:
    """Behind steps that agree the same loss is that of the same samples."""
    ranks = [told([{}, other], rank=rank, width=0) for rank in range(2)]
    assert against_one(told([{}, {}], width=0), ranks).verdict.word is word


@pytest.mark.parametrize(
    ("rows", "sums", "whole"),
    [
        (4, (7, 7), True),
        (2, (7, 7), False),  # for the samples of a rank
        (4, (7, 8), False),  # each rank other numbers
        (0, (7, 7), False),
    ],
)
def test_draws_for_the_global_batch(rows: int, sums: tuple[int, int], whole: bool) -> None:
    """What all ranks draw alike for the samples of all is no reason not to compare."""
    ranks = []
    for rank in range(2):
        made = Told().tell("group", rank=rank, world=2).made()
        made.tell("batch", loader=0, epoch=0, indices=[2 * rank, 2 * rank + 1]).tell("draw", 9)
        ranks.append(made.tell("noise", 9, step=0, number=0, sum=sums[rank], rows=rows).step().training())
    assert of_the_global_batch(ranks) is whole
    assert not of_the_global_batch([told([{}], rank=rank) for rank in range(2)])  # nothing is drawn


@pytest.mark.parametrize(
    ("sums", "alike"),
    [([(7, 8), (7, 8)], True), ([(7, 8), (7, 9)], False), ([(7, 8), (7,)], False), ([(), ()], False)],
)
def test_draws_that_are_those_of_one_process(sums: list[tuple[int, ...]], alike: bool) -> None:
    trainings = []
    for every in sums:
        training = Told().tell("draw", 20)
        for step, each in enumerate(every):
            training.tell("noise", 20, step=step, number=0, sum=each, rows=4)
        trainings.append(training.training())
    assert drawn_by_all(trainings) == alike
    assert drawn_by_all([told([{}])] * 2)  # nothing is drawn


@pytest.mark.parametrize(("times", "found"), [(1, False), (2, True)])
def test_what_is_printed_of_steps_that_agree_with_draws_that_nobody_knows(times: int, found: bool) -> None:
    def drawn(rank: int | None) -> Training:
        side = Told() if rank is None else Told().tell("group", rank=rank, world=2)
        return side.made().tell("draw", 20).step().step().training()

    def told_of(*trainings: Training, factor: int = 1) -> Run:
        output = "".join(f"loss {factor * value}\n" for value in (0.4713, 0.3379))
        return replace(run(*trainings), outcome=ScriptRun(0, (), 0.0, output))

    one = told_of(drawn(None))
    ranks = told_of(drawn(0), drawn(1), factor=times)
    original = SimpleNamespace(inserted={}, project=ALONE, run=lambda world=1, **how: one)
    migrated = SimpleNamespace(inserted={}, project=BY_ITSELF, run=lambda world=1, **how: ranks)
    parts = Several(original, migrated, lambda text: None).parts(2, one)  # type: ignore[arg-type]
    assert ("summed over the ranks and not divided" in parts[-1].verdict.sentence) is found


def test_of_two_orders_of_a_batch_the_one_that_agrees_longer_is_told() -> None:
    ranks = [told([{}, {}, {}], rank=rank, width=2) for rank in range(2)]
    first, third = [{"grad": 0.6}, {}, {}], [{}, {}, {"grad": 0.6}]
    for in_order, in_turn in ((first, third), (third, first)):
        def one(world: int = 1, replay: Replay | None = None, orders: Any = (in_order, in_turn), **how: Any) -> Run:
            batches = replay.batches.get("0.0", [[0, 1]]) if replay is not None else [[0, 1]]
            return run(told(orders[batches[0][1] != 1]))

        original = SimpleNamespace(inserted={}, project=ALONE, run=one)
        migrated = SimpleNamespace(inserted={}, project=BY_ITSELF, run=lambda world=1, **how: run(*ranks))
        parts = Several(original, migrated, lambda text: None).parts(2, run(told([{}] * 3)))  # type: ignore[arg-type]
        assert "at step 3" in parts[-1].verdict.sentence


def test_of_two_orders_that_differ_at_one_step_the_one_with_the_same_loss_is_told() -> None:
    ranks = [told([{}, {"lr": 0.2}], rank=rank, width=2) for rank in range(2)]
    orders = [{}, {"loss": 1.1}], [{}, {}]
    for first in (0, 1):
        def one(world: int = 1, replay: Replay | None = None, first: int = first, **how: Any) -> Run:
            batches = replay.batches.get("0.0", [[0, 1]]) if replay is not None else [[0, 1]]
            return run(told(orders[(batches[0][1] != 1) != first]))

        original = SimpleNamespace(inserted={}, project=ALONE, run=one)
        migrated = SimpleNamespace(inserted={}, project=BY_ITSELF, run=lambda world=1, **how: run(*ranks))
        parts = Several(original, migrated, lambda text: None).parts(2, run(told([{}] * 2)))  # type: ignore[arg-type]
        assert "the learning rate is 0.2 at step 2" in parts[-1].verdict.sentence


def test_how_long_each_pass_of_a_loader_is() -> None:
    """A data set may be made smaller between two passes."""
    sides = (Told().made(), Told().made())
    for side, every in zip(sides, ((7, 5), (13, 10)), strict=True):
        for epoch, length in enumerate(every):
            side.tell("loader", 9, loader=0, epoch=epoch, nth=3, length=length)
    rank, alone = (side.training() for side in sides)
    assert lengths(rank, alone) == {3: [7, 5]}


@pytest.mark.parametrize(("in_turn", "batches"), [(False, [[0, 1, 2, 3]]), (True, [[0, 2, 1, 3]])])
def test_the_order_of_a_global_batch(in_turn: bool, batches: list[list[int]]) -> None:
    ranks = [told([{}], rank=rank, width=2) for rank in range(2)]
    assert global_batches(ranks, in_turn=in_turn) == {"0.0": batches}


def against_ranks(
    originals: Sequence[Training], ranks: Sequence[Training], shaken: Sequence[Training] = (),
    without: Sequence[Training] = (),
) -> list[Part]:  # fmt: skip
    """The comparisons with an original that is distributed itself, whose ranks are `shaken` when they are run again,
    and which takes the steps of `without` where it leaves some out."""

    def original(world: int = 1, replay: Replay | None = None, shake: float = 0.0, **how: Any) -> Run:
        left_out = replay is not None and replay.left_out
        return run(*(shaken if shake else without if left_out else originals)) if world > 1 else run(originals[0])

    sides = (
        SimpleNamespace(inserted={}, project=BY_ITSELF, run=starts)
        for starts in (original, lambda world=1, **how: run(*ranks))
    )
    return Several(*sides, lambda text: None).parts(len(ranks), run(originals[0]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shaken", "verdict", "tolerance"),
    [
        (0.9001, "equal: 2 steps compared", "relative: parameters 0.0"),
        (1.0, "equal: 2 steps compared; 1 figure from step 2 on not compared", "none was needed"),
    ],
)
def test_what_ranks_were_held_to(shaken: float, verdict: str, tolerance: str) -> None:
    originals, ranks, again = (
        [told([{}, {"value": value}], rank=rank) for rank in range(2)] for value in (0.9, 0.9002, shaken)
    )
    part = against_ranks(originals, ranks, again)[-1]
    assert str(part.verdict).startswith(verdict)
    assert how_close(part).startswith(f"tolerance: {tolerance}")


@pytest.mark.parametrize(("theirs", "loss", "word"), [(2, 1.0, "equal"), (1, 1.0, "differs"), (2, 1.2, "differs")])
def test_a_port_that_divides_the_batch_of_one_process(theirs: int, loss: float, word: str) -> None:
    """The ranks of the original take more in all; one process takes what those of the port do, and may compute so."""
    twin = [told([{"loss": 0.8}] * 2, rank=rank, width=theirs) for rank in range(2)]
    port = [told([{"loss": loss}] * 2, rank=rank) for rank in range(2)]
    one = told([{}] * 2)
    original = SimpleNamespace(project=BY_ITSELF, run=lambda world=1, **how: run(*(twin if world > 1 else [one])))
    migrated = SimpleNamespace(inserted={}, project=BY_ITSELF, run=lambda world=1, **how: run(*port))
    part = Several(original, migrated, lambda text: None).parts(2, run(one))[-1]  # type: ignore[arg-type]
    assert str(part.verdict.word) == word
    said = "2 ranks of the original have a global batch of 4, those of the migrated program one of 2, like one process"
    assert (said in part.findings.remarks) == (word == "equal")


def test_ranks_of_an_original_go_without_the_steps_that_a_scaler_leaves_out() -> None:
    # Behind the step that is left out the loss of the original is another one.
    originals = [told([{}, {"loss": 0.8}], rank=rank) for rank in range(2)]
    without = [told([SKIPPED, {"loss": 1.0}], rank=rank) for rank in range(2)]
    ranks = [told([SKIPPED, {"loss": 1.0 + 1e-5}], rank=rank, half=True) for rank in range(2)]
    parts = against_ranks(originals, ranks, without, without)
    assert [str(part.verdict) for part in parts[1:]] == ["equal: 2 steps compared"]


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ([SKIPPED] * 4 + [{}] * 2, "differs: train.py:14: 4 of 6 steps of optimizer 0 (SGD) are skipped by the scaler"),
        ([SKIPPED] * 2, "runs: the parameters of 2 ranks are equal after each of 2 steps, to the program's end; the "
         "scaler skipped all 2"),
    ],
)
def test_mixed_precision_of_ranks_is_judged(steps: list[Step], verdict: str) -> None:
    ranks = [told(steps, rank=rank, half=True) for rank in range(2)]
    plain = [told([{}] * len(steps), rank=rank) for rank in range(2)]
    assert str(against_ranks(plain, ranks, ranks, plain)[0].verdict).startswith(verdict)


def test_a_collective_of_another_shape_is_the_cause() -> None:
    def side(shape: int) -> Training:
        return Told().tell("coll", 20, kind="all_reduce", shape=[shape]).training()

    found = by_collective(Difference("the accuracy differs"), side(3), side(2))
    assert (found.cause, str(found.place)) == (
        "all_reduce exchanges a shape of [2], in the original [3]",
        "train.py:20",
    )
    assert by_collective(Difference("the accuracy differs"), side(3), side(3)) == Difference("the accuracy differs")


@pytest.mark.parametrize(
    ("lost", "gained", "cause"),
    [
        ("before", "", "all_reduce of the original's train.py:20 is missing"),
        ("", "before", "all_reduce is not in the original"),
        ("behind", "", ""),  # what comes later is no cause
        ("", "behind", ""),
    ],
)
def test_a_collective_that_one_of_two_lacks_comes_before_what_it_causes(lost: str, gained: str, cause: str) -> None:
    def side(where: str, loss: float) -> list[Training]:
        found = []
        for rank in range(2):
            training = Told().tell("group", rank=rank, world=2).made()
            for at in ("before", "behind"):
                if at == where:
                    training.tell("coll", 20, kind="all_reduce", shape=[1])
                if at == "before":
                    training.step(loss=loss)
            found.append(training.training())
        return found

    ranks = side(gained, 2.0)
    part = against_ranks(side(lost, 1.0), ranks, side(lost, 1.0))[-1]
    assert part.findings.differences[0].cause == cause


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_parameter_that_is_changed_behind_the_wrapper(wrapped: bool) -> None:
    def rank(number: int) -> Training:
        training = Told().tell("wrap", 4, ids=[7] if wrapped else [8])
        training.made(start=(1.0 + number,)).events[-1]["ids"] = [7]
        return training.step().training()

    found = unequal_ranks([rank(0), rank(1)])
    told = "it was changed after the wrapper of train.py:4 had sent the values of rank 0"
    assert found is not None and (found.cause == told) is wrapped


def test_what_neither_prints_nor_saves_is_not_compared() -> None:
    ranks = [told([{}], rank=rank) for rank in range(2)]
    part = against_ranks(ranks, ranks, ranks)[-1]
    assert str(part.verdict) == "equal: 1 step compared; nothing that the ranks print or save is compared"
    assert part.left == "nothing that the ranks print or save is compared"


LATE, OTHER = (Stop(f"ValueError: {why}", Place("train.py", 20), 1) for why in ("late", "other"))


@pytest.mark.parametrize(
    ("ranks", "original", "verdicts"),
    [
        ([[{}] * 3, [{}] * 3], LATE, ["equal: the parameters of 2 ranks are equal after each of 3 steps, then both "
         "stop: rank 1: train.py:20: ValueError: late", "equal: 3 steps compared"]),
        # One rank was ended when the other stopped.
        ([[{}] * 3, [{}] * 2], LATE, ["equal: the parameters of 2 ranks are equal after each of 2 steps, then both "
         "stop: rank 1: train.py:20: ValueError: late", "equal: 2 steps compared"]),
        ([[{}] * 3, [{}] * 3], None, ["stops: rank 1 of the migrated program, after 3 steps that agree: train.py:20: "
         "ValueError: late"]),
        ([[{}] * 3, [{}] * 3], OTHER, ["stops: rank 1 of the migrated program, after 3 steps that agree: train.py:20: "
         "ValueError: late; the original itself stops: rank 1: train.py:20: ValueError: other"]),
        ([[{}, {"value": 0.8}, {}], [{}] * 3], LATE, ["differs: train.py:12: Net.0 differs between rank 0 and rank 1 "
         "after step 2; the ranks exchange no gradients or parameters"]),
        ([[{}], []], LATE, ["not run: the original itself stops: rank 1: train.py:20: ValueError: late; the migrated "
         "program stops there too"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("distributed", [False, True])
def test_ranks_that_stop_late(
    ranks: list[list[Step]], original: Stop | None, verdicts: list[str], distributed: bool
) -> None:
    several = run(*(told(steps, rank=rank) for rank, steps in enumerate(ranks)), stop=LATE)
    twin = run(*(told([{}] * 3, rank=rank) for rank in range(2)), stop=original)
    single = run(told([{}] * 3), stop=original)
    sides = (
        SimpleNamespace(
            inserted={}, project=project, run=lambda world=1, ranks=ranks, **how: ranks if world > 1 else single
        )
        for project, ranks in ((BY_ITSELF if distributed else ALONE, twin), (BY_ITSELF, several))
    )
    parts = Several(*sides, lambda text: None).parts(2, single)  # type: ignore[arg-type]
    assert [str(part.verdict) for part in parts] == verdicts


@pytest.mark.parametrize("distributed", [False, True])
def test_the_line_that_made_an_optimizer_with_another_number(distributed: bool) -> None:
    one, port = ([told([{"lr": rate}] * 2, rank=rank) for rank in range(2)] for rate in (0.1, 0.2))
    part = against_ranks(one, port)[-1] if distributed else against_one(told([{"lr": 0.1}] * 2), port)
    assert str(part.verdict) == "differs: train.py:5: the learning rate is 0.2 at step 1, in the original 0.1"
    assert part.findings.differences[0].event
    assert part.findings.of_ranks is (None if distributed else True)


@pytest.mark.parametrize("stop", [None, LATE])
def test_what_a_card_refuses_is_no_late_stop(stop: Stop | None) -> None:
    error = {"level": "error", "path": "train.py", "line": 8, "code": "NPU501", "message": "no such operator"}
    several = replace(run(*(told([{}] * 3, rank=rank) for rank in range(2)), stop=stop), findings=[error])
    one = run(told([{}] * 3), stop=stop)
    fakes = {"inserted": {}, "project": BY_ITSELF}
    sides = (SimpleNamespace(run=lambda world=1, of=of, **how: of, **fakes) for of in (one, several))
    parts = Several(*sides, lambda text: None).parts(2, one)  # type: ignore[arg-type]
    assert parts[0].verdict.word is (Word.STOPS if stop is None else Word.EQUAL)
    assert ("NPU501" in parts[0].verdict.sentence) == (stop is None)


@pytest.mark.parametrize(
    ("original", "migrated", "groups", "twin"),
    [
        (BY_ITSELF, BY_ITSELF, False, True),
        (ALONE, BY_ITSELF, False, False),
        # The source does not show it: a framework begins the group.
        (ALONE, BY_ITSELF, True, True),
        (ALONE, ALONE, False, True),
    ],
)
def test_originals_that_are_distributed_themselves(
    original: SimpleNamespace, migrated: SimpleNamespace, groups: bool, twin: bool
) -> None:
    ranks, one = [told([{}], rank=rank) for rank in range(2)], told([{}], rank=0 if groups else None)
    sides = (
        SimpleNamespace(inserted={}, project=project, run=lambda world=1, **how: run(*ranks) if world > 1 else run(one))
        for project in (original, migrated)
    )
    parts = Several(*sides, lambda text: None).parts(2, run(one))  # type: ignore[arg-type]
    assert (parts[1].title == "2 ranks of the original, and 2 of the migrated program") == twin


def _passes(*passes: tuple[list[int], bool]) -> str:
    """What is said of passes through one loader: the order of each, and whether it trains."""
    training = Told()
    for epoch, (order, trains) in enumerate(passes):
        training.tell("loader", 3, loader=0, epoch=epoch, sampler="DistributedSampler", shuffle=True, made=None)
        for index in order:
            training.tell("batch", loader=0, epoch=epoch, indices=[index])
            if trains:
                training.tell("backward", 12, loss=[1.0], dtype=["float32"])
    return str(same_order(training.training()) or "")


ONE, TWO = [0, 1, 2], [2, 0, 1]


@pytest.mark.parametrize(
    "passes",
    [
        [(ONE, True)],
        [(ONE, True), (TWO, True)],
        [(ONE, True), (ONE, False), (TWO, True), (TWO, False)],
        [(ONE, False), (ONE, True), (TWO, True)],
        [([0], True), ([0], True)],
    ],
    ids=["one epoch", "another order", "evaluated on the same data", "evaluated before", "one batch"],
)
def test_epochs_of_their_own(passes: list[tuple[list[int], bool]]) -> None:
    assert _passes(*passes) == ""


@pytest.mark.parametrize(
    "passes", [[(ONE, True), (ONE, True)], [(ONE, True), (ONE, False), (ONE, True)], [(ONE, True), (ONE[:2], True)]]
)
def test_epochs_in_the_order_of_the_first(passes: list[tuple[list[int], bool]]) -> None:
    told = "epoch 2 has the order of the first; set_epoch is not called on the sampler of train.py:3"
    assert _passes(*passes).endswith(told)


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [("Net.queue", (1.0, 2.0), True), ("Net.queue", (1.0, 1.0), False), ("Net.running_mean", (1.0, 2.0), False)],
)
def test_a_buffer_that_a_rank_has_of_its_own(name: str, values: tuple[float, float], found: bool) -> None:
    ranks = [Told().made().step(buffers={name: value}).training() for value in values]
    told_of = with_cause(Difference("the loss differs", step=1), ranks[0], ranks, 2).cause
    assert told_of == (f"the buffer {name} of rank 0 is not that of rank 0 after step 1" if found else "")


@pytest.mark.parametrize(("line", "event"), [(12, False), (14, True)])
def test_a_loss_that_is_scaled_is_told_at_its_line(line: int, event: bool) -> None:
    one, rank = (Told().made().step(loss=each, grad=each / 2).training() for each in (1.0, 0.5))
    found = with_cause(Difference("x", Place("train.py", line), step=1), one, [rank, rank], 2)
    assert (found.place, found.event) == (Place("train.py", 12), event)
    assert found.cause == "each gradient is 0.5 times that of one process: divided by the ranks twice"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("self.queue[a : a + 4] = keys", True),
        ("self.queue = keys", True),
        ("self.other[a] = self.queue", False),
        ("queue[a] = keys", False),
    ],
)
def test_the_line_that_writes_a_buffer(line: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"a = 0\n{line}\n", encoding="utf-8")
    place = writing(Told().made().step().training(), tmp_path, "queue")
    assert place == (Place("train.py", 2) if found else None)
