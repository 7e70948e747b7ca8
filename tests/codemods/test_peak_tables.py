"""Tables of NVIDIA product names that give what a card can do."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate


@pytest.mark.parametrize(
    "source",
    [
        'PEAK = {"A100": 312e12, "H100": 989e12}\n',
        'FLOPS = {"NVIDIA A100-SXM4-80GB": 312, "v100": 125}\n',
        'def peak_flops(name):\n    if "A100" in name:\n        return 312e12\n'
        '    elif "H100" in name:\n        return 989e12\n',
        'def estimate_mfu(name):\n    return {"T4": 65, "L4": 121}[name]\n',
    ],
)
def test_figures_by_product(source: str) -> None:
    check_noop(source, open_codes=["NPU275"])


@pytest.mark.parametrize(
    "source",
    [
        'PRICE = {"A100": 2.5}\n# mfu\n',
        'BATCH = {"A100": 64, "T4": 16}\n# flops\n',
        'print({"A100": 312}, "flops")\n',
        'NAMES = {"A100": "ampere"}\nPEAK_FLOPS = {"Ascend910B3": 313e12}\n',
        'flops = {"conv1": 312e12, "A1": 2}\n',
    ],
)
def test_other_tables(source: str) -> None:
    check_noop(source)


@pytest.mark.parametrize(
    ("source", "blocks"),
    [
        ("T = {'A100': 312e12}\nmfu = x / T[name]\n", "later"),
        ("mfu = x / {'A100': 312e12}[name]\n", "later"),
        ("T = {'A100': 312e12}\nif name in T:\n    mfu = x / T[name]\n", ""),
        ("T = {'A100': 312e12}\nmfu = x / T.get(name, 1)\n", ""),
    ],
)
def test_a_lookup_may_raise(source: str, blocks: str) -> None:
    assert [each.blocks for each in migrate(f"import torch\n{source}").findings if each.code == "NPU275"] == [blocks]


@pytest.mark.parametrize("name", ["910B", "Ascend910", "Ascend 950DT", "npu"])
def test_a_table_that_has_the_npu_is_none(name: str) -> None:
    table = f'FLOPS = {{"H100": 989e12, "A100": 312e12, "{name}": 354e12}}\n'
    assert not [each for each in migrate(f"import torch\n{table}").findings if each.code == "NPU275"]
    other = table.replace(name, "V100")
    assert [each for each in migrate(f"import torch\n{other}").findings if each.code == "NPU275"]
