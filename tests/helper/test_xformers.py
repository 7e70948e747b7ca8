"""xformers' attention, its masks and its other functions, against their definitions in float64."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.helper.test_attention import by_definition, same_with_gradients, tensors  # noqa: E402
from transplt.helper import xformers_attention as xops  # noqa: E402
from transplt.helper import xformers_modules as modules  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("sizes", [(5, 5), (3, 7)])
@pytest.mark.parametrize(
    ("mask", "given"),
    [
        (None, {}),
        (xops.LowerTriangularMask(), {"causal": True, "top_left": True}),
        (xops.LowerTriangularFromBottomRightMask(), {"causal": True}),
        (xops.LowerTriangularFromBottomRightMask().make_local_attention(3), {"causal": True, "window": (2, 0)}),
        (xops.LocalAttentionFromBottomRightMask(1, 2), {"window": (1, 2)}),
    ],
)
def test_masks(mask: Any, given: dict[str, Any], sizes: tuple[int, int]) -> None:
    q, k, v = tensors(*sizes, 2, 2)
    found = xops.memory_efficient_attention(q, k, v, attn_bias=mask)
    same_with_gradients(found, by_definition(q, k, v, **given)[0], [q, k, v])
    assert mask is None or (mask.to("cpu") is mask and isinstance(mask, xops.AttentionBias))


@pytest.mark.parametrize("causal", [False, True])
def test_a_bias_is_added_and_has_gradients(causal: bool) -> None:
    q, k, v = tensors(4, 6, 2, 2)
    bias = torch.randn(2, 2, 4, 6, dtype=torch.float64, requires_grad=True)
    mask = xops.LowerTriangularMask().add_bias(bias) if causal else bias
    found = xops.memory_efficient_attention(q, k, v, mask, 0.0, 0.4)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * 0.4 + bias
    if causal:
        scores = scores.masked_fill(torch.ones(4, 6).triu(1).bool(), float("-inf"))
    expected = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
    same_with_gradients(found, expected, [q, k, v, bias])


def test_other_shapes() -> None:
    q, k, v = tensors(4, 6, 2, 2)
    bias = torch.randn(2, 4, 6, dtype=torch.float64)
    one = [each[:, :, 0] for each in (q, k, v)]
    found = xops.memory_efficient_attention(*one, attn_bias=bias)
    expected = (torch.einsum("bqd,bkd->bqk", one[0], one[1]) / 8**0.5 + bias).softmax(-1) @ one[2]
    same_with_gradients(found, expected, [q, k, v])
    groups = [each.unflatten(2, (1, 2)) for each in (q, k, v)]
    found = xops.memory_efficient_attention(*groups)
    same_with_gradients(found.flatten(2, 3), by_definition(q, k, v)[0], [q, k, v])
    wide = torch.randn(2, 6, 2, 11, dtype=torch.float64)
    assert xops.memory_efficient_attention(q, k, wide, op=(None, None)).shape == (2, 4, 2, 11)
    assert xops.memory_efficient_attention(q, k, v, output_dtype=torch.float32).dtype == torch.float32


def test_blocks() -> None:
    parts = [torch.randn(n, length, 2, 8, dtype=torch.float64, requires_grad=True) for n, length in ((2, 3), (1, 5))]
    mask, x = xops.BlockDiagonalMask.from_tensor_list(parts)
    assert x.shape == (1, 11, 2, 8) and mask.q_seqinfo.seqstart_py == [0, 3, 6, 11]
    for own, causal in ((mask, False), (mask.make_causal(), True), (mask.make_causal_from_bottomright(), True)):
        found = own.split(xops.memory_efficient_attention(x, x, x, own))
        for part, out in zip(parts, found, strict=True):
            same_with_gradients(out, by_definition(part, part, part, None, causal)[0], [part])


@pytest.mark.parametrize("causal", ["", "make_causal", "make_causal_from_bottomright"])
def test_blocks_of_other_lengths(causal: str) -> None:
    queries = [torch.randn(1, length, 2, 8, dtype=torch.float64, requires_grad=True) for length in (2, 3)]
    keys = [torch.randn(1, length, 2, 8, dtype=torch.float64, requires_grad=True) for length in (4, 3)]
    mask, q, k, v = xops.BlockDiagonalMask.from_tensor_lists_qkv(queries, keys, keys)
    own = getattr(mask, causal)() if causal else mask
    found = own.split_queries(xops.memory_efficient_attention(q, k, v, own))
    for one, other, out in zip(queries, keys, found, strict=True):
        expected = by_definition(one, other, other, None, bool(causal), top_left=causal == "make_causal")[0]
        same_with_gradients(out, expected, [one, other])
    assert [each.shape[1] for each in own.split_kv(k)] == [4, 3]
    same = xops.BlockDiagonalCausalMask.from_seqlens([2, 3], [2, 3])
    assert same.q_seqinfo is same.k_seqinfo and same.k_seqinfo.max_seqlen == 3


@pytest.mark.parametrize("pack", [True, False])
def test_swiglu(pack: bool) -> None:
    module = modules.SwiGLU(6, 5, bias=pack, _pack_weights=pack).double()
    names = ["w12", "w3"] if pack else ["w1", "w2", "w3"]
    parts = ["weight", "bias"] if pack else ["weight"]
    assert [*module.state_dict()] == [f"{name}.{part}" for name in names for part in parts]
    x = torch.randn(3, 6, dtype=torch.float64)
    state = module.state_dict()
    if pack:
        (w1, w2), (b1, b2) = state["w12.weight"].chunk(2), state["w12.bias"].chunk(2)
    else:
        w1, w2, b1, b2 = state["w1.weight"], state["w2.weight"], None, None
    inner = (torch.nn.functional.silu(x @ w1.T + (0 if b1 is None else b1))) * (x @ w2.T + (0 if b2 is None else b2))
    expected = inner @ state["w3.weight"].T + state.get("w3.bias", 0)
    torch.testing.assert_close(module(x), expected)
    torch.testing.assert_close(modules.swiglu(x, w1, b1, w2, b2, state["w3.weight"], state.get("w3.bias")), expected)


def test_rows_by_index() -> None:
    x, y = torch.randn(4, 3), torch.randn(5, 2)
    found = modules.index_select_cat([x, y], [torch.tensor([3, 0]), torch.tensor([1])])
    torch.testing.assert_close(found, torch.cat([x[[3, 0]].flatten(), y[1]]))
    source, scaling, before = torch.randn(2, 3), torch.randn(3), x.clone()
    same = modules.scaled_index_add(x, torch.tensor([2, 0]), source, scaling, alpha=0.5)
    before[[2, 0]] += 0.5 * scaling * source
    assert same is x
    torch.testing.assert_close(x, before)
