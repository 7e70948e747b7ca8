"""flash-attn's functions as npu_port has them, against softmax(q k^T) v written from the definition, in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transplt.helper.attention import flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func  # noqa: E402

pytestmark = pytest.mark.torch
SIZES = [(5, 5), (3, 7), (7, 3), (1, 6), (6, 1)]
WINDOWS = [(-1, -1), (2, 0), (2, 1), (0, 0), (-1, 2), (3, -1), (1, 4)]


def by_definition(
    q: Any, k: Any, v: Any, scale: float | None = None, causal: bool = False, window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0, slopes: Any = None, top_left: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(out, logarithm of the sum) in loops over batch, head and query: a key is skipped or it is not."""
    batch, queries, heads, size = q.shape
    keys = k.shape[1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    rows, sums = [], []
    for b in range(batch):
        for i in range(queries):
            for h in range(heads):
                kv = h * k.shape[2] // heads
                place = i if top_left else i + keys - queries
                left, right = window[0], 0 if causal else window[1]
                visible = [
                    j for j in range(keys)
                    if (left < 0 or j >= place - left) and (right < 0 or j <= place + right)
                ]  # fmt: skip
                if not visible:
                    rows.append(v[b, 0, 0] * 0 if keys else q[b, 0, 0] * 0)
                    sums.append(torch.tensor(math.inf, dtype=q.dtype))
                    continue
                scores = torch.stack([(q[b, i, h] * k[b, j, kv]).sum() * scale for j in visible])
                if softcap:
                    scores = softcap * torch.tanh(scores / softcap)
                if slopes is not None:
                    slope = slopes.expand(batch, heads)[b, h]
                    scores = scores - slope * torch.tensor([abs(place - j) for j in visible], dtype=q.dtype)
                weights = torch.softmax(scores, 0)
                rows.append(sum(weight * v[b, j, kv] for weight, j in zip(weights, visible, strict=True)))
                sums.append(torch.logsumexp(scores, 0))
    out = torch.stack(rows).reshape(batch, queries, heads, -1)
    return out, torch.stack(sums).reshape(batch, queries, heads).transpose(1, 2)


def tensors(queries: int, keys: int, heads: int = 4, kv_heads: int = 2, dtype: Any = torch.float64) -> list[Any]:
    make = torch.Generator().manual_seed(queries * 10 + keys)
    shapes = [(2, queries, heads, 8), (2, keys, kv_heads, 8), (2, keys, kv_heads, 8)]
    return [torch.randn(shape, generator=make, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def same_with_gradients(found: Any, expected: Any, leaves: list[Any], close: float = 1e-9) -> None:
    """Two results are the same, and so are their gradients."""
    make = torch.Generator().manual_seed(0)
    factor = torch.randn(expected.shape, generator=make, dtype=torch.float64).to(found.dtype)
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=close, atol=close)
    assert found.is_contiguous(), "programs take views of it"
    own = torch.autograd.grad((found * factor).sum(), leaves, allow_unused=True, retain_graph=True)
    wanted = torch.autograd.grad((expected * factor).sum(), leaves, allow_unused=True, retain_graph=True)
    for leaf, one, other in zip(leaves, own, wanted, strict=True):
        gradients = [torch.zeros_like(leaf) if each is None else each for each in (one, other)]
        torch.testing.assert_close(*gradients, rtol=close, atol=close)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
def test_masks_and_gradients(sizes: tuple[int, int], causal: bool, window: tuple[int, int]) -> None:
    q, k, v = tensors(*sizes)
    found = flash_attn_func(q, k, v, causal=causal, window_size=window)
    same_with_gradients(found, by_definition(q, k, v, None, causal, window)[0], [q, k, v])


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 1), (6, 3)])
def test_heads_that_share_keys(heads: int, kv_heads: int) -> None:
    q, k, v = tensors(4, 6, heads, kv_heads)
    found = flash_attn_func(q, k, v, 0.0, 0.3, True)
    same_with_gradients(found, by_definition(q, k, v, 0.3, True)[0], [q, k, v])


@pytest.mark.parametrize("slopes", [(4,), (2, 4)])
@pytest.mark.parametrize("sizes", SIZES)
def test_alibi(slopes: tuple[int, ...], sizes: tuple[int, int]) -> None:
    q, k, v = tensors(*sizes)
    values = torch.rand(slopes, generator=torch.Generator().manual_seed(1))
    found = flash_attn_func(q, k, v, causal=True, alibi_slopes=values)
    expected = by_definition(q, k, v, None, True, slopes=values.double())[0]
    same_with_gradients(found, expected, [q, k, v], 1e-6)


def test_softcap() -> None:
    q, k, v = tensors(4, 6)
    found = flash_attn_func(q, k, v, softmax_scale=2.0, softcap=1.5, window_size=(1, 1))
    same_with_gradients(found, by_definition(q, k, v, 2.0, False, (1, 1), 1.5)[0], [q, k, v])


@pytest.mark.parametrize("sizes", SIZES)
def test_sums_of_the_exponentials(sizes: tuple[int, int]) -> None:
    q, k, v = tensors(*sizes)
    out, total, weights = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    expected, sums = by_definition(q, k, v, None, True)
    same_with_gradients(out, expected, [q, k, v])
    torch.testing.assert_close(total, sums)
    assert total.shape == (2, 4, sizes[0]) and not total.requires_grad and weights.numel() == 0


def test_packed() -> None:
    q, k, v = tensors(5, 5, 2, 2)
    expected = by_definition(q, k, v, None, True)[0]
    same_with_gradients(flash_attn_qkvpacked_func(torch.stack((q, k, v), 2), causal=True), expected, [q, k, v])
    q, k, v = tensors(3, 5)
    expected = by_definition(q, k, v, None, True)[0]
    same_with_gradients(flash_attn_kvpacked_func(q, torch.stack((k, v), 2), causal=True), expected, [q, k, v])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("given", [{}, {"causal": True}, {"window_size": (2, 1)}, {"alibi_slopes": torch.rand(4)}])
def test_half_precision(dtype: Any, given: dict[str, Any]) -> None:
    """The result has the dtype of the query, and differs from that of float64 by its rounding."""
    halves = tensors(5, 7, dtype=dtype)
    found = flash_attn_func(*halves, **given)
    window, slopes = given.get("window_size", (-1, -1)), given.get("alibi_slopes")
    q, k, v = (each.detach().double() for each in halves)
    expected = by_definition(q, k, v, None, given.get("causal", False), window, slopes=slopes)[0]
    assert found.dtype == dtype and found.shape == q.shape
    torch.testing.assert_close(found.double(), expected, rtol=2e-2, atol=2e-2)


def test_alibi_at_a_distance_keeps_its_precision() -> None:
    """In bfloat16 a bias of some hundreds would be rounded to multiples of 2."""
    q, k, v = (torch.randn(1, 700, 1, 8, generator=torch.Generator().manual_seed(2)).bfloat16() for _ in range(3))
    slopes = torch.tensor([0.7])
    found = flash_attn_func(q[:, -1:], k, v, causal=True, alibi_slopes=slopes)
    expected = by_definition(q[:, -1:].double(), k.double(), v.double(), None, True, slopes=slopes.double())[0]
    torch.testing.assert_close(found.double(), expected, rtol=1e-2, atol=1e-2)


def test_dropout() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 64, 4, 8) for _ in range(3))
    kept = flash_attn_func(q, k, torch.ones_like(v), dropout_p=0.25)
    assert kept.mean().item() == pytest.approx(1.0, abs=0.02) and kept.std().item() > 0.01
    out, _, weights = flash_attn_func(q, k, v, dropout_p=0.25, return_attn_probs=True)
    assert (weights < 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    expected = weights.clamp(min=0) / 0.75 @ v.transpose(1, 2)
    torch.testing.assert_close(out, expected.transpose(1, 2))
    torch.testing.assert_close(weights.abs().sum(-1), torch.ones(2, 4, 64))


def test_queries_without_keys_get_zero() -> None:
    q, k, v = tensors(3, 5)
    out = flash_attn_func(q, k[:, :0], v[:, :0])
    assert out.shape == q.shape and not out.any()
    out.sum().backward()
    assert not q.grad.any()
