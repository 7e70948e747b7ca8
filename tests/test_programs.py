"""Small programs as people write them: made to run on many cards and right, or refused, or left as they are.

What is expected of each stands in its first lines (tests/small_programs.py). Read off the text: the verdict, that a
program is converted whole or not at all, and what tests/written.py knows. Run on the emulated NPU: all ranks hold the
same parameters after each step, make as many steps, and train as one process does where that can be.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ranks import Ranks, differences, run_ranks
from tests.small_programs import SmallProgram, Written, plain, programs, reasons, sources, verdict, write
from tests.written import faults, launched_alone

#: What fails today, and how: (test, program). What is repaired goes out of here.
NOT_YET: dict[tuple[str, str], str] = {
    ("apex", "weight_averaging"): "the averaged model is a copy from before amp.initialize",
    ("amp native", "method_in_loss"): "a network that is run by methods beside forward is not seen",
}  # fmt: skip

ALL = programs()
#: Global batches of a comparison are those of this many processes.
SHARED = 2


def cases(test: str, chosen: list[SmallProgram], always: frozenset[str] | None = None) -> Any:
    """One case for each program; those that fail today under one of the words of `test` are marked.

    With `always`, all others are slow.
    """
    every = []
    for program in chosen:
        why = "; ".join(NOT_YET[word, program.name] for word in test.split(", ") if (word, program.name) in NOT_YET)
        marks = [pytest.mark.xfail(reason=why)] if why else []
        if always is not None and program.name not in always:
            marks.append(pytest.mark.slow)
        every.append(pytest.param(program, id=program.name, marks=marks))
    return pytest.mark.parametrize("program", every)


def test_there_are_enough_of_each_kind() -> None:
    """Half of them to be converted, a quarter to be refused, a quarter distributed already; roughly."""
    assert len(ALL) >= 44
    assert sum(program.verdicts == {"converts"} for program in ALL) >= 22
    assert sum("refused" in program.verdicts for program in ALL) >= 11
    assert sum(program.verdicts == {"left"} for program in ALL) >= 11
    names = {program.name for program in ALL}
    assert sorted(name for _, name in NOT_YET if name not in names) == []


# --- many cards: read off the text ------------------------------------------------------------------------------------


@cases("distributed", ALL)
def test_converted_whole_or_not_at_all(program: SmallProgram, tmp_path: Path) -> None:
    written = write(program, tmp_path / "many", distributed=True)
    found = verdict(written, plain(program))
    assert found in program.verdicts
    # A refusal gives its reason, and nothing that cannot work; a conversion leaves nothing of itself to do.
    assert bool(reasons(written)) is (found == "refused"), reasons(written)
    assert written.launch is (found != "refused")
    if found == "converts":
        wrong = faults(written.files, program.main, sources(program))
        if program.next_start and program.next_start[0] != program.main:
            wrong += launched_alone(written.files, program.next_start[0])
        assert wrong == []


# --- many cards: run --------------------------------------------------------------------------------------------------


def run(program: SmallProgram, written: Written, world: int, **options: Any) -> Ranks:
    """Run a copy of what was written, since a run leaves files behind."""
    folder = written.folder.with_name(f"run{world}")
    # Without the record of edits the emulator traces no lines, which makes it faster.
    shutil.copytree(written.folder, folder, ignore=shutil.ignore_patterns(".transplt", "change_list.csv"))
    arguments, times = program.arguments(world, SHARED if world <= SHARED else world)
    ranks = run_ranks(folder, program.main, arguments, world=world, batch_times=times, **options)
    if program.next_start and not ranks.failure:
        script, *others = program.next_start
        then = run_ranks(folder, script, others, world=world if script == program.main else 1)
        assert then.failure == ""
    return ranks


def converted(program: SmallProgram, tmp_path: Path) -> Written:
    """What `distributed` wrote; skips a program that was refused where that is right, too."""
    written = write(program, tmp_path / "many", distributed=True)
    if verdict(written, plain(program)) != "converts" and "refused" in program.verdicts:
        pytest.skip("refused, which is right, too")
    return written


TO_CONVERT = [program for program in ALL if "converts" in program.verdicts]


#: Those that run in every test run: each broke in its own way once. The others are slow tests.
ALWAYS = frozenset(
    "callbacks checkpoint_into_global closure_printed endless_batches frozen_after gan_third_network gan_two_backwards "
    "lbfgs_closure method_in_loss plateau_val_loss semicolons seq2seq shared_loaders time_series unused_parameters "
    "vq_gan".split()
)


@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("two, run", TO_CONVERT, always=ALWAYS)
def test_two_processes_stay_equal_and_train_as_one(program: SmallProgram, tmp_path: Path) -> None:
    written = converted(program, tmp_path)
    two = run(program, written, 2, plain=True)
    assert two.faults() == []
    assert two.written_by_several() == []
    assert two.stepped or "without an optimizer" in program.said["distributed"]
    assert [process.groups for process in two.processes] == [1, 1]
    one = run(program, written, 1, plain=True)
    assert one.faults() == []
    if program.same:
        assert differences(one, two) == []


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("four, run", TO_CONVERT)
def test_four_processes_stay_equal(program: SmallProgram, tmp_path: Path) -> None:
    """With dropout, shuffling, and seeds as the program has them."""
    four = run(program, converted(program, tmp_path), 4)
    assert four.faults() == []


#: Each start of a rank by the program itself imports torch anew: of the two that do so, `spawned_main` is always run.
LEFT = [program for program in ALL if program.verdicts == {"left"} and program.starts != "no"]


@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("left", LEFT, always=frozenset(program.name for program in LEFT) - {"average_gradients"})
def test_what_is_distributed_already_still_runs(program: SmallProgram, tmp_path: Path) -> None:
    written = write(program, tmp_path / "many", distributed=True)
    alone = program.starts == "itself"
    arguments, _ = program.arguments(2, 2)
    ranks = run_ranks(written.folder, program.main, arguments, world=1 if alone else 2, grouped=not alone)
    assert ranks.faults() == []
    assert len(ranks.processes) == 2
    assert ranks.stepped


# --- mixed precision and tunings --------------------------------------------------------------------------------------

KINDS: dict[str, dict[str, str]] = {
    "native": {"amp": "native"},
    "apex": {"amp": "apex", "opt_level": "O2"},
    "apex O1": {"amp": "apex", "opt_level": "O1"},
}
WITH_AMP = [program for program in ALL if program.precision("native")]


def holds(program: SmallProgram, kind: str, tmp_path: Path) -> None:
    """It is written or refused as it should be, and a refusal has its reason."""
    written = write(program, tmp_path / "amp", **KINDS[kind])
    converts = written.files != plain(program).files
    assert ("converts" if converts else "refused") in program.precision(kind)
    told = [finding for finding in written.result.findings if finding.code in ("NPU742", "NPU743", "NPU745")]
    assert converts or told


@cases("amp native", WITH_AMP)
def test_native_mixed_precision_is_written_or_refused(program: SmallProgram, tmp_path: Path) -> None:
    holds(program, "native", tmp_path)


@cases("amp apex", WITH_AMP)
def test_apex_is_written_or_refused(program: SmallProgram, tmp_path: Path) -> None:
    holds(program, "apex", tmp_path)


@cases("amp apex O1", WITH_AMP)
def test_apex_o1_is_written_or_refused(program: SmallProgram, tmp_path: Path) -> None:
    holds(program, "apex O1", tmp_path)


@cases("amp apex level", WITH_AMP)
def test_apex_takes_the_level_that_is_right(program: SmallProgram, tmp_path: Path) -> None:
    """O2 where it may be written, else O1 where that may; the remark says which and why."""
    either = program.precision("apex") | program.precision("apex O1")
    written = write(program, tmp_path / "amp", amp="apex")
    levels = {finding.message.partition(" of apex")[0] for finding in written.result.apex_levels}
    converts = any("amp.initialize(" in text for text in written.files.values())
    assert ("converts" if converts else "refused") in either
    assert len(levels) == converts
    if program.precision("apex") == {"converts"}:
        assert levels == {"level O2"}
    elif "converts" not in program.precision("apex") and converts:
        assert levels == {"level O1"}


def near(one: Ranks, other: Ranks) -> list[str]:
    """How parameters ended up elsewhere than those of `one`, measured by how far they went."""
    if other.failure:
        return [other.failure]
    begun = [steps[0] for _, steps in sorted(one.processes[0].steps.items())]
    last, found = one.final(), other.final()
    first = [value for sums in begun for row in sums for value in row] or last
    if not len(first) == len(last) == len(found):
        return [f"{len(last)} and {len(found)} sums of parameters"]
    way = sum(abs(a - b) for a, b in zip(first, last, strict=True))
    apart = sum(abs(a - b) for a, b in zip(last, found, strict=True))
    # The first steps are left out until the scale has settled, which is much of so few. A NaN is like nothing.
    if not apart <= 0.9 * way + 0.01 * sum(map(abs, last)):
        return [f"{apart:.4g} apart, where training went {way:.4g}"]
    return []


def trained_near(program: SmallProgram, tmp_path: Path, test: str, **options: Any) -> list[str]:
    changed = write(program, tmp_path / "changed", **options)
    unchanged = write(program, tmp_path / "plain")
    if changed.files == unchanged.files:
        pytest.skip(f"nothing of {test} was written")
    return near(run(program, unchanged, 1, plain=True), run(program, changed, 1, plain=True))


CAN_RUN = [program for program in ALL if program.starts == "torchrun" and "left" not in program.verdicts]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("native, single", CAN_RUN)
def test_native_mixed_precision_trains_near_float32(program: SmallProgram, tmp_path: Path) -> None:
    assert trained_near(program, tmp_path, "native", amp="native") == []


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("apex, single", CAN_RUN)
def test_apex_trains_near_float32(program: SmallProgram, tmp_path: Path) -> None:
    assert trained_near(program, tmp_path, "apex", **KINDS["apex"]) == []


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("apex O1, single", CAN_RUN)
def test_apex_o1_trains_near_float32(program: SmallProgram, tmp_path: Path) -> None:
    assert trained_near(program, tmp_path, "apex O1", **KINDS["apex O1"]) == []


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.xdist_group("small_programs")
@cases("tune, single", CAN_RUN)
def test_tunings_train_near_the_untuned(program: SmallProgram, tmp_path: Path) -> None:
    assert trained_near(program, tmp_path, "tunings", tune="all") == []
