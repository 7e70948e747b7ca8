"""Programs against themselves, written in another way (benchmarks/same_programs.py): nothing is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.same_programs import WAYS, same
from tests.judging.test_differences import TRAINING
from transplt.project.judging.differences import differences
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


#: A small training of which one line moves, and the words that tell it.
MOVED = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=20)
args = parser.parse_args()


def train(epoch):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        kept.one, kept.two = args.one, args.two


for epoch in range(200):
    train(epoch)
    if args.evaluate:
        evaluate(model)
    if epoch > args.warm:
        scheduler.step(epoch)
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("        evaluate(model)\n    if epoch > args.warm:\n        scheduler.step(epoch)\n",
         "        evaluate(model)\n        if epoch > args.warm:\n            scheduler.step(epoch)\n",
         "under another condition now"),
        ("        evaluate(model)\n", "        print(model)\n        evaluate(model)\n", ""),
        ("args.one, args.two", "args.one, args.one", "one stands where two stood"),
        ("    kept.one, kept.two = args.one, args.two", "    kept.one = args.one\n        kept.two = args.two", ""),
        ("import torch\n", "import torch\n\n\ndef chosen():\n    return torch.device('cpu')\n", "returns the CPU"),
        ("import torch\n", "import torch\n\n\ndef chosen():\n    if torch.npu.is_available():\n"
         "        return torch.device('npu')\n    return torch.device('cpu')\n", ""),
    ],
)  # fmt: skip
def test_what_moves(old: str, new: str, words: str) -> None:
    assert old in MOVED
    sides = (Side(Path(), {"train.py": text.encode()}) for text in (MOVED, MOVED.replace(old, new)))
    found = differences(*sides)
    told = [each.message for each in (*found.against, *found.open)]
    assert bool(told) == bool(words) and all(words in each for each in told), told


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ("python train.py -b 256 -smooth -epoch 200\n", []),
        ("python train.py -b 256 -epoch 200\n", ["smooth was given, and is not"]),
        ("set -e\npython train.py -b 256 -smooth -epoch 20\n", ["epoch was 200 and is 20"]),
        ("python train.py \\\n  -b 256 \\\n -smooth \\\n -n_layers 3 -epoch 200\n",
         ["n_layers is 3, and was not given"]),
    ],
)  # fmt: skip
def test_flags_of_a_launch_script(port: str, words: list[str]) -> None:
    before = b"python train.py -b 256 -smooth -epoch 200\n"
    found = differences(Side(Path(), {"run.sh": before}), Side(Path(), {"run.sh": port.encode()}))
    told = (*found.against, *found.open)
    assert [each.message.partition(": ")[2].partition(" (original")[0] for each in told] == words
