"""Sequences of several lengths, laid end to end: each attends to itself alone; padding out and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.helper.test_attention import by_definition, same_with_gradients  # noqa: E402
from transplt.helper import attention_varlen, padding  # noqa: E402
from transplt.helper.attention_varlen import flash_attn_unpadded_func, flash_attn_varlen_func  # noqa: E402
from transplt.helper.flash_classes import (  # noqa: E402
    FlashAttention,
    FlashCrossAttention,
    FlashMHA,
    FlashSelfAttention,
)

pytestmark = pytest.mark.torch
LENGTHS = [
    ([3, 5, 1], [3, 5, 1]),
    ([4, 4], [4, 4]),
    ([2, 0, 3], [4, 0, 3]),
    ([2, 3], [0, 5]),
    ([5, 2], [3, 2]),
    ([0, 0], [2, 1]),
    ([6], [6]),
]


def starts(lengths: list[int]) -> Any:
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def packed(queries: list[int], keys: list[int], heads: int = 4, kv_heads: int = 2) -> list[Any]:
    make = torch.Generator().manual_seed(sum(queries) * 10 + sum(keys))
    shapes = [(sum(queries), heads, 8), (sum(keys), kv_heads, 8), (sum(keys), kv_heads, 8)]
    return [torch.randn(shape, generator=make, dtype=torch.float64).requires_grad_() for shape in shapes]


def one_by_one(q: Any, k: Any, v: Any, queries: list[int], keys: list[int], **given: Any) -> tuple[Any, Any]:
    outs, sums = [], []
    slopes = given.pop("slopes", None)
    ends = zip(pairwise(starts(queries).tolist()), pairwise(starts(keys).tolist()), strict=True)
    for at, ((a, b), (c, d)) in enumerate(ends):
        if a == b:
            continue
        own = slopes[at] if slopes is not None and slopes.dim() == 2 else slopes
        out, total = by_definition(q[None, a:b], k[None, c:d], v[None, c:d], slopes=own, **given)
        outs.append(out[0] if d > c else torch.zeros(b - a, *q.shape[1:], dtype=q.dtype))
        sums.append(total[0])
    return torch.cat([q[:0], *outs]), torch.cat([q.new_zeros(q.shape[1], 0), *sums], 1)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("given", [{}, {"causal": True}, {"window": (1, 1)}, {"causal": True, "window": (1, -1)}])
def test_sequences_with_gradients(lengths: tuple[list[int], list[int]], given: dict[str, Any]) -> None:
    queries, keys = lengths
    q, k, v = packed(queries, keys)
    more = {"causal": given.get("causal", False), "window_size": given.get("window", (-1, -1))}
    found = flash_attn_varlen_func(q, k, v, starts(queries), starts(keys), max(queries), max(keys), **more)
    same_with_gradients(found, one_by_one(q, k, v, queries, keys, **given)[0], [q, k, v])


@pytest.mark.parametrize("slopes", [(4,), (3, 4)])
def test_slopes_of_the_sequences(slopes: tuple[int, ...]) -> None:
    lengths = [3, 5, 1]
    q, k, v = packed(lengths, lengths)
    values = torch.rand(slopes)
    found = flash_attn_varlen_func(q, k, v, *[starts(lengths)] * 2, 5, 5, causal=True, alibi_slopes=values)
    expected = one_by_one(q, k, v, lengths, lengths, causal=True, slopes=values.double())[0]
    same_with_gradients(found, expected, [q, k, v], 1e-6)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_sums_of_the_exponentials(lengths: tuple[list[int], list[int]]) -> None:
    queries, keys = lengths
    q, k, v = packed(queries, keys)
    out, total, weights = flash_attn_varlen_func(
        q, k, v, starts(queries), starts(keys), 9, 9, causal=True, return_attn_probs=True
    )
    expected, sums = one_by_one(q, k, v, queries, keys, causal=True)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(total, sums)
    assert weights.numel() == 0


def test_the_functions_of_flash_attn_1_begin_at_the_top_left() -> None:
    q, k, v = packed([2, 4], [5, 3])
    found = flash_attn_unpadded_func(q, k, v, starts([2, 4]), starts([5, 3]), 4, 5, 0.0, 0.7, True)
    expected = one_by_one(q, k, v, [2, 4], [5, 3], causal=True, scale=0.7, top_left=True)[0]
    same_with_gradients(found, expected, [q, k, v])


def test_packed_tensors() -> None:
    q, k, v = packed([3, 2], [3, 2], 2, 2)
    expected = one_by_one(q, k, v, [3, 2], [3, 2], causal=True)[0]
    both, three = torch.stack((k, v), 1), torch.stack((q, k, v), 1)
    ends = starts([3, 2])
    for name in ("varlen", "unpadded"):
        of_two = getattr(attention_varlen, f"flash_attn_{name}_kvpacked_func")
        same_with_gradients(of_two(q, both, ends, ends, 3, 3, 0.0, causal=True), expected, [q, k, v])
        of_three = getattr(attention_varlen, f"flash_attn_{name}_qkvpacked_func")
        same_with_gradients(of_three(three, ends, 3, 0.0, causal=True), expected, [q, k, v])


def test_blocks_of_a_cache() -> None:
    q, k, v = packed([2, 3], [5, 7])
    pages, table = torch.randn(6, 4, 2, 8, dtype=torch.float64), torch.tensor([[4, 1], [0, 3]], dtype=torch.int32)
    values = torch.randn_like(pages)
    for row, (a, b) in zip(table.tolist(), pairwise([0, 5, 12]), strict=True):
        for page, part in zip(row, ((a, min(a + 4, b)), (a + 4, b)), strict=True):
            pages[page, : part[1] - part[0]] = k[slice(*part)].detach()
            values[page, : part[1] - part[0]] = v[slice(*part)].detach()
    found = flash_attn_varlen_func(
        q, pages, values, starts([2, 3]), starts([5, 7]), 3, 7, causal=True, block_table=table
    )
    torch.testing.assert_close(found, one_by_one(q, k, v, [2, 3], [5, 7], causal=True)[0])


def test_the_lengths_are_read_once_until_somebody_writes_to_them() -> None:
    ends = starts([2, 3])
    assert attention_varlen.host_ends(ends) is attention_varlen.host_ends(ends)
    ends[-1] += 1
    assert attention_varlen.host_ends(ends) == [0, 2, 6]
    with torch.inference_mode():
        assert attention_varlen.host_ends(starts([1])) == [0, 1]


# --- padding ---------------------------------------------------------------------------------------------------------

MASK = [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]


@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float16])
def test_padding_out_and_back(kind: Any) -> None:
    mask = torch.tensor(MASK).to(kind)
    x = torch.randn(4, 4, 2, 3, dtype=torch.float64, requires_grad=True)
    rows, indices, ends, longest, used = padding.unpad_input(x, mask)
    kept = mask.bool()
    torch.testing.assert_close(rows, x[kept])
    assert indices.tolist() == [0, 1, 4, 5, 6, 7, 13, 15] and ends.tolist() == [0, 2, 6, 6, 8]
    assert longest == 4 and isinstance(longest, int) and used.tolist() == [2, 4, 0, 2]
    assert ends.dtype == used.dtype == torch.int32
    back = padding.pad_input(rows, indices, 4, 4)
    same_with_gradients(back, x * kept[:, :, None, None], [x])
    assert len(padding.unpad_input_of_four(x, mask)) == 4


def test_rows_that_are_there_and_not_used() -> None:
    mask, unused = torch.tensor([[1, 0, 0], [1, 1, 0]]), torch.tensor([[0, 1, 0], [0, 0, 0]])
    rows, indices, ends, longest, used = padding.unpad_input(torch.arange(6.0).reshape(2, 3, 1), mask, unused)
    assert rows.flatten().tolist() == [0, 1, 3, 4] and indices.tolist() == [0, 1, 3, 4]
    assert ends.tolist() == [0, 2, 4] and longest == 2 and used.tolist() == [1, 2]


def test_several_sequences_in_a_row() -> None:
    lengths = torch.tensor([[2, 3, 0, 0, 0, 0], [3, 2, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0]])
    rows, indices, ends, longest = padding.unpad_input_for_concatenated_sequences(torch.zeros(3, 6, 1), lengths)
    assert rows.shape == (16, 1) and indices.tolist() == [*range(5), *range(6, 11), *range(12, 18)]
    assert ends.tolist() == [0, 2, 5, 8, 10, 16] and longest == 6


def test_integers_by_index() -> None:
    ids = torch.tensor([[5], [6], [7]])
    assert padding.index_first_axis(ids, torch.tensor([2, 0])).tolist() == [[7], [5]]


# --- modules ---------------------------------------------------------------------------------------------------------


def test_modules() -> None:
    q, k, v = (torch.randn(2, 4, 2, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    qkv, kv = torch.stack((q, k, v), 2), torch.stack((k, v), 2)
    expected = by_definition(q, k, v, 0.5, True)[0]
    out, nothing = FlashAttention(softmax_scale=0.5)(qkv, causal=True)
    same_with_gradients(out, expected, [q, k, v])
    assert nothing is None
    same_with_gradients(FlashSelfAttention(True, 0.5)(qkv), expected, [q, k, v])
    same_with_gradients(FlashCrossAttention(softmax_scale=0.5)(q, kv, causal=True), expected, [q, k, v])
    ends = starts([4, 4])
    flat = [FlashAttention(softmax_scale=0.5)(qkv.flatten(0, 1), causal=True, cu_seqlens=ends, max_s=4)[0],
            FlashSelfAttention(True, 0.5)(qkv.flatten(0, 1), cu_seqlens=ends, max_seqlen=4),
            FlashCrossAttention(True, 0.5)(q.flatten(0, 1), kv.flatten(0, 1), None, ends, 4, ends, 4)]  # fmt: skip
    for each in flat:
        same_with_gradients(each, expected.flatten(0, 1), [q, k, v])


def test_a_mask_of_padding() -> None:
    q, k, v = (torch.randn(2, 4, 2, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    out, _ = FlashAttention()(torch.stack((q, k, v), 2), mask)
    short, whole = by_definition(q[:1, :3], k[:1, :3], v[:1, :3])[0], by_definition(q[1:], k[1:], v[1:])[0]
    torch.testing.assert_close(out, torch.cat((torch.nn.functional.pad(short, (0, 0, 0, 0, 0, 1)), whole)))


def test_the_parameters_of_flash_mha() -> None:
    module = FlashMHA(16, 2, causal=True).double()
    assert [*module.state_dict()] == ["Wqkv.weight", "Wqkv.bias", "out_proj.weight", "out_proj.bias"]
    x = torch.randn(2, 3, 16, dtype=torch.float64)
    out, weights = module(x)
    q, k, v = module.Wqkv(x).reshape(2, 3, 3, 2, 8).unbind(2)
    torch.testing.assert_close(out, module.out_proj(by_definition(q, k, v, None, True)[0].flatten(-2)))
    assert weights is None
