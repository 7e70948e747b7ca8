"""The tables of native API support against a sample of their source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transplt.base.settings import TORCH_VERSIONS
from transplt.rules import support_tables as tables
from transplt.rules.tables import read_table, rules_dir

SAMPLE = json.loads((Path(__file__).parent.parent / "data" / "api_support_sample.json").read_bytes())
STATUS = {True: "yes", False: "no", "partial": "limited"}


def test_the_table_says_what_its_source_says(subtests: pytest.Subtests) -> None:
    for row in SAMPLE:
        with subtests.test(f"{row['torch']} {row['api']}"):
            hold_row(row)


def hold_row(row: dict) -> None:
    found = tables.verdict(row["api"], row["torch"])
    if row["api"] in read_table("support/api_support.json")["contradicted"] or not row["api"].startswith("torch."):
        assert found is None
        return
    assert found is not None
    assert found.status == STATUS[row["supported"]]
    if row["supported"] == "partial":
        assert found.limit == row["notes"]
        assert found.tags == frozenset(row.get("tags", ()))
        assert found.dtypes == row.get("dtypes", {})
    hardware = row.get("hw", {})
    left_out = row["supported"] is not False and hardware.get("A2") and hardware.get("950DT") is False
    assert found.not_on == (frozenset({"950DT"}) if left_out else frozenset())


def test_the_sample_is_whole() -> None:
    assert len(SAMPLE) == 200
    assert {row["torch"] for row in SAMPLE} == set(tables.published())


def test_the_tables_are_small_and_name_their_source() -> None:
    folder = rules_dir() / "support"
    for name in ("api_support", "torch_names", "affinity", "advice"):
        assert (folder / f"{name}.json").stat().st_size < 300_000
        assert read_table(f"support/{name}.json")["source"]
    assert "CC BY 4.0" in read_table("support/api_support.json")["source"]


def test_between_two_lists_that_agree_the_shorter_one_is_filled() -> None:
    assert tables.verdict("torch.abs", "2.2") == tables.verdict("torch.abs", "2.1")


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
        ("torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.nn.Linear.forward", "torch.nn.Linear"),
        ("torch.Tensor.view", "torch.Tensor.view"),
        ("torch.nn.Parameter", "torch.nn.parameter.Parameter"),
        ("torch.nn", ""),
        ("torch.float32", ""),
        ("torch", ""),
        ("torch.never_heard_of", "torch.never_heard_of"),
        ("torch.accelerator.random", ""),  # new in 2.14, newer than what was introspected
        ("torch.accelerator.random.get_rng_state", "torch.accelerator.random.get_rng_state"),
    ],
)
def test_api_of(name: str, api: str) -> None:
    assert tables.api_of(name) == api


@pytest.mark.parametrize(
    "api",
    ["torch.Size", "torch.distributed.destroy_process_group", "torch.LongTensor", "torch.xpu.synchronize"],
)
def test_the_host_and_other_devices(api: str) -> None:
    assert tables.runs_on_host(tables.api_of(api))


def test_kernels_stand_in_for_a_silent_documentation() -> None:
    assert tables.has_kernel("torch.relu", TORCH_VERSIONS[-1])
    assert tables.has_kernel("torch.linalg.vector_norm", TORCH_VERSIONS[-1])
    assert not tables.has_kernel("torch.poisson", TORCH_VERSIONS[-1])
    assert not tables.has_kernel("torch.nn.RReLU", TORCH_VERSIONS[-1])


def test_supported_in() -> None:
    assert tables.supported_in("torch.cdist")[0] > "2.1"
    assert tables.supported_in("torch.nn.DataParallel") == []
    assert tables.supported_in("torch.never_heard_of") == []
