"""Trained with several processes, a script does what it did with one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.distributed.running import emulated, launched, migrated

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("distributed_training")]

PROGRAM = Path(__file__).parent / "programs" / "regression.py"
BATCH, SAMPLES, EPOCHS = 16, 64, 2
#: Sums of the same float32 numbers in another order differ by a few units in the last place, and training carries
#: that on over the steps.
RELATIVE = 2e-6


def losses(lines: list[str]) -> dict[tuple[int, int], float]:
    found = [line.split() for line in lines if line.startswith("loss ")]
    assert len(found) == len({(row[1], row[2]) for row in found}), "a step is printed once, by one rank"
    return {(int(epoch), int(step)): float(value) for _, epoch, step, value in found}


def seen(folder: Path) -> Counter[int]:
    """How often each sample was read, by all processes."""
    return Counter(int(line) for path in folder.glob("seen-*.txt") for line in path.read_text().split())


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[int, int], float]]:
    """The migration for one card, and its losses."""
    folder = migrated(PROGRAM, tmp_path_factory.mktemp("single") / "out")
    sizes = ["--batch-size", str(BATCH), "--samples", str(SAMPLES)]
    lines = emulated(folder, "regression.py", *sizes, "--epochs", str(EPOCHS + 1))
    assert len(losses(lines)) == (EPOCHS + 1) * SAMPLES // BATCH
    return folder, losses(lines)


@pytest.mark.parametrize("world", [2, *(pytest.param(world, marks=pytest.mark.slow) for world in (1, 4))])
def test_every_step_has_the_loss_of_one_process(
    world: int, single: tuple[Path, dict[tuple[int, int], float]], tmp_path: Path
) -> None:
    """The batch of a card is 1/W of that of one process; nothing shuffles."""
    folder = migrated(PROGRAM, tmp_path / "out", "distributed", "-m", str(PROGRAM))
    sizes = ["--batch-size", str(BATCH // world), "--samples", str(SAMPLES)]
    lines = launched(folder, world, *sizes, "--folder", str(folder))
    expected = {key: value for key, value in single[1].items() if key[0] < EPOCHS}
    found = losses(lines)
    assert sorted(found) == sorted(expected)
    assert {key: pytest.approx(value, rel=RELATIVE) for key, value in expected.items()} == found
    assert seen(folder) == dict.fromkeys(range(SAMPLES), EPOCHS)
    assert [line for line in lines if line.startswith("saved")] == [f"saved {epoch}" for epoch in range(EPOCHS)]
    assert len(list(folder.glob("*.pt"))) == 1
    # What many cards wrote, the single-card script loads: it goes on where they were.
    resumed = emulated(single[0], "regression.py", "--resume", str(folder / "model.pt"), "--epochs", "1")
    assert losses(resumed)[0, 0] == pytest.approx(single[1][EPOCHS, 0], rel=RELATIVE)


@pytest.mark.slow
def test_a_share_that_does_not_divide_is_filled_up(tmp_path: Path) -> None:
    """50 samples on 4 cards: 13 each, so two samples are seen twice in an epoch; each epoch has its own order."""
    folder = migrated(PROGRAM, tmp_path / "out", "distributed", "-m", str(PROGRAM))
    arguments = ["--batch-size", "4", "--samples", "50", "--shuffle", "--folder", str(folder), "--epochs"]
    launched(folder, 4, *arguments, "1")
    first = seen(folder)
    assert sorted(first) == list(range(50))
    assert sorted(first.values()) == [1] * 48 + [2] * 2
    order = {path.name: path.read_text() for path in folder.glob("seen-*.txt")}
    assert all(len(text.split()) == 13 for text in order.values())
    for path in folder.glob("seen-*.txt"):
        path.unlink()
    launched(folder, 4, *arguments, "2")
    for path in folder.glob("seen-*.txt"):
        numbers = path.read_text().split()
        assert len(numbers) == 26
        assert numbers[:13] != numbers[13:], "set_epoch shuffles anew"
    assert sorted(seen(folder)) == list(range(50))
