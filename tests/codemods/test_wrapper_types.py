"""Tests for the very class of a wrapper hold for the subclass that goes in for DataParallel."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate

HEAD = "import torch\nimport torch.nn as nn\n"
BOTH = '("DataParallel", "OneCardDataParallel")'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("type(net) is nn.DataParallel", "isinstance(net, nn.DataParallel)"),
        ("type(net) == nn.DataParallel", "isinstance(net, nn.DataParallel)"),
        ("type(net) is not nn.DataParallel", "not isinstance(net, nn.DataParallel)"),
        ("type(net) != nn.DataParallel and x", "not isinstance(net, nn.DataParallel) and x"),
        (
            "type(net) in (nn.parallel.DataParallel, nn.parallel.DistributedDataParallel)",
            "isinstance(net, (nn.parallel.DataParallel, nn.parallel.DistributedDataParallel))",
        ),
        ("type(a.b) not in [nn.DataParallel]", "not isinstance(a.b, (nn.DataParallel,))"),
        ("net.__class__.__name__ == 'DataParallel'", f"net.__class__.__name__ in {BOTH}"),
        ("type(net).__name__ != 'DataParallel'", f"type(net).__name__ not in {BOTH}"),
        (
            "type(net).__name__ in ('DataParallel', 'DistributedDataParallel')",
            "type(net).__name__ in ('DataParallel', 'OneCardDataParallel', 'DistributedDataParallel')",
        ),
    ],
)  # fmt: skip
def test_a_test_for_the_very_class(before: str, after: str) -> None:
    check_rewrite(
        f"{HEAD}wrapped = {before}\n",
        f"{HEAD}wrapped = {after}\n",
        codes_applied=["NPU135"],
    )


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(net, nn.DataParallel)",
        "type(net) is nn.parallel.DistributedDataParallel",
        "type(net) is nn.Linear",
        "type(net) in KINDS",
        "net.name == 'DataParallel'",
        "net.__class__.__name__ == 'DistributedDataParallel'",
        "'DataParallel' in type(net).__name__",
        "type(net).__name__ in ('DataParallel', 'OneCardDataParallel')",
        "type(net) is type(other) is nn.DataParallel",
    ],
)
def test_other_tests_stay(test: str) -> None:
    check_noop(f"{HEAD}wrapped = {test}\n")


def test_a_function_of_the_name_type() -> None:
    check_noop(f"{HEAD}\n\ndef type(x):\n    return x\n\n\nwrapped = type(net) is nn.DataParallel\n")


@pytest.mark.parametrize("settings", [{"style": "portable"}, {"torch_version": "1.11"}])
def test_other_targets(settings: dict[str, str]) -> None:
    check_noop(f"{HEAD}wrapped = type(net) is nn.DataParallel\n", **settings)


def test_beside_the_class_that_goes_in() -> None:
    source = f"{HEAD}net = nn.DataParallel(net)\nif type(net) is nn.DataParallel:\n    net = net.module\n"
    after = migrate(source).data.decode()
    assert after.endswith(
        "net = OneCardDataParallel(net)\nif isinstance(net, nn.DataParallel):\n    net = net.module\n"
    )
