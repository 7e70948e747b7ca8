"""The reference operators against their documented formulas, written out here in another way."""

import math

import torch
import torch.nn.functional as F
import torch_npu

torch.manual_seed(0)


def same(a, b, tolerance=1e-5):
    torch.testing.assert_close(a.cpu(), b.cpu(), rtol=tolerance, atol=tolerance)


def raises(kind, words, function):
    try:
        function()
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"did not raise: {words}")


def attention_by_rows(q, k, v, scale, allowed):
    """softmax over the allowed keys of each query, with loops; q, k, v: (heads, length, size)."""
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[2])
    for h in range(q.shape[0]):
        for i in range(q.shape[1]):
            keys = [j for j in range(k.shape[1]) if allowed(i, j)]
            weights = [math.exp(scale * float(q[h, i] @ k[h, j])) for j in keys]
            for w, j in zip(weights, keys, strict=True):
                out[h, i] += w / sum(weights) * v[h, j]
    return out


def check_attention():
    b, n, s, t, d = 2, 4, 5, 7, 8
    q, k, v = torch.randn(b, n, s, d), torch.randn(b, n, t, d), torch.randn(b, n, t, d)
    scale = d**-0.5
    want = F.scaled_dot_product_attention(q, k, v, scale=scale)
    layouts = {
        "BNSD": lambda x: x,
        "BSND": lambda x: x.transpose(1, 2),
        "BSH": lambda x: x.transpose(1, 2).flatten(2),
        "SBH": lambda x: x.permute(2, 0, 1, 3).flatten(2),
    }
    for name, change in layouts.items():
        args = [change(x).contiguous().npu() for x in (q, k, v)]
        out = torch_npu.npu_fusion_attention(*args, n, name, scale=scale)
        assert len(out) == 7
        same(out[0], change(want))
        scores = q @ k.transpose(-1, -2) * scale
        assert out[1].shape == out[2].shape == (b, n, s, 8)
        same(out[1][..., 0], scores.amax(-1))
        same(out[2][..., 0], (scores - scores.amax(-1, keepdim=True)).exp().sum(-1))
    on = [x.npu() for x in (q, k, v)]
    mask = torch.rand(s, t) < 0.4
    mask[:, 0] = False
    masked = torch_npu.npu_fusion_attention(*on, n, "BNSD", scale=scale, atten_mask=mask.npu())[0]
    same(masked, F.scaled_dot_product_attention(q, k, v, attn_mask=~mask, scale=scale))
    triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu()
    rules = {
        2: lambda i, j: j <= i,
        3: lambda i, j: j <= i + t - s,
        4: lambda i, j: -2 <= j - (i + t - s) <= 1,
    }
    for mode, allowed in rules.items():
        out = torch_npu.npu_fusion_attention(
            *on, n, "BNSD", scale=scale, atten_mask=triangle, sparse_mode=mode, pre_tockens=2, next_tockens=1
        )[0]
        for i in range(b):
            same(out[i], attention_by_rows(q[i], k[i], v[i], scale, allowed))
    pse = torch.randn(b, n, s, t)
    added = torch_npu.npu_fusion_attention(*on, n, "BNSD", scale=scale, pse=pse.npu())[0]
    same(added, torch.softmax((q @ k.transpose(-1, -2) + pse) * scale, -1) @ v)
    added = torch_npu.npu_fusion_attention_v2(*on, n, "BNSD", scale=scale, pse=pse.npu(), pse_type=0)[0]
    same(added, torch.softmax(q @ k.transpose(-1, -2) * scale + pse, -1) @ v)
    fewer = torch_npu.npu_fusion_attention(on[0], on[1][:, :2], on[2][:, :2], n, "BNSD", scale=scale)[0]
    wide = [x[:, :2].repeat_interleave(2, 1) for x in (k, v)]
    same(fewer, F.scaled_dot_product_attention(q, *wide, scale=scale))
    with torch.autocast("npu", dtype=torch.float16):
        same(torch_npu.npu_fusion_attention(*on, n, "BNSD", scale=scale)[0], want)
        raises(RuntimeError, "one dtype", lambda: torch_npu.npu_fusion_attention(on[0].half(), *on[1:], n, "BNSD"))
    check_varlen(scale, triangle)
    whole = torch_npu.npu_fusion_attention(*on, n, "BNSD", scale=scale, sparse_mode=3)[0]
    same(whole, want)
    attend = torch_npu.npu_fusion_attention
    raises(RuntimeError, "2048x2048", lambda: attend(*on, n, "BNSD", atten_mask=mask.npu(), sparse_mode=2))
    raises(RuntimeError, "BNSS", lambda: attend(*on, n, "BNSD", atten_mask=mask.npu()[None]))
    raises(RuntimeError, "one dtype", lambda: attend(on[0], on[1], on[2].half(), n, "BNSD"))
    raises(RuntimeError, "keep_prob", lambda: attend(*on, n, "BNSD", keep_prob=0.0))
    raises(RuntimeError, "no multiple", lambda: attend(on[0], on[1][:, :3], on[2][:, :3], n, "BNSD"))
    raises(RuntimeError, "head_num", lambda: torch_npu.npu_fusion_attention(*on, n + 1, "BNSD"))
    raises(RuntimeError, "bool or uint8", lambda: torch_npu.npu_fusion_attention(*on, n, "BNSD", atten_mask=pse.npu()))
    raises(RuntimeError, "none of", lambda: torch_npu.npu_fusion_attention(*on, n, "NBSD"))
    raises(RuntimeError, "npu tensors", lambda: torch_npu.npu_fusion_attention(q, k, v, n, "BNSD"))
    leaf = q.npu().requires_grad_()
    torch_npu.npu_fusion_attention(leaf, on[1], on[2], n, "BNSD", scale=scale)[0].sum().backward()
    plain = q.clone().requires_grad_()
    F.scaled_dot_product_attention(plain, k, v, scale=scale).sum().backward()
    same(leaf.grad, plain.grad)
    torch.npu.manual_seed(3)
    dropped = torch_npu.npu_fusion_attention(*on, n, "BNSD", scale=scale, keep_prob=0.5)[0]
    assert not torch.allclose(dropped.cpu(), want)


def check_varlen(scale, triangle):
    q, k, v = (torch.randn(9, 4, 8) for _ in range(3))
    ends = [2, 5, 9]
    out = torch_npu.npu_fusion_attention(
        q.npu(), k.npu(), v.npu(), 4, "TND", scale=scale, actual_seq_qlen=ends, actual_seq_kvlen=ends,
        atten_mask=triangle, sparse_mode=3,
    )[0]  # fmt: skip
    for a, b in ((0, 2), (2, 5), (5, 9)):
        parts = [x[a:b].transpose(0, 1) for x in (q, k, v)]
        same(out[a:b], attention_by_rows(*parts, scale, lambda i, j: j <= i).transpose(0, 1))


def check_norms():
    x, y, g, h = torch.randn(3, 4, 16), torch.randn(3, 4, 16), torch.rand(16), torch.randn(16)
    out, rstd = torch_npu.npu_rms_norm(x.npu(), g.npu(), epsilon=1e-5)
    same(out, F.rms_norm(x, (16,), g, 1e-5))
    same(rstd, 1 / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt())
    same(torch_npu.npu_rms_norm(x.npu(), torch.ones(4, 16).npu())[0], F.rms_norm(x, (4, 16), eps=1e-6))
    raises(RuntimeError, "gamma", lambda: torch_npu.npu_rms_norm(x.npu(), g.half().npu()))
    raises(RuntimeError, "last sizes", lambda: torch_npu.npu_rms_norm(x.npu(), g[:8].npu()))
    half = torch_npu.npu_rms_norm(x.half().npu(), g.half().npu())[0]
    assert half.dtype == torch.float16
    out, _, total = torch_npu.npu_add_rms_norm(x.npu(), y.npu(), g.npu(), 1e-5)
    same(total, x + y)
    same(out, F.rms_norm(x + y, (16,), g, 1e-5))
    out, mean, rstd, total = torch_npu.npu_add_layer_norm(*(t.npu() for t in (x, y, g, h)), 1e-5, True)
    same(out, F.layer_norm(x + y, (16,), g, h, 1e-5))
    same(mean[..., 0], (x + y).mean(-1))
    same(total, x + y)
    out = torch_npu.npu_deep_norm(*(t.npu() for t in (x, y, h, g)), 0.5, 1e-5)[2]
    same(out, F.layer_norm(0.5 * x + y, (16,), g, h, 1e-5))
    image, w, b = torch.randn(2, 8, 3, 3), torch.rand(8), torch.randn(8)
    out, mean, rstd = torch_npu.npu_group_norm_silu(image.npu(), w.npu(), b.npu(), 4, 1e-5)
    same(out, F.silu(F.group_norm(image, 4, w, b, 1e-5)))
    same(mean[1, 2], image[1, 4:6].mean())
    same(rstd[1, 2], 1 / (image[1, 4:6].var(unbiased=False) + 1e-5).sqrt())


def check_activations():
    x = torch.randn(3, 10)
    same(torch_npu.npu_swiglu(x.npu()), x[:, :5] * torch.sigmoid(x[:, :5]) * x[:, 5:])
    same(torch_npu.npu_swiglu(x.T.contiguous().npu(), dim=0), torch_npu.npu_swiglu(x.npu()).T)
    raises(RuntimeError, "even", lambda: torch_npu.npu_swiglu(x[:, :3].npu()))
    raises(RuntimeError, "contiguous", lambda: torch_npu.npu_swiglu(x.npu().T, dim=0))
    out, activated = torch_npu.npu_geglu(x.npu())
    same(activated, F.gelu(x[:, 5:], approximate="tanh"))
    same(out, x[:, :5] * F.gelu(x[:, 5:], approximate="tanh"))
    same(torch_npu.npu_geglu(x.npu(), activate_left=True, approximate=0)[0], F.gelu(x[:, :5]) * x[:, 5:])
    documented = x / (1 + torch.exp(-1.702 * x.abs())) * torch.exp(0.851 * (x - x.abs()))
    same(torch_npu.npu_fast_gelu(x.npu()), documented)
    same(torch_npu.fast_gelu(x.npu()), documented)
    same(torch_npu.npu_gelu(x.npu()), 0.5 * x * (1 + torch.erf(x / 2**0.5)))
    inner = (2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)
    same(torch_npu.npu_gelu(x.npu(), approximate="tanh"), 0.5 * x * (1 + torch.tanh(inner)))
    w, b = torch.randn(4, 10), torch.randn(4)
    same(torch_npu.npu_linear(x.npu(), w.npu(), b.npu()), x @ w.T + b)
    raises(RuntimeError, "2-D", lambda: torch_npu.npu_linear(x[None].npu(), w.npu()))


def check_rotary():
    x, angle = torch.randn(2, 3, 5, 8), torch.randn(1, 1, 5, 4)
    cos, sin = (torch.cat([f(angle)] * 2, -1) for f in (torch.cos, torch.sin))
    pairs = torch.complex(x[..., :4], x[..., 4:]) * torch.polar(torch.ones_like(angle), angle)
    same(torch_npu.npu_rotary_mul(x.npu(), cos.npu(), sin.npu()), torch.cat([pairs.real, pairs.imag], -1))
    half = torch_npu.npu_rotary_mul(x.half().npu(), cos.npu(), sin.npu())
    assert half.dtype == torch.float16
    turn = torch_npu.npu_rotary_mul
    raises(RuntimeError, "dimensions", lambda: turn(x.npu(), cos[0, 0].npu(), sin[0, 0].npu()))
    raises(RuntimeError, "even last size", lambda: turn(x.npu(), cos[..., :4].npu(), sin[..., :4].npu()))
    cos, sin = (f(angle).repeat_interleave(2, -1) for f in (torch.cos, torch.sin))
    pairs = torch.view_as_complex(x.unflatten(-1, (4, 2)).contiguous()) * torch.polar(torch.ones_like(angle), angle)
    out = torch_npu.npu_rotary_mul(x.npu(), cos.npu(), sin.npu(), rotary_mode="interleave")
    same(out, torch.view_as_real(pairs).flatten(-2))
    query, key = x.clone().npu(), (2 * x).npu()
    got = torch_npu.npu_apply_rotary_pos_emb(query, key, cos.npu(), sin.npu(), rotary_mode="interleave")
    assert got[0] is query
    same(query, out)
    same(key, 2 * out)


def check_losses():
    logits, target = torch.randn(6, 4), torch.tensor([0, 1, 3, 2, -100, 1])
    weight = torch.rand(4)
    for kw in ({}, {"reduction": "sum"}, {"label_smoothing": 0.2}, {"weight": weight}):
        moved = {k: v.npu() if hasattr(v, "npu") else v for k, v in kw.items()}
        out = torch_npu.npu_cross_entropy_loss(logits.npu(), target.npu(), **moved)
        same(out[0], F.cross_entropy(logits, target, **kw))
        same(out[1], F.log_softmax(logits, -1))
    raises(RuntimeError, "2-D", lambda: torch_npu.npu_cross_entropy_loss(logits[None].npu(), target.npu()))
    x, mask = torch.randn(2, 2, 32, 32), torch.rand(2, 1, 32, 32) < 0.3
    out = torch_npu.npu_scaled_masked_softmax(x.npu(), mask.npu(), 0.5, False)
    same(out, torch.softmax(torch.where(mask, torch.tensor(-10000.0), x * 0.5), -1))


def check_experts():
    x, w = torch.randn(6, 4), torch.randn(3, 4, 5)
    by_hand = torch.cat([x[:2] @ w[0], x[2:3] @ w[1], x[3:] @ w[2]])
    for groups, kind in (([2, 3, 6], 0), ([2, 1, 3], 1)):
        out = torch_npu.npu_grouped_matmul(
            [x.npu()],
            [w.npu()],
            group_list=torch.tensor(groups).npu(),
            split_item=3,
            group_type=0,
            group_list_type=kind,
        )
        assert len(out) == 1
        same(out[0], by_hand)
    parts = torch_npu.npu_grouped_matmul([x[:2].npu(), x[2:].npu()], [w[0].npu(), w[1].npu()])
    same(parts[1], x[2:] @ w[1])
    tokens, experts, probs = torch.randn(4, 3), torch.tensor([[1, 0], [2, 1], [0, 2], [1, 2]]), torch.rand(4, 2)
    rows, places = torch_npu.npu_moe_token_permute(tokens.npu(), experts.npu())
    ordered = sorted((int(experts[t, c]), t, c) for t in range(4) for c in range(2))
    same(rows, torch.stack([tokens[t] for _, t, _ in ordered]))
    for place, (_, t, c) in enumerate(ordered):
        assert int(places[2 * t + c]) == place
    same(torch_npu.npu_moe_token_unpermute(rows, places, probs.npu()), tokens * probs.sum(1, keepdim=True))
    values, chosen, _ = torch_npu.npu_moe_gating_top_k_softmax(x.npu(), None, 2)
    same(values, torch.softmax(x, -1).topk(2)[0])
    assert chosen.dtype == torch.int32


def check_layout():
    x = torch.arange(24.0).reshape(2, 3, 4)
    same(torch_npu.npu_confusion_transpose(x.npu(), (0, 2, 1), (2, 12), True), x.permute(0, 2, 1).reshape(2, 12))
    same(torch_npu.npu_confusion_transpose(x.npu(), (1, 0, 2), (4, 2, 3), False), x.view(4, 2, 3).permute(1, 0, 2))
    same(torch_npu.npu_format_cast(x.npu(), 29), x)
    assert torch_npu.get_npu_format(x.npu()) == 2 == torch_npu.Format.ND
    assert str(torch_npu.Format.FRACTAL_NZ) == "FRACTAL_NZ"
    assert torch_npu.utils.storage._rebuild_npu_tensor in torch.serialization.get_safe_globals()
    same(torch_npu.npu_pad(x[0].npu(), [1, 0, 2, 1]), F.pad(x[0], (2, 1, 1, 0)))
    same(torch_npu.npu_one_hot(torch.tensor([0, 2]).npu(), depth=3), torch.tensor([[1.0, 0, 0], [0, 0, 1]]))
    same(torch_npu.npu_bmmV2(x.npu(), x.transpose(1, 2).contiguous().npu(), []), x @ x.transpose(1, 2))
    same(torch_npu.npu_slice(x.npu(), [0, 1, 1], [2, 2, 2]), x[:, 1:3, 1:3])
    values, indices = torch_npu.npu_max(x.npu(), 1)
    same(values, x.max(1)[0])
    assert indices.dtype == torch.int32
    assert torch.ops.npu.npu_fast_gelu(x.npu()).is_npu


def check_contrib():
    from torch_npu.contrib import ChannelShuffle, LabelSmoothingCrossEntropy, NpuDropPath, Prefetcher
    from torch_npu.contrib.function import (
        fuse_add_softmax_dropout,
        matmul_transpose,
        npu_bbox_coder_decode_xywh2xyxy,
        npu_bbox_coder_encode_xyxy2xywh,
        npu_fast_condition_index_put,
    )

    a, b = torch.randn(3, 4), torch.randn(5, 4)
    same(matmul_transpose(a.npu(), b.npu()), a @ b.T)
    same(npu_fast_condition_index_put(a.npu(), (a > 0).npu(), 7.0), a.masked_fill(a > 0, 7.0))
    scores, mask = torch.randn(2, 3, 3), torch.zeros(2, 3, 3)
    out = fuse_add_softmax_dropout(False, torch.nn.Identity(), mask.npu(), scores.npu(), 16)
    same(out, torch.softmax(scores / 4, -1))
    boxes, goals = torch.tensor([[0.0, 0, 10, 20]]), torch.tensor([[5.0, 5, 25, 25]])
    deltas = npu_bbox_coder_encode_xyxy2xywh(boxes.npu(), goals.npu())
    same(deltas, torch.tensor([[1.0, 0.25, math.log(2), 0.0]]))
    same(npu_bbox_coder_decode_xywh2xyxy(boxes.npu(), deltas), goals)
    left, right = torch.arange(4.0).view(1, 4, 1), torch.arange(4.0, 8).view(1, 4, 1)
    halves = ChannelShuffle(8)(left.npu(), right.npu())
    same(torch.cat(halves, 1).flatten(), torch.tensor([0.0, 4, 1, 5, 2, 6, 3, 7]))
    logits, target = torch.randn(4, 5), torch.tensor([0, 1, 2, 3])
    smooth = torch.full((4, 5), 0.1 / 4).scatter_(1, target[:, None], 0.9)
    same(LabelSmoothingCrossEntropy(5, 0.1)(logits.npu(), target.npu()), F.cross_entropy(logits, smooth))
    path = NpuDropPath(0.5).train()
    kept = path(torch.ones(64, 3).npu()).cpu()
    assert {row.unique().numel() for row in kept} == {1} and set(kept.unique().tolist()) == {0.0, 2.0}
    fetcher = Prefetcher([(torch.ones(2), torch.zeros(2))])
    data, _ = fetcher.next()
    assert data.is_npu and fetcher.next() == (None, None)


for name, check in list(globals().items()):
    if name.startswith("check_") and name != "check_varlen":
        check()
        print(name, "ok")
