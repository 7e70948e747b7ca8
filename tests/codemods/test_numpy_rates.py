"""Learning rates of NumPy in the state of an optimizer."""

from __future__ import annotations

import pytest

from tests.harness import migrate

SAVES = "import torch\n\n\ndef save(optimizer, path):\n    torch.save({'optimizer': optimizer.state_dict()}, path)\n"
LOADS = "import torch\n\n\ndef load(path):\n    return torch.load(path, 'cpu')\n"


def count(value: str, saves: str = SAVES, loads: str = LOADS) -> int:
    """How often NPU154 speaks of `value` as a learning rate."""
    source = (
        "import math\nimport numpy as np\n\nuse_cuda = True\n\n\ndef warm(optimizer, lr, step, rates):\n"
        f"    last = lr * np.cos(step)\n    for group in optimizer.param_groups:\n        group['lr'] = {value}\n"
    )
    found = migrate(source, files={"saves.py": saves, "loads.py": loads}).findings
    return [each.code for each in found].count("NPU154")


@pytest.mark.parametrize(
    "value", ["lr * np.minimum(step / 10, 1.0)", "np.interp(step, [0, 1], [0, lr])", "last", "last / 2"]
)
def test_a_rate_of_numpy(value: str) -> None:
    assert count(value) == 1


@pytest.mark.parametrize(
    "value", ["lr", "float(np.cos(step))", "lr * math.cos(step)", "np.cos(step).item()", "rates[step]", "min(last, lr)"]
)
def test_a_rate_that_may_be_a_number(value: str) -> None:
    assert count(value) == 0


@pytest.mark.parametrize(
    ("saves", "loads"),
    [
        (SAVES.replace("optimizer.state_dict()", "0"), LOADS),
        (SAVES, LOADS.replace("'cpu'", "weights_only=False")),
        (SAVES, "import torch\n"),
    ],
)
def test_a_state_that_nobody_saves_or_loads(saves: str, loads: str) -> None:
    assert count("lr * np.cos(step)", saves, loads) == 0


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        ("np.concatenate((np.linspace(0, 1, 10), np.array([1 / t for t in range(1, 9)])))", 1),
        ("np.linspace(0, 1, 10).tolist()", 0),
        ("[1 / t for t in range(1, 9)]", 0),
    ],
)
def test_a_schedule_that_a_function_is_given(schedule: str, found: int) -> None:
    source = (
        f"import numpy as np\n\nuse_cuda = True\n\n\ndef main(optimizer):\n    rates = {schedule}\n"
        "    train(optimizer, rates)\n\n\ndef train(optimizer, rates):\n    for step in range(9):\n"
        "        for group in optimizer.param_groups:\n            group['lr'] = rates[step]\n"
    )
    result = migrate(source, files={"saves.py": SAVES, "loads.py": LOADS})
    assert [each.code for each in result.findings].count("NPU154") == found
