"""What goes to torch_npu's fused attention on an NPU, against its published signature and constraints.

The operator is the emulated one behind a stub that checks each argument; no card has run this.
Source: op-plugin 12c385b, docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, torch

pytestmark = pytest.mark.torch


def checked(calls: list[Any]) -> None:
    """Put the stub in the place of the operator; what each call gives is noted in `calls`."""
    import torch_npu

    inner = torch_npu.npu_fusion_attention

    def npu_fusion_attention(
        query: Any, key: Any, value: Any, head_num: int, input_layout: str, pse: Any = None, padding_mask: Any = None,
        atten_mask: Any = None, scale: float = 1.0, keep_prob: float = 1.0, pre_tockens: int = 2147483647,
        next_tockens: int = 2147483647, inner_precise: int = 0, prefix: Any = None, actual_seq_qlen: Any = None,
        actual_seq_kvlen: Any = None, sparse_mode: int = 0, gen_mask_parallel: bool = True, sync: bool = False,
        softmax_layout: str = "",
    ) -> Any:  # fmt: skip
        for each in (query, key, value):
            assert each.device.type == "npu" and each.dtype in (torch.float16, torch.bfloat16)
            assert each.dtype == query.dtype and 1 <= each.shape[-1] <= 768
        assert key.shape == value.shape and key.shape[-1] == query.shape[-1]
        assert type(head_num) is int and head_num == query.shape[-2] <= 256 and head_num % key.shape[-2] == 0
        assert type(scale) is float and type(keep_prob) is float and 0 < keep_prob <= 1
        assert type(sparse_mode) is int and sparse_mode in (0, 2, 3, 4)
        if sparse_mode:
            assert atten_mask.dtype == torch.bool and tuple(atten_mask.shape) == (2048, 2048)
            assert atten_mask.cpu().equal(torch.ones(2048, 2048, dtype=torch.bool).triu(1))
        else:
            assert atten_mask is None
        if sparse_mode == 4:
            assert type(pre_tockens) is int and type(next_tockens) is int and pre_tockens >= 0 and next_tockens >= 0
        if input_layout == "BSND":
            assert query.dim() == key.dim() == 4 and query.shape[0] == key.shape[0] and key.shape[1] >= 1
            assert actual_seq_qlen is None and actual_seq_kvlen is None
            if sparse_mode in (3, 4):
                assert query.shape[1] <= key.shape[1] + (next_tockens if sparse_mode == 4 else 0)
        else:
            assert input_layout == "TND" and query.dim() == key.dim() == 3
            assert len(actual_seq_qlen) == len(actual_seq_kvlen) <= 1024
            for ends, tensor in ((actual_seq_qlen, query), (actual_seq_kvlen, key)):
                assert all(type(each) is int for each in ends) and ends[-1] == tensor.shape[0]
                assert all(a < b for a, b in zip([0, *ends], ends, strict=False))
            if sparse_mode in (3, 4):
                both = (actual_seq_qlen, actual_seq_kvlen)
                own, others = ([b - a for a, b in zip([0, *ends], ends, strict=False)] for ends in both)
                more = next_tockens if sparse_mode == 4 else 0
                assert all(a <= b + more for a, b in zip(own, others, strict=True))
        assert pse is None and padding_mask is None and prefix is None and inner_precise == 0
        calls.append([input_layout, sparse_mode, keep_prob, pre_tockens, next_tockens])
        return inner(query, key, value, head_num, input_layout, atten_mask=atten_mask, scale=scale, keep_prob=keep_prob,
                     pre_tockens=pre_tockens, next_tockens=next_tockens, actual_seq_qlen=actual_seq_qlen,
                     actual_seq_kvlen=actual_seq_kvlen, sparse_mode=sparse_mode)  # fmt: skip

    torch_npu.npu_fusion_attention = npu_fusion_attention


def compared(function: Any, given: list[Any], more: dict[str, Any]) -> float:
    """The largest difference of results and gradients between NPU and CPU, as a share of the largest number."""
    found = []
    for place in ("cpu", "npu"):
        torch.manual_seed(0)
        own = [each.detach().to(place).requires_grad_() if torch.is_floating_point(each) else each.to(place)
               for each in given]  # fmt: skip
        moved = {name: value.to(place) if torch.is_tensor(value) else value for name, value in more.items()}
        out = function(*own, **moved)
        assert out.is_contiguous()
        leaves = [each for each in own if each.requires_grad]
        slopes = torch.autograd.grad(out.float().square().sum(), leaves, allow_unused=True)
        found.append([out, *(leaf * 0 if each is None else each for leaf, each in zip(leaves, slopes, strict=True))])
    pairs = [(a.float(), b.float().cpu()) for a, b in zip(*found, strict=True) if a.numel()]
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1)) for a, b in pairs)


def half(*shapes: tuple[int, ...]) -> list[Any]:
    make = torch.Generator().manual_seed(len(shapes[0]) + shapes[0][1])
    return [torch.randn(shape, generator=make).bfloat16() for shape in shapes]


def batches() -> Any:
    from transplt.helper.attention import flash_attn_func

    calls: list[Any] = []
    checked(calls)
    found = []
    cases: list[tuple[int, int, dict[str, Any]]] = [
        (6, 6, {}), (6, 6, {"causal": True}), (4, 7, {"causal": True}), (7, 4, {"causal": True}),
        (6, 6, {"window_size": (2, 1)}), (7, 4, {"window_size": (2, 1)}), (6, 6, {"window_size": (2, -1)}),
        (6, 6, {"causal": True, "window_size": (3, 0)}), (6, 6, {"window_size": (9, 9)}), (1, 6, {"causal": True}),
        (6, 6, {"softmax_scale": 2}), (6, 6, {"softcap": 2.0}), (2, 0, {}),
        (6, 6, {"alibi_slopes": torch.tensor([0.5, 1, 0.2, 2])}),
    ]  # fmt: skip
    for queries, keys, given in cases:
        before = len(calls)
        error = compared(flash_attn_func, half((2, queries, 4, 8), (2, keys, 2, 8), (2, keys, 2, 8)), given)
        found.append([error, calls[before:]])
    return found


def test_batches() -> None:
    (found,) = each_rank(batches, 1, host="npu")
    everything = 2147483647
    band = [[["BSND", 4, 1.0, *sides]] for sides in ((2, 1), (2, 1), (2, everything), (3, 0))]
    plain, corner = [["BSND", 0, 1.0, everything, everything]], [["BSND", 3, 1.0, everything, everything]]
    assert [calls for _, calls in found] == [plain, corner, corner, corner, *band, plain, plain, plain, [], [], []]
    assert max(error for error, _ in found) < 0.02


def sequences() -> Any:
    from transplt.helper.attention_varlen import flash_attn_unpadded_func, flash_attn_varlen_func

    calls: list[Any] = []
    checked(calls)
    found = []
    cases: list[tuple[list[int], list[int], dict[str, Any]]] = [
        ([3, 5, 1], [3, 5, 1], {}), ([3, 0, 5], [3, 0, 5], {"causal": True}), ([2, 1], [4, 3], {"causal": True}),
        ([3, 5], [3, 5], {"window_size": (1, 1)}), ([4, 1], [3, 3], {"causal": True}), ([2, 2], [0, 3], {}),
    ]  # fmt: skip
    for queries, keys, given in cases:
        ends = [torch.tensor([0, *each]).cumsum(0).int() for each in (queries, keys)]
        shapes = half((sum(queries), 4, 8), (sum(keys), 2, 8), (sum(keys), 2, 8))
        before = len(calls)
        error = compared(
            lambda q, k, v, ends=ends, **more: flash_attn_varlen_func(q, k, v, *ends, 5, 5, **more), shapes, given
        )
        found.append([error, [call[:2] for call in calls[before:]]])
    ends = [torch.tensor(each).int() for each in ([0, 3, 5], [0, 1, 6])]
    shapes = half((5, 4, 8), (6, 4, 8), (6, 4, 8))
    before = len(calls)
    error = compared(lambda q, k, v: flash_attn_unpadded_func(q, k, v, *ends, 3, 5, 0.0, None, True), shapes, {})
    found.append([error, [call[:2] for call in calls[before:]]])
    return found


def test_sequences() -> None:
    (found,) = each_rank(sequences, 1, host="npu")
    apart = [["BSND", 3], ["BSND", 0]]
    expected = [[["TND", 0]], [["TND", 3]], [["TND", 3]], [["TND", 4]], apart, [["BSND", 0]], [["TND", 2]]]
    assert [calls for _, calls in found] == expected
    assert max(error for error, _ in found) < 0.02


def xformers() -> Any:
    from transplt.helper import xformers_attention as xops

    calls: list[Any] = []
    checked(calls)
    found = []
    blocks = xops.BlockDiagonalMask.from_seqlens([2, 4])
    for mask in (None, xops.LowerTriangularMask(), blocks, blocks.make_causal()):
        before = len(calls)
        error = compared(
            lambda q, k, v, mask=mask: xops.memory_efficient_attention(q, k, v, mask), half(*[(1, 6, 2, 8)] * 3), {}
        )
        found.append([error, [call[:2] for call in calls[before:]]])
    return found


def test_masks_of_xformers() -> None:
    (found,) = each_rank(xformers, 1, host="npu")
    assert [calls for _, calls in found] == [[["BSND", 0]], [["BSND", 3]], [["TND", 0]], [["TND", 2]]]
    assert max(error for error, _ in found) < 0.02


def others() -> Any:
    """What does not go to the operator, computed on the emulated card, and dropout, which does."""
    from transplt.helper.attention import flash_attn_func
    from transplt.helper.attention_cache import flash_attn_with_kvcache
    from transplt.helper.padding import pad_input, unpad_input
    from transplt.helper.rotary import RotaryEmbedding

    calls: list[Any] = []
    checked(calls)
    q, k, v = (each.npu() for each in half(*[(2, 6, 4, 8)] * 3))
    torch.manual_seed(0)
    dropped = flash_attn_func(q, k, torch.ones_like(v), dropout_p=0.5)
    wide = flash_attn_func(q.float(), k.float(), v.float())
    cached = flash_attn_with_kvcache(q[:, :1], k, v, cache_seqlens=torch.tensor([3, 6]).npu(), causal=True)
    rows, indices, _, _, _ = unpad_input(q, torch.tensor([[1] * 4 + [0] * 2, [1] * 6]).npu())
    back = pad_input(rows, indices, 2, 6)
    turned = RotaryEmbedding(8, device="npu")(torch.stack((q, k, v), 2))
    return [
        [call[0] for call in calls], calls[0][2], abs(dropped.float().mean().item() - 1) < 0.2, wide.dtype.itemsize,
        [*cached.shape], [*rows.shape], [*back.shape], [*turned.shape],
    ]  # fmt: skip


def test_others() -> None:
    (found,) = each_rank(others, 1, host="npu")
    assert found == [["BSND"], 0.5, True, 4, [2, 1, 4, 8], [10, 4, 8], [2, 6, 4, 8], [2, 6, 3, 4, 8]]
