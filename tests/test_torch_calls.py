"""Which operators a call of torch runs: rules/support/torch_calls.json against the torch that is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from transplt.rules.tables import read_table
from transplt.rules.torch_calls import operators_by_last_name, overloads_of, real_only

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("torch.gather", ["gather"]),
        ("torch.Tensor.max", ["max.other", "max", "max.dim"]),
        ("torch.matmul", ["mm", "bmm", "mv", "dot"]),
        ("torch.nn.functional.softmax", ["_softmax"]),
        ("torch.nn.functional.gelu", ["gelu"]),
        # not the operator of that name, or none at all
        ("torch.nn.functional.max", []),
        ("torch.linalg.max", []),
        ("torch.cuda.gather", []),
        ("torch.load", []),
        ("gather", []),
    ],
)
def test_operators_of_a_name(name: str, operators: list[str]) -> None:
    assert [each.operator for each in overloads_of(name)] == operators


def test_what_an_overload_takes() -> None:
    (select,) = overloads_of("torch.index_select")
    assert [(each.name, each.kind, each.optional) for each in select.parameters] == [
        ("self", "", False), ("dim", "#", False), ("index", "", False),
    ]  # fmt: skip


@pytest.mark.parametrize(("operator", "real"), [("polar", True), ("max.dim", True), ("clamp_", True), ("mm", False)])
def test_operators_of_real_numbers(operator: str, real: bool) -> None:
    assert real_only(operator) is real


def test_last_names() -> None:
    assert operators_by_last_name()["sort"] == {"sort", "sort.stable"}
    assert "index.Tensor" in operators_by_last_name()["index"]


@pytest.mark.torch
def test_the_table_is_that_of_the_installed_torch() -> None:
    torch = pytest.importorskip("torch")
    from build_torch_calls import operators

    table = read_table("support/torch_calls.json")
    if table["_meta"]["source"].split()[3].rstrip(",") != torch.__version__.partition("+")[0]:
        pytest.skip("another torch")
    assert operators(read_table("support/card_types.json")) == table["operators"]
