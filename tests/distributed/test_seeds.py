"""Seeds at the edges of 64 bits: a process that nobody has seeded has any of them, and `prove` none, since it seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked
from tests.distributed.running import migrated

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("distributed_seeds")]

PROGRAM = Path(__file__).parent / "programs" / "drawn.py"
SEEDS = [0, 2**63, 2**64 - 1]


def printed(source: Path, out: Path) -> tuple[set[str], set[int]]:
    """What two processes have drawn alike before they trained, and the seeds that they ended with."""
    folder = migrated(source, out, "distributed", "-m", str(source))
    done = forked.on_npus(folder / source.name, (), folder, nproc=2)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    drawn = [line for line in lines if line.startswith("drawn")]
    assert len(drawn) == 2, lines
    seeds = [int(line.split()[1]) for line in lines if line.startswith("seed")]
    assert len(seeds) == len(set(seeds)) == 2, "each rank draws its own noise"
    return set(drawn), set(seeds)


@pytest.mark.parametrize("first", SEEDS)
def test_the_seed_that_a_process_has_by_itself(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST", str(first))
    drawn, seeds = printed(PROGRAM, tmp_path / "out")
    assert len(drawn) == 1 and first in seeds, "rank 0 keeps its own"
    assert all(0 <= seed < 2**63 for seed in seeds - {first})


@pytest.mark.parametrize("seed", [*SEEDS, pytest.param(-1, marks=pytest.mark.slow)])
def test_the_seed_that_a_program_sets(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 keeps it. NumPy and random, which the program leaves alone, have one seed on all ranks."""
    monkeypatch.setenv("FIRST", str(2**64 - 3))
    monkeypatch.setenv("SEED", str(seed))
    source = tmp_path / "train.py"
    source.write_text(PROGRAM.read_text().replace("# torch.manual_seed", "torch.manual_seed"))
    drawn, seeds = printed(source, tmp_path / "out")
    assert len(drawn) == 1 and seed % 2**64 in seeds
    assert all(0 <= other < 2**63 for other in seeds - {seed % 2**64})
