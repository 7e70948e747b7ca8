"""Attention to a cache; rotary embeddings; the normalisation of flash-attn."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.helper.test_attention import by_definition, same_with_gradients  # noqa: E402
from transplt.helper import rotary  # noqa: E402
from transplt.helper.attention_cache import flash_attn_with_kvcache  # noqa: E402
from transplt.helper.norms import RMSNorm, rms_norm  # noqa: E402

pytestmark = pytest.mark.torch


def drawn(*shapes: tuple[int, ...]) -> list[Any]:
    make = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return [torch.randn(shape, generator=make, dtype=torch.float64) for shape in shapes]


def turned(x: Any, cos: Any, sin: Any, places: list[list[int]], interleaved: bool) -> Any:
    """Pairs of numbers turned by the angle of their place, one by one."""
    out, half = x.clone(), cos.shape[1]
    for b, row in enumerate(places):
        for s, place in enumerate(row):
            for d in range(half):
                one, two = (2 * d, 2 * d + 1) if interleaved else (d, d + half)
                c, w = cos[place, d], sin[place, d]
                out[b, s, :, one] = x[b, s, :, one] * c - x[b, s, :, two] * w
                out[b, s, :, two] = x[b, s, :, one] * w + x[b, s, :, two] * c
    return out


def tables(length: int, half: int) -> tuple[Any, Any]:
    angles = torch.outer(torch.arange(length, dtype=torch.float64), 100.0 ** -torch.linspace(0, 1, half).double())
    return angles.cos(), angles.sin()


@pytest.mark.parametrize("used", [0, 3, "lengths"])
@pytest.mark.parametrize("given", [{}, {"causal": True}, {"window_size": (2, 0)}, {"alibi": True, "causal": True}])
@pytest.mark.parametrize("turn", [False, True])
def test_new_keys_go_into_the_cache(used: Any, given: dict[str, Any], turn: bool) -> None:
    q, keys, values, k, v = drawn((2, 2, 4, 8), (2, 9, 2, 8), (2, 9, 2, 8), (2, 2, 2, 8), (2, 2, 2, 8))
    lengths = [4, 1] if used == "lengths" else [used, used]
    sent = torch.tensor(lengths, dtype=torch.int32) if used == "lengths" else used
    given = dict(given)
    slopes = torch.rand(4) if given.pop("alibi", False) else None
    cos, sin = tables(12, 3)
    own, added = q, k
    local = given.get("causal") or "window_size" in given
    if turn:
        own = turned(q, cos, sin, [[n, n + 1] if local else [n, n] for n in lengths], True)
        added = turned(k, cos, sin, [[n, n + 1] for n in lengths], True)
        given.update(rotary_cos=cos, rotary_sin=sin)
    before = keys.clone()
    found, sums = flash_attn_with_kvcache(
        q, keys, values, k, v, cache_seqlens=sent, alibi_slopes=slopes, return_softmax_lse=True, **given
    )
    for b, n in enumerate(lengths):
        torch.testing.assert_close(keys[b, n : n + 2], added[b], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(keys[b, :n], before[b, :n])
        end = n + 2
        expected, total = by_definition(
            own[b : b + 1], keys[b : b + 1, :end], values[b : b + 1, :end], None, given.get("causal", False),
            given.get("window_size", (-1, -1)), slopes=None if slopes is None else slopes.double(),
        )  # fmt: skip
        torch.testing.assert_close(found[b], expected[0], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(sums[b], total[0], rtol=1e-6, atol=1e-6)


def test_a_number_and_a_tensor_say_the_same() -> None:
    q, keys, values = drawn((2, 1, 4, 8), (2, 9, 2, 8), (2, 9, 2, 8))
    one = flash_attn_with_kvcache(q, keys, values, cache_seqlens=5, causal=True)
    other = flash_attn_with_kvcache(q, keys, values, cache_seqlens=torch.tensor([5, 5]), causal=True)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one, by_definition(q, keys[:, :5], values[:, :5])[0])
    whole = flash_attn_with_kvcache(q, keys, values)
    torch.testing.assert_close(whole, by_definition(q, keys, values)[0])


def test_entries_padding_and_blocks() -> None:
    q, keys, values = drawn((2, 1, 4, 8), (3, 9, 2, 8), (3, 9, 2, 8))
    entries, lengths, pads = (torch.tensor(each, dtype=torch.int32) for each in ([2, 0], [6, 4], [1, 3]))
    found = flash_attn_with_kvcache(
        q, keys, values, cache_seqlens=lengths, cache_batch_idx=entries, cache_leftpad=pads, causal=True
    )
    for b, (entry, end, pad) in enumerate(((2, 6, 1), (0, 4, 3))):
        expected = by_definition(q[b : b + 1], keys[entry : entry + 1, pad:end], values[entry : entry + 1, pad:end])[0]
        torch.testing.assert_close(found[b], expected[0])
    pages, more, k, v = drawn((5, 4, 2, 8), (5, 4, 2, 8), (2, 1, 2, 8), (2, 1, 2, 8))
    table = torch.tensor([[3, 1], [0, 4]], dtype=torch.int32)
    found = flash_attn_with_kvcache(
        q, pages, more, k, v, cache_seqlens=torch.tensor([4, 2]), block_table=table, causal=True
    )
    torch.testing.assert_close(pages[1, 0], k[0, 0])
    torch.testing.assert_close(pages[0, 2], k[1, 0])
    own = [(torch.cat((x[3], x[1]))[None, :5], torch.cat((x[0], x[4]))[None, :3]) for x in (pages, more)]
    for b in (0, 1):
        torch.testing.assert_close(found[b], by_definition(q[b : b + 1], own[0][b], own[1][b])[0][0])


def test_no_gradients_and_what_cannot_be_said() -> None:
    q, keys, values, k, v = drawn((1, 1, 2, 8), (1, 4, 2, 8), (1, 4, 2, 8), (1, 1, 2, 8), (1, 1, 2, 8))
    assert not flash_attn_with_kvcache(q.requires_grad_(), keys, values).requires_grad
    cos, sin = tables(4, 2)
    with pytest.raises(NotImplementedError, match="cache_leftpad"):
        flash_attn_with_kvcache(q, keys, values, k, v, cos, sin, 1, None, torch.tensor([0]))


# --- rotary embeddings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_pairs_are_turned(interleaved: bool) -> None:
    (x,), (cos, sin) = drawn((2, 3, 2, 8)), tables(9, 3)
    x.requires_grad_()
    for offset, places in ((0, [[0, 1, 2]] * 2), (4, [[4, 5, 6]] * 2), (torch.tensor([1, 5]), [[1, 2, 3], [5, 6, 7]])):
        found = rotary.apply_rotary_emb(x, cos, sin, interleaved, seqlen_offsets=offset)
        same_with_gradients(found, turned(x, cos, sin, places, interleaved), [x])
    plain = rotary.apply_rotary_emb_torch(x, cos[:3], sin[:3], interleaved)
    same_with_gradients(plain, turned(x, cos, sin, [[0, 1, 2]] * 2, interleaved), [x])


def test_sequences_of_several_lengths_are_turned() -> None:
    (x,), (cos, sin) = drawn((5, 2, 8)), tables(9, 4)
    ends = torch.tensor([0, 3, 3, 5], dtype=torch.int32)
    for offset, places in ((0, [0, 1, 2, 0, 1]), (torch.tensor([2, 0, 4]), [2, 3, 4, 4, 5])):
        found = rotary.apply_rotary_emb(x, cos, sin, seqlen_offsets=offset, cu_seqlens=ends, max_seqlen=3)
        torch.testing.assert_close(found, turned(x[None], cos, sin, [places], False)[0])


def test_in_place() -> None:
    (x,), (cos, sin) = drawn((1, 3, 2, 8)), tables(9, 4)
    expected = turned(x, cos, sin, [[0, 1, 2]], False)
    own = x.clone().requires_grad_()
    y = own * 1
    found = rotary.apply_rotary_emb(y, cos, sin, inplace=True)
    same_with_gradients(found, turned(own, cos, sin, [[0, 1, 2]], False), [own])
    torch.testing.assert_close(y.detach(), expected)


def test_half_precision_is_turned_in_float32() -> None:
    (x,), (cos, sin) = drawn((1, 3, 2, 8)), tables(9, 4)
    found = rotary.apply_rotary_emb(x.bfloat16(), cos.bfloat16(), sin.bfloat16())
    expected = turned(x.bfloat16().double(), cos.bfloat16().double(), sin.bfloat16().double(), [[0, 1, 2]], False)
    torch.testing.assert_close(found, expected.bfloat16())


@pytest.mark.parametrize("scale_base", [None, 512.0])
def test_the_module(scale_base: float | None) -> None:
    module = rotary.RotaryEmbedding(6, 100.0, scale_base=scale_base)
    assert not module.state_dict()
    (qkv,) = drawn((2, 4, 3, 2, 8))
    angles = torch.outer(torch.arange(6).float(), 1 / 100.0 ** (torch.arange(0, 6, 2).float() / 6))
    power = torch.ones(6, 3)
    if scale_base:
        power = ((torch.arange(0, 6, 2).float() + 2.4) / 8.4) ** ((torch.arange(6) - 3) / scale_base)[:, None]
    cos, sin, places = angles.cos(), angles.sin(), [[2, 3, 4, 5]] * 2
    expected = torch.stack((
        turned(qkv[:, :, 0], cos * power, sin * power, places, False),
        turned(qkv[:, :, 1], cos / power, sin / power, places, False), qkv[:, :, 2]), 2)  # fmt: skip
    given = qkv.clone()
    found = module(given, seqlen_offset=2)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given, found)
    q, kv = module(qkv[:, :, 0].clone(), qkv[:, :, 1:].clone(), seqlen_offset=2)
    torch.testing.assert_close(torch.cat((q[:, :, None], kv), 2), expected, rtol=1e-5, atol=1e-5)
    together = torch.cat((qkv[:, :, 0], qkv[:, :, 1, :1], qkv[:, :, 2, :1]), 2)
    found = module(together, seqlen_offset=2, num_heads_q=2)
    torch.testing.assert_close(found[:, :, :2], expected[:, :, 0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[:, :, 2], expected[:, :, 1, 0], rtol=1e-5, atol=1e-5)


def test_normalisation() -> None:
    (x,) = drawn((2, 3, 8))
    weight = torch.rand(8, dtype=torch.float64)
    expected = torch.stack([row / math.sqrt((row**2).mean() + 1e-5) * weight for row in x.reshape(-1, 8)])
    torch.testing.assert_close(rms_norm(x, weight, 1e-5), expected.reshape(x.shape))
    module = RMSNorm(8)
    assert [*module.state_dict()] == ["weight"] and module(x.bfloat16()).dtype == torch.bfloat16
