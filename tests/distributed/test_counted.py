"""Counts and lists that are filled over the share of one rank, and shown as if they were of all data."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import codes, distributed, script

BEFORE = "import numpy as np\nseen, correct, counts, kept, ids = 0, 0, torch.zeros(9), [], set()\n"
FILL = {
    "seen": "seen += len(x)",
    "correct": "correct += model(x).eq(x).sum().item()",
    "counts": "counts[x] += 1",
    "kept": "kept.append(x)",
    "ids": "ids.update(x.tolist())",
}


def remarks(fill: str, shown: str, loader: str = "loader = DataLoader(dataset, 8, True)") -> list[str]:
    body = textwrap.indent(f"model(x).backward()\n{fill}", " " * 8)
    loop = f"for epoch in range(3):\n    for x in loader:\n{body}\n{textwrap.indent(shown, ' ' * 4)}"
    result = distributed(script(head=BEFORE, loader=loader, loop=loop))
    return [code for code in codes(result, applied=False) if code == "NPU346"]


@pytest.mark.parametrize("name", FILL)
@pytest.mark.parametrize("shown", ["print({0})", 'print(f"{{epoch}} {{len({0})}}")', 'torch.save({{"x": {0}}}, "x.pt")',
                                   "late = ({0} == 0).sum()\nprint(late)", "print('%s' % {0})"])  # fmt: skip
def test_what_is_of_the_share_of_one_rank(name: str, shown: str) -> None:
    assert remarks(FILL[name], shown.format(name)) == ["NPU346"]


@pytest.mark.parametrize(
    ("fill", "shown"),
    [
        (FILL["correct"] + "\n" + FILL["seen"], "print(correct / seen)"),
        (FILL["correct"] + "\n" + FILL["seen"], 'acc = correct / seen\nprint(f"{acc}")'),
        (FILL["kept"], "print(np.mean(kept))"),
        (FILL["kept"], "print(sum(kept) / len(kept))"),
        (FILL["seen"], "print(epoch)"),
        ("seen += 1", "print(seen)"),
        ("seen = 0\nseen += len(x)\nprint(seen)", "pass"),
        (FILL["correct"], "if correct > 3:\n    print('good')"),
        ("loss = model(x).mean()\nkept.append(loss.item())", "print(kept[-1])"),
    ],
)
def test_what_is_of_all_ranks_or_a_ratio(fill: str, shown: str) -> None:
    assert remarks(fill, shown) == []


def test_data_that_all_ranks_go_through() -> None:
    assert remarks(FILL["seen"], "print(seen)", loader="loader = dataset") == []


@pytest.mark.parametrize(
    ("fill", "told"),
    [
        ("seen += len(x)\nnet.alpha = min(1.0, seen / 192)", True),
        ("seen += x.size(0)\nif seen > 192:\n    net.grow()", True),
        ("seen += x.shape[0]\nnet.alpha = seen / net.images", True),
        ("seen += len(x)\nif seen % 192 == 0:\n    net.save()", True),
        ("seen += 1\nnet.alpha = seen / 192", False),
        ("seen += 1\nif seen % 192 == 0:\n    net.save()", False),
        ("seen += len(x)\nrate = correct / seen", False),
        ("seen += len(x)\nspeed = seen / elapsed", False),
        ("seen = len(x)\nnet.alpha = seen / 192", False),
    ],
)
def test_a_count_of_samples_that_decides(fill: str, told: bool) -> None:
    assert remarks(fill, "pass") == ["NPU346"] * told


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("(model(x).sum() / (x != 0).sum()).backward()", True),
        ("words = int((x != 0).sum())\nloss = model(x).sum() / words\nloss.backward()", True),
        ("def judged(x):\n    return model(x).sum() / (x != 0).sum()\njudged(x).backward()", True),
        ("loss = torch.nn.functional.cross_entropy(model(x), x, weight=net.weights)\nloss.backward()", True),
        ("loss = torch.nn.functional.cross_entropy(model(x), x, weight=None)\nloss.backward()", False),
        ("torch.nn.functional.cross_entropy(model(x), x, weight=net.w, reduction='none')[0].backward()", False),
        ("(model(x).sum() / 8).backward()", False),
        ("(model(x).sum() / len(x)).backward()", False),
        ("loss = model(x).sum()\n(loss / loss.detach()).backward()", False),
    ],
)
def test_a_loss_that_is_divided_by_a_count_of_its_batch(loss: str, told: bool) -> None:
    body = textwrap.indent(loss + "\noptimizer.step()", " " * 4)
    result = distributed(script(loop=f"for x in loader:\n{body}"))
    assert ("NPU346" in codes(result, applied=False)) is told
