"""Programs against themselves, written in another way (benchmarks/same_programs.py): nothing is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.same_programs import WAYS, same
from tests.judging.test_differences import TRAINING
from transplt.project.judging.sides import Side

#: What was accused in programs that nobody had changed.
SAME = '''\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def collate(x, c, local, long):
    """Both."""
    if local:
        x, c = (x[:long], c[:long]) if long else (x, c)
        for start in range(3):
            if not local:
                x, c = x[start:], c[start:]
    else:
        x, c = x[start:], c[start:]
    return x, c


def put(mask, other, dtype):
    rounded = mask.round().to(dtype=torch.int64)
    low, high = [each.to(other) for each in (mask, other)]
    samples = torch.clamp(127.5 * low + 128.0, 0, 255).to("cpu", dtype=torch.uint8)
    kept = high.to(dtype)
    print(f"kept {kept:.2f}" if kept else "nothing kept")
    name = f"%0{dtype}d" % 3
    if local:
        path = name
    elif dtype:
        path = "other"
    else:
        path = rounded
    return samples, path
'''


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", [TRAINING, SAME], ids=["training", "same"])
def test_the_same_program_in_another_way(way: str, program: str) -> None:
    found = same(Side(Path(), {"train.py": program.encode()}), way)
    assert [(each.span.line, each.message) for each in (*found.against, *found.open)] == []
