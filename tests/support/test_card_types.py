"""Types that operators of a card refuse, or that its AI CPU computes."""

from __future__ import annotations

import pytest

from transplt.rules.card_types import refusal, types_of
from transplt.rules.tables import read_table, rules_dir

#: (operator, argument, type) that CANN's source refuses on a 910B, with the function that does.
REFUSED = [
    ("polar", "abs", "float64", "aclnnPolar"),
    ("index.Tensor", "self", "complex64", "aclnnIndex"),
    ("index.Tensor", "self", "complex128", "aclnnIndex"),
    ("gather", "self", "complex64", "aclnnGather"),
    ("gather", "index", "float32", "aclnnGather"),
    ("cat", "tensors", "complex128", "aclnnCat"),
    ("expm1", "self", "float64", "aclnnExpm1"),
    ("silu", "self", "float64", "aclnnSilu"),
    ("max_pool2d_with_indices", "self", "float64", "aclnnMaxPool2dWithMask"),
    ("topk", "self", "bool", "aclnnTopk"),
    ("nll_loss_forward", "self", "float64", "aclnnNLLLoss"),
    ("masked_select", "self", "complex64", "aclnnMaskedSelect"),
    ("mm", "any", "float64", "aclnnMm"),
    ("convolution_overrideable", "any", "float64", "aclnnConvolution"),
]
#: What it takes: what is trained with, integers where programs have them, and views, which call no kernel.
TAKEN = [
    *(
        (operator, argument, dtype)
        for operator, argument in (
            ("add.Tensor", "self"), ("mul.Tensor", "other"), ("index.Tensor", "self"), ("cat", "tensors"),
            ("_softmax", "self"), ("embedding", "weight"), ("where.self", "self"), ("exp", "self"), ("mm", "any"),
            ("native_layer_norm", "any"), ("gelu.out", "self"), ("silu", "self"), ("sum.dim_IntList", "self"),
        )
        for dtype in ("float32", "float16", "bfloat16")
    ),
    ("mul.Tensor", "self", "complex64"), ("add.Tensor", "self", "complex64"), ("cat", "tensors", "complex64"),
    ("index.Tensor", "indices", "int64"), ("index.Tensor", "indices", "bool"), ("gather", "index", "int64"),
    ("embedding", "indices", "int32"), ("add.Tensor", "self", "int64"), ("add.Tensor", "self", "float64"),
    ("index.Tensor", "self", "int64"), ("topk", "self", "int64"), ("view_as_complex", "self", "float32"),
    ("view_as_real", "self", "complex64"), ("nothing_of_the_kind", "self", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "argument", "dtype", "function"), REFUSED)
def test_what_a_910b_refuses(operator: str, argument: str, dtype: str, function: str) -> None:
    row = refusal(operator, dtype, "910B", argument)
    assert row is not None and row.function == function and row.path in row.source


@pytest.mark.parametrize(("operator", "argument", "dtype"), TAKEN)
def test_what_it_takes(operator: str, argument: str, dtype: str) -> None:
    assert refusal(operator, dtype, "910B", argument) is None


def test_cards_differ() -> None:
    assert refusal("index.Tensor", "complex64", "910B") is not None
    assert refusal("index.Tensor", "complex64", "950") is None  # its list has complex64, and no complex128
    assert refusal("index.Tensor", "complex128", "950") is not None


def test_of_cards_that_take_another_way_nothing_is_said() -> None:
    assert types_of("index.Tensor", "910") == types_of("index.Tensor", "310P") == {}


def test_the_ai_cpu_computes_what_has_no_kernel_on_the_cores() -> None:
    assert {"float64", "complex64"} <= types_of("exp", "910B")["self"].on_cpu
    assert "float64" in types_of("mul.Tensor", "910B")["*"].on_cpu
    assert not types_of("exp", "910B")["self"].on_cpu & {"float32", "float16", "bfloat16"}


def test_a_refusal_names_the_list_of_its_source() -> None:
    row = refusal("polar", "complex64", "910B", "angle")
    assert row is not None and (row.argument, row.takes) == ("angle", ("float32",))


def test_no_row_refuses_and_computes_one_type() -> None:
    table = read_table("support/card_types.json")
    lists = [set(names.split()) for names in table["lists"]]
    for function, _, refuses, takes, on_cpu in table["rows"]:
        if refuses >= 0:
            assert takes < 0 or lists[refuses] - lists[takes], function
            assert on_cpu < 0 or not lists[refuses] & lists[on_cpu], function


def test_what_is_computed_with_takes_float32_but_where_a_list_says_otherwise() -> None:
    table = read_table("support/card_types.json")
    lists = [set(names.split()) for names in table["lists"]]
    refusing = set()
    for operator, arguments in table["operators"].items():
        for argument, by_cards in arguments.items():
            for row in by_cards.values():
                _, _, refuses, takes, _ = table["rows"][row]
                if argument not in table["places"] and refuses >= 0 and "float32" in lists[refuses]:
                    assert takes >= 0 and "float32" not in lists[takes], (operator, argument)
                    refusing.add(operator.partition(".")[0].rstrip("_"))
    assert {"bitwise_and", "gcd"} <= refusing and not refusing & {"add", "mm", "index", "cat", "_softmax"}


def test_the_table_is_small_and_names_its_sources() -> None:
    assert (rules_dir() / "support" / "card_types.json").stat().st_size < 400_000
    meta = read_table("support/card_types.json")["_meta"]
    assert set(meta["sources"]) == {"Ascend/op-plugin", "hicann/ops-nn", "hicann/ops-math"} and meta["licence"]
