"""Fused norms, rotary positions and gated activations, forward and backward, beside plain PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch_npu
from beside import TOLERANCE, compare, raises, run_checks, same
from torch.nn import functional as F


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(shape) for shape in shapes]


def check_norms_of_a_sum() -> None:
    x, y, gamma, beta = drawn((3, 4, 16), (3, 4, 16), (16,), (16,))
    for kind, tolerance in TOLERANCE.items():
        rounded = [each.to(kind) for each in (x, y, gamma, beta)]
        on, total = [each.npu() for each in rounded], rounded[0].float() + rounded[1].float()
        out, rstd, added = torch_npu.npu_add_rms_norm(*on[:3], 1e-5)
        same(out, F.rms_norm(total, (16,), rounded[2].float(), 1e-5), tolerance)
        same(rstd, torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-5), tolerance)
        same(added, total, tolerance)
        assert out.dtype == added.dtype == kind and rstd.dtype == torch.float32
        one, other = on[0].clone(), on[1].clone()
        same(torch_npu.npu_add_rms_norm_v2(one, other, on[2], 1e-5), rstd, tolerance)
        same(one, out, tolerance)
        same(other, total, tolerance)
        for bare in (True, False):
            compare(
                lambda a, b, c, d, bare=bare: torch_npu.npu_add_layer_norm(a, b, c, d, 1e-5, not bare)[0],
                lambda a, b, c, d: F.layer_norm(a + b, (16,), c, d, 1e-5), [x, y, gamma, beta], kind,
            )  # fmt: skip
        compare(
            lambda a, b, c, d: torch_npu.npu_deep_norm(a, b, c, d, 0.5, 1e-5)[2],
            lambda a, b, c, d: F.layer_norm(0.5 * a + b, (16,), d, c, 1e-5), [x, y, beta, gamma], kind,
        )  # fmt: skip
    found = torch_npu.npu_add_layer_norm(x.npu(), y.npu(), gamma.npu(), beta.npu(), 1e-5, True)
    same(found[1][..., 0], (x + y).mean(-1))
    same(found[3], x + y)


def check_group_norms() -> None:
    image, weight, bias = drawn((2, 8, 3, 5), (8,), (8,))
    for kind in TOLERANCE:
        compare(
            lambda a, w, b: torch_npu.npu_group_norm_silu(a, w, b, 4, 1e-5)[0],
            lambda a, w, b: F.silu(F.group_norm(a, 4, w, b, 1e-5)), [image, weight, bias], kind, gradients=False,
        )  # fmt: skip

        def swish(a: Any, w: Any, b: Any) -> Any:
            normed = F.group_norm(a, 4, w, b, 1e-5)
            return normed * torch.sigmoid(0.7 * normed)

        compare(
            lambda a, w, b: torch_npu.npu_group_norm_swish(a, 4, w, b, 1e-5, 0.7)[0], swish, [image, weight, bias], kind
        )
    _, mean, rstd = torch_npu.npu_group_norm_silu(image.npu(), weight.npu(), bias.npu(), 4, 1e-5)
    same(mean[1, 2], image[1, 4:6].mean())
    same(rstd[1, 2], 1 / (image[1, 4:6].var(unbiased=False) + 1e-5).sqrt())


def turned(x: Any, mode: str) -> Any:
    if mode == "half":
        return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def check_rotary() -> None:
    shapes = [((2, 3, 5, 8), (1, 1, 5, 8)), ((2, 3, 5, 8), (2, 3, 5, 8)), ((3, 5, 8), (1, 5, 8))]
    for (shape, small), kind, mode in itertools.product(shapes, TOLERANCE, ("half", "interleave")):
        inputs = drawn(shape, small, small)
        compare(
            lambda x, c, s, mode=mode: torch_npu.npu_rotary_mul(x, c, s, mode),
            lambda x, c, s, mode=mode: x * c + turned(x, mode) * s, inputs, kind,
        )  # fmt: skip
        frozen = [each.to(kind).npu() for each in inputs]
        frozen[0].requires_grad_()
        torch_npu.npu_rotary_mul(*frozen, mode).sum().backward()
        leaf = inputs[0].to(kind).float().requires_grad_()
        one, other = (each.to(kind).float() for each in inputs[1:])
        (leaf * one + turned(leaf, mode) * other).sum().backward()
        same(frozen[0].grad, leaf.grad, 4 * TOLERANCE[kind])
    x, cos, sin = drawn((2, 5, 3, 8), (1, 5, 1, 8), (1, 5, 1, 8))
    for mode in ("half", "interleave"):
        query, key = x.clone().npu(), (2 * x).npu()
        found = torch_npu.npu_apply_rotary_pos_emb(query, key, cos.npu(), sin.npu(), "BSND", mode)
        same(found[0], x * cos + turned(x, mode) * sin)
        same(key, 2 * (x * cos + turned(x, mode) * sin))
        assert found[0].data_ptr() == query.data_ptr()
    x, cos, sin = (each.half() for each in drawn((2, 3, 5, 64), (2, 1, 5, 64), (2, 1, 5, 64)))
    split = torch.cat((x[..., ::2], x[..., 1::2]), -1).float()
    wanted = split * cos.float() + turned(split, "half") * sin.float()
    same(torch_npu.npu_interleave_rope(x.npu(), cos.npu(), sin.npu()), wanted, 4e-3)
    mixed = torch_npu.npu_rotary_mul(x.npu(), cos.float().npu(), sin.float().npu())
    assert mixed.dtype == torch.float16
    raises("dimensions", lambda: torch_npu.npu_rotary_mul(x.npu(), cos[0, 0].npu(), sin[0, 0].npu()))
    raises("even last size", lambda: torch_npu.npu_rotary_mul(x.npu(), cos[..., :4].npu(), sin[..., :4].npu()))


def check_gates() -> None:
    x = torch.randn(6, 10, 4)
    for kind, dim in itertools.product(TOLERANCE, (0, 1, -1)):

        def gated(x: Any, dim: int = dim) -> Any:
            gate, up = x.chunk(2, dim)
            return F.silu(gate) * up

        compare(lambda x, dim=dim: torch_npu.npu_swiglu(x, dim), gated, [x], kind)
    raises("even", lambda: torch_npu.npu_swiglu(x[:, :5].contiguous().npu(), 1))
    raises("not contiguous", lambda: torch_npu.npu_swiglu(x.npu().transpose(0, 1), 0))
    for interleaved in (True, False):
        gate, up = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
        gate, up = (3 * gate).clamp(max=2.0), (3 * up).clamp(-2.0, 2.0)
        found = torch_npu.npu_clipped_swiglu((3 * x).npu(), alpha=1.5, limit=2.0, bias=0.5, interleaved=interleaved)
        same(found, gate * torch.sigmoid(1.5 * gate) * (up + 0.5))
    found = torch_npu.npu_clipped_swiglu(x[:, :, 0].contiguous().npu(), group_index=torch.tensor([1, 2]).npu())
    gate, up = x[:3, ::2, 0].clamp(max=7.0), x[:3, 1::2, 0].clamp(-7.0, 7.0)
    same(found[:3], gate * torch.sigmoid(1.702 * gate) * (up + 1))


if __name__ == "__main__":
    run_checks(globals())
