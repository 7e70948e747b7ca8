"""Names: what the chosen torch_npu lacks says so, what it has but is not emulated says that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import forked

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def hand_made() -> None:
    forked.need_the_hand_made("the vendor's own has its names, and those of one version")


def look_up(program: Any, version: str, *paths: str) -> dict[str, list[str]]:
    result: dict[str, list[str]] = json.loads(program("names.py", *paths, torch_version=version).stdout)
    return result


KINDS = {
    "npu.foo": "AttributeError",
    "npu.obfuscation_initialize": "NotEmulated",
    "torch_npu.npu_moe_gating_top_k": "NotEmulated",
    "torch_npu.npu_foo": "AttributeError",
    "npu.mstx.range_push": "there",
    "torch_npu.contrib.ROIAlign": "NotEmulated",
    "torch_npu.optim.NpuFusedFoo": "AttributeError",
    "torch_npu.npu_swiglu": "there",
    "npu.nccl": "AttributeError",
    "npu.amp.foo": "AttributeError",
}


def test_names_of_the_newest_version(program: Any) -> None:
    seen = look_up(program, "2.13", *KINDS)
    assert {path: kind for path, (kind, _) in seen.items()} == KINDS
    assert (
        "torch.npu.obfuscation_initialize exists in torch_npu for PyTorch 2.13 but is not emulated"
        in seen["npu.obfuscation_initialize"][1]
    )
    assert "torch_npu for PyTorch 2.13 does not have it either" in seen["npu.foo"][1]


def test_names_that_came_and_went(program: Any) -> None:
    paths = ("npu.ExternalStream", "torch_npu.npu_moe_token_permute", "npu.ipc_collect", "npu.set_device")
    new, old, gap = (look_up(program, version, *paths) for version in ("2.13", "2.4", "2.8"))
    assert [kind for kind, _ in new.values()] == ["there"] * 4
    assert old["torch_npu.npu_moe_token_permute"][0] == "AttributeError"
    assert old["npu.ipc_collect"][0] == "AttributeError" and "those for 2.1" in old["npu.ipc_collect"][1]
    assert gap["npu.ExternalStream"][0] == "AttributeError" and "does not have it" in gap["npu.ExternalStream"][1]
    assert gap["npu.set_device"][0] == "there"


def test_coverage_of_the_public_names(program: Any) -> None:
    """How much of what torch_npu 2.13 offers is there: these figures only go up."""
    import gzip
    from pathlib import Path

    tables = Path(__file__).parents[2] / "transplt/emulator/site/npu_emulator/tables/names.json.gz"
    modules = json.loads(gzip.decompress(tables.read_bytes()))["modules"]
    last = 1 << 12
    wanted = {
        "torch_npu.npu": 0.94,
        "torch_npu.npu.amp": 1.0,
        "torch_npu.npu.memory": 0.95,
        "torch_npu.npu.random": 0.9,
        "torch_npu.optim": 1.0,
        "torch_npu.profiler": 0.99,
    }
    internal = {"ErrCode", "pta_error", "prof_error", "classproperty", "get_default_generator"}
    names = {
        f"{module}.{n}".replace("torch_npu.npu", "npu", 1): module
        for module in wanted
        for n, mask in modules[module].items()
        if mask & last and not n.startswith("_") and n not in internal
    }
    seen = look_up(program, "2.13", *names)
    for module, share in wanted.items():
        mine = [path for path, owner in names.items() if owner == module]
        absent = [path for path in mine if seen[path][0] != "there"]
        assert 1 - len(absent) / len(mine) >= share, (module, len(mine), absent)


def test_reference_operators_compute_their_documented_formulas(program: Any) -> None:
    assert program("fused_operators.py").stdout.count(" ok\n") == 8


def test_fused_optimizers_compute_their_formulas(program: Any) -> None:
    assert "optimizers ok" in program("fused_optimizers.py").stdout


def test_fused_optimizers_train_and_clip_as_those_of_torch(program: Any) -> None:
    assert "tuned optimizers ok" in program("tuned_optimizers.py").stdout
