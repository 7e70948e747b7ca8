"""Faults planted in recorded runs are named with operator, way and line; equal runs raise no alarm."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.precision.planted import EQUAL, PLANTED, Equal, Planted
from tests.precision.planting import PROGRAMS, compared, missed, program, record, without_elements
from transplt.precision.first_line import sentence
from transplt.proof.launch.warm import Warm

#: What runs in every check: each way to plant, each kind of verdict.
FIRST = {
    "a gradient scaled between operators", "no gradient behind max_pool2d", "a wrong mask", "the wrong labels",
    "another rate in one optimizer", "one share for all ranks",
}  # fmt: skip
EQUAL_FIRST = {"fused attention", "DDP of one rank, and no DDP"}
TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra `emulator`")


def test_forty_faults_in_four_kinds_of_programs_and_with_ranks() -> None:
    assert len(PLANTED) >= 40 and len(EQUAL) >= 10
    assert len({(each.kind, each.name) for each in PLANTED}) == len(PLANTED)
    assert {each.kind for each in PLANTED} == {path.stem for path in PROGRAMS.glob("*.py")}
    for each in PLANTED:
        assert bool(each.fault) != bool(each.swaps)
        compile(program(each.kind, "npu", each.swaps), each.name, "exec")
        compile(program(each.kind, "cpu", each.swaps), each.name, "exec")


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benches")


def both(tmp_path: Path, bench: Path) -> Iterator[tuple[Path, Path]]:
    """The two dumps with elements, and as statistics."""
    yield tmp_path / "npu" / "dump", bench / "dump"
    for side in (tmp_path / "npu", bench):
        without_elements(side / "dump", side / "statistics")
    yield tmp_path / "npu" / "statistics", bench / "statistics"


def fault_is_named(each: Planted, tmp_path: Path, benches: Path, warm: Warm) -> None:
    bench = benches / each.kind
    if not bench.exists():
        record(bench, each.kind, "cuda", warm, nproc=each.nproc)
    record(tmp_path / "npu", each.kind, "npu", warm, each.swaps, each.fault, each.nproc)
    for npu, other in both(tmp_path, bench):
        assert missed(each, compared(npu, other)) == ""


def pair_is_equal(each: Equal, tmp_path: Path, warm: Warm) -> None:
    record(tmp_path / "npu", each.kind, each.npu, warm, each.swaps, nproc=each.nproc[0])
    record(tmp_path / "bench", each.kind, each.bench, warm, nproc=each.nproc[1])
    for npu, other in both(tmp_path, tmp_path / "bench"):
        found = compared(npu, other)
        assert found.same, sentence(found)


@TORCH
@pytest.mark.torch
@pytest.mark.parametrize("each", [each for each in PLANTED if each.name in FIRST], ids=lambda each: each.name)
def test_a_fault_in_a_run_is_named(each: Planted, tmp_path: Path, benches: Path, warm: Warm) -> None:
    fault_is_named(each, tmp_path, benches, warm)


@TORCH
@pytest.mark.torch
@pytest.mark.parametrize("each", [each for each in EQUAL if each.name in EQUAL_FIRST], ids=lambda each: each.name)
def test_equal_runs_raise_no_alarm(each: Equal, tmp_path: Path, warm: Warm) -> None:
    pair_is_equal(each, tmp_path, warm)


@TORCH
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("each", [each for each in PLANTED if each.name not in FIRST], ids=lambda each: each.name)
def test_every_fault_in_a_run_is_named(each: Planted, tmp_path: Path, benches: Path, warm: Warm) -> None:
    fault_is_named(each, tmp_path, benches, warm)


@TORCH
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("each", [each for each in EQUAL if each.name not in EQUAL_FIRST], ids=lambda each: each.name)
def test_all_equal_runs_raise_no_alarm(each: Equal, tmp_path: Path, warm: Warm) -> None:
    pair_is_equal(each, tmp_path, warm)
