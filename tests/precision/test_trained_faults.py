"""Faults in front of the last backward pass and behind it are named at their line; what computes the same is quiet."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.precision import causes, families
from tests.precision.causes import CAUSES, QUIET
from tests.precision.planting import PROGRAMS, compared, program, record
from tests.precision.trained import HARMLESS, KINDS, TRAINED, Harmless, Trained, graded
from transplt.precision.dumps import open_dump
from transplt.precision.first_line import sentence
from transplt.precision.watch.points import bounds, chosen
from transplt.precision.watch.watching import watch
from transplt.proof.launch.warm import Warm

#: What runs in every check: each kind of answer from behind the last backward pass.
FIRST = {
    "a loss scale that is not undone", "half the learning rate", "SGD for Adam", "AMSGrad",
    "weights held between bounds behind the step", "gradients that are not added up", "a closer clamp",
    "a residual that is cut off", "batch norm in eval", "a lost momentum", "other people",
    "a balance that has no gradient",
}  # fmt: skip
#: Of a function that is not called at all, the first line in it is named, and not the line of the call.
ELSEWHERE = {"keys that are not rotated"}
_BOTH = (*HARMLESS, *QUIET, *families.QUIET)
_FAULTS = (*TRAINED, *CAUSES, *families.FAULTS)
FIRST_HARMLESS = {"a fused attention", "AdamW for all at once", "a norm that is shown", "a loss that is shown",
                  "an embedding by its function", "a sort for the best"}
_QUIET_FIRST = [each for each in _BOTH if each.name in FIRST_HARMLESS]
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra `emulator`"),
]


def test_forty_faults_on_five_programs() -> None:
    assert len(TRAINED) == 40 and len(HARMLESS) == 12 and sum(each.aside for each in TRAINED) == 20
    assert len({(each.kind, each.name) for each in TRAINED}) == 40
    assert {path.stem for path in (PROGRAMS / "trained").glob("*.py")} == {*KINDS, *causes.KINDS, *families.KINDS}
    assert sum(each.behind for each in TRAINED) == 20 and {each.kind for each in TRAINED} == set(KINDS)
    every = (CAUSES, QUIET, families.FAULTS, families.QUIET)
    assert [len({(each.kind, each.name) for each in some}) for some in every] == [40, 20, 12, 8]
    for each in _FAULTS:
        for device in ("npu", "cpu"):
            compile(program(f"trained/{each.kind}", device, each.swaps), each.name, "exec")
    for pair in _BOTH:
        for swaps in (pair.swaps, pair.bench):
            compile(program(f"trained/{pair.kind}", "npu", swaps), pair.name, "exec")


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benches")


def run(place: Path, kind: str, device: str, warm: Warm, swaps: object = (), threads: int = 1) -> Path:
    if not place.exists():
        nproc = 2 if kind in ("shares", "halves") else 0
        record(place, f"trained/{kind}", device, warm, swaps, nproc=nproc, task="statistics", threads=threads)  # type: ignore[arg-type]
    return place / "dump"


def fault_is_named(each: Trained, tmp_path: Path, benches: Path, warm: Warm) -> None:
    bench = run(benches / each.kind, each.kind, "cuda", warm)
    assert graded(each, compared(run(tmp_path / "npu", each.kind, "npu", warm, each.swaps), bench)) == "right"


def pair_is_quiet(each: Harmless, tmp_path: Path, benches: Path, warm: Warm) -> None:
    place = tmp_path / "bench" if each.bench else benches / each.kind
    bench = run(place, each.kind, "cuda", warm, each.bench)
    found = compared(run(tmp_path / "npu", each.kind, "npu", warm, each.swaps, each.threads), bench)
    assert found.same, sentence(found)


@pytest.mark.parametrize("each", [one for one in _FAULTS if one.name in FIRST], ids=lambda each: each.name)
def test_a_fault_is_named(each: Trained, tmp_path: Path, benches: Path, warm: Warm) -> None:
    fault_is_named(each, tmp_path, benches, warm)


@pytest.mark.parametrize("each", _QUIET_FIRST, ids=lambda each: each.name)
def test_what_computes_the_same_is_quiet(each: Harmless, tmp_path: Path, benches: Path, warm: Warm) -> None:
    pair_is_quiet(each, tmp_path, benches, warm)


@pytest.mark.parametrize("kind", ["mlp", "words"])
def test_a_healthy_training_hits_no_watch_point(kind: str, benches: Path, warm: Warm) -> None:
    dump = open_dump(str(run(benches / kind, kind, "cuda", warm)))
    assert not watch([dump], chosen("recommended"), bounds(()), (-65504.0, 65504.0)).hits


_ALSO_QUIET = [each for each in _BOTH if each.name not in FIRST_HARMLESS]
_REST = [each for each in _FAULTS if each.name not in {*FIRST, *ELSEWHERE}]


@pytest.mark.slow
@pytest.mark.parametrize("each", _REST, ids=lambda each: each.name)
def test_every_fault_is_named(each: Trained, tmp_path: Path, benches: Path, warm: Warm) -> None:
    fault_is_named(each, tmp_path, benches, warm)


@pytest.mark.slow
@pytest.mark.parametrize("each", _ALSO_QUIET, ids=lambda each: each.name)
def test_all_that_computes_the_same_is_quiet(each: Harmless, tmp_path: Path, benches: Path, warm: Warm) -> None:
    pair_is_quiet(each, tmp_path, benches, warm)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pictures", "series", "shares"])
def test_every_healthy_training_hits_no_watch_point(kind: str, benches: Path, warm: Warm) -> None:
    dump = open_dump(str(run(benches / kind, kind, "cuda", warm)))
    assert not watch([dump], chosen("recommended"), bounds(()), (-65504.0, 65504.0)).hits
