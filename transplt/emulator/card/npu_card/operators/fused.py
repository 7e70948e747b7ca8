"""Operators that stand for a few of PyTorch's: norms of a sum, rotary positions, gated activations, masked softmax.

Formulas: op-plugin's pages on the torch_npu functions of these names. All is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from . import operator

_ATEN = torch.ops.aten
#: Ways to turn a vector by pairs, by the number that torch_npu gives them (get_rotary_mode).
_HALF, _INTERLEAVED, _QUARTER, _INTERLEAVED_HALF = range(4)
_MODES = {"half": _HALF, "interleave": _INTERLEAVED, "quarter": _QUARTER, "interleave-half": _INTERLEAVED_HALF}
#: What a masked softmax puts in the place of what is masked.
_MASKED = -10000.0


# ---- norms of a sum ----
def _scaled(total: Any, gamma: Any, epsilon: float) -> tuple[Any, Any]:
    """`total` over its root mean square in the dimensions of gamma, times gamma; and the reciprocal of that root."""
    rstd = torch.rsqrt(total.square().mean(tuple(range(-gamma.dim(), 0)), keepdim=True) + epsilon)
    return total * rstd * gamma.float(), rstd


@operator("AddRmsNorm")
def _add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float) -> tuple[Any, Any, Any]:
    total = x1.float() + x2.float()
    return (*_scaled(total, gamma, epsilon), total)


@operator("AddRmsNormCast")
def _add_rms_norm_cast(x1: Any, x2: Any, gamma: Any, epsilon: float) -> tuple[Any, Any, Any, Any]:
    y, rstd, total = _add_rms_norm(x1, x2, gamma, epsilon)
    return y.to(x1.dtype), y.to(x1.dtype), rstd, total


@operator("InplaceAddRmsNorm")
def _inplace_add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float) -> Any:
    y, rstd, total = _add_rms_norm(x1, x2, gamma, epsilon)
    x1.copy_(y)
    x2.copy_(total)
    return rstd


def _normed(total: Any, gamma: Any, beta: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """The layer norm of `total` over the dimensions of gamma, its mean and its reciprocal deviation."""
    found: tuple[Any, Any, Any] = _ATEN.native_layer_norm(total, gamma.shape, gamma.float(), beta.float(), epsilon)
    return found


def _of_normed(gradient: Any, total: Any, mean: Any, rstd: Any, gamma: Any) -> tuple[Any, Any, Any]:
    """Gradients of the sum, of gamma and of beta."""
    shape = (*total.shape[: total.dim() - gamma.dim()], *(1,) * gamma.dim())
    found: tuple[Any, Any, Any] = _ATEN.native_layer_norm_backward(
        gradient.float(), total, gamma.shape, mean.float().reshape(shape), rstd.float().reshape(shape), gamma.float(),
        torch.zeros_like(gamma, dtype=torch.float32), [True, True, True],
    )  # fmt: skip
    return found


@operator("AddLayerNorm")
def _add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, bias: Any, epsilon: float, additional: bool
) -> tuple[Any, Any, Any, Any]:
    total = x1.float() + x2.float()
    if bias is not None:
        total = total + bias.float()
    return (*_normed(total, gamma, beta, epsilon), total if additional else None)


@operator("AddLayerNormGrad")
def _add_layer_norm_grad(
    dy: Any, x1: Any, x2: Any, rstd: Any, mean: Any, gamma: Any, of_sum: Any
) -> tuple[Any, Any, Any]:
    of_total, of_gamma, of_beta = _of_normed(dy, x1.float() + x2.float(), mean, rstd, gamma)
    return of_total if of_sum is None else of_total + of_sum.float(), of_gamma, of_beta


@operator("DeepNorm")
def _deep_norm(x: Any, gx: Any, beta: Any, gamma: Any, alpha: float, epsilon: float) -> tuple[Any, Any, Any]:
    y, mean, rstd = _normed(x.float() * alpha + gx.float(), gamma, beta, epsilon)
    return mean, rstd, y


@operator("DeepNormGrad")
def _deep_norm_grad(
    dy: Any, x: Any, gx: Any, gamma: Any, mean: Any, rstd: Any, alpha: float
) -> tuple[Any, Any, Any, Any]:
    of_total, of_gamma, of_beta = _of_normed(dy, x.float() * alpha + gx.float(), mean, rstd, gamma)
    return of_total * alpha, of_total, of_beta, of_gamma


def _group_normed(x: Any, gamma: Any, beta: Any, groups: int, epsilon: float) -> tuple[Any, Any, Any]:
    batch, channels = x.shape[:2]
    size = x[0, 0].numel()
    gamma, beta = (None if each is None else each.float() for each in (gamma, beta))
    found: tuple[Any, Any, Any] = _ATEN.native_group_norm(
        x.float().contiguous(), gamma, beta, batch, channels, size, groups, epsilon
    )
    return found


@operator("GroupNormSilu")
def _group_norm_silu(x: Any, gamma: Any, beta: Any, groups: int, epsilon: float) -> tuple[Any, Any, Any]:
    y, mean, rstd = _group_normed(x, gamma, beta, groups, epsilon)
    return F.silu(y), mean, rstd


@operator("GroupNormSwish")
def _group_norm_swish(
    x: Any, gamma: Any, beta: Any, groups: int, _: Any, epsilon: float, activate: bool, scale: float
) -> tuple[Any, Any, Any]:
    y, mean, rstd = _group_normed(x, gamma, beta, groups, epsilon)
    return y * torch.sigmoid(scale * y) if activate else y, mean, rstd


@operator("GroupNormSwishGrad")
def _group_norm_swish_grad(
    dy: Any, mean: Any, rstd: Any, x: Any, gamma: Any, beta: Any, groups: int, _: Any, scale: float,
    wants_gamma: bool, wants_beta: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    shape = (len(x), groups, *(1,) * (x.dim() - 1))
    centred = x.float().unflatten(1, (groups, -1)) - mean.float().reshape(shape)
    normed = (centred * rstd.float().reshape(shape)).reshape(x.shape)
    channels = (1, -1, *(1,) * (x.dim() - 2))
    y = normed * gamma.float().reshape(channels) + beta.float().reshape(channels)
    gate = torch.sigmoid(scale * y)
    of_y = dy.float() * gate * (1 + scale * y * (1 - gate))
    found: tuple[Any, Any, Any] = _ATEN.native_group_norm_backward(
        of_y.contiguous(), x.float().contiguous(), mean.float().reshape(len(x), -1),
        rstd.float().reshape(len(x), -1), gamma.float(), *x.shape[:2], x[0, 0].numel(), groups,
        [True, wants_gamma, wants_beta],
    )  # fmt: skip
    return found


# ---- rotary positions ----
def _turned(x: Any, mode: int) -> Any:
    """Each pair (a, b) as (-b, a)."""
    if mode in (_HALF, _INTERLEAVED_HALF):
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)
    if mode == _INTERLEAVED:
        pairs = x.unflatten(-1, (-1, 2))
        return torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
    one, two, three, four = x.chunk(4, -1)
    return torch.cat((-two, one, -four, three), -1)


def _ordered(x: Any, mode: int) -> Any:
    """`x` as it is turned: for the last mode all firsts of the pairs before all seconds."""
    return torch.cat((x[..., ::2], x[..., 1::2]), -1) if mode == _INTERLEAVED_HALF else x


def _check_rotary(x: Any, cos: Any, sin: Any) -> None:
    ranks = [each.dim() for each in (x, cos, sin)]
    if ranks[0] not in (3, 4) or len(set(ranks)) > 1:
        raise ValueError(f"x, cos and sin have three or four dimensions each, not {ranks}")
    sizes = [each.shape[-1] for each in (x, cos, sin)]
    if sizes[0] % 2 or len(set(sizes)) > 1:
        raise ValueError(f"x, cos and sin have one even last size, not {sizes}")


@operator("RotaryPositionEmbedding")
def _rotary(x: Any, cos: Any, sin: Any, mode: int, rotate: Any = None) -> Any:
    _check_rotary(x, cos, sin)
    x = _ordered(x.float(), mode)
    turned = _turned(x, mode) if rotate is None else x @ rotate.float()
    return x * cos.float() + turned * sin.float()


operator("RotaryPositionEmbeddingV2")(_rotary)


@operator("InterleaveRope")
def _interleave_rope(x: Any, cos: Any, sin: Any) -> Any:
    return _rotary(x, cos, sin, _INTERLEAVED_HALF)


@operator("RotaryPositionEmbeddingGrad")
def _rotary_grad(dy: Any, cos: Any, sin: Any, x: Any, mode: int) -> tuple[Any, Any, Any]:
    """The turn backwards; of cos and sin only where `x` is given, else torch_npu asks for none."""
    dy = dy.float()
    of_x = dy * cos.float() - _turned(dy * sin.float(), mode)
    if mode == _INTERLEAVED_HALF:
        of_x = torch.stack(of_x.chunk(2, -1), -1).flatten(-2)
    if x is None:
        return of_x, None, None
    x = _ordered(x.float(), mode)
    return of_x, (dy * x).sum_to_size(cos.shape), (dy * _turned(x, mode)).sum_to_size(sin.shape)


@operator("ApplyRotaryPosEmbV2")
def _apply_rotary(query: Any, key: Any, cos: Any, sin: Any, layout: int, mode: str = "half") -> None:
    """Query and key turned in place; cos and sin have their dimensions."""
    for each in (query, key):
        each.copy_(_rotary(each, cos, sin, _MODES[mode]))


operator("ApplyRotaryPosEmb")(_apply_rotary)


# ---- gated activations ----
def _halves(x: Any, dim: int) -> Sequence[Any]:
    """Both halves; the page on aclnnSwiGlu takes no tensor with gaps."""
    if x.shape[dim] % 2:
        raise ValueError(f"the size along dim {dim} is even, not {x.shape[dim]}")
    if not x.is_contiguous():
        raise ValueError("x is not contiguous: call contiguous() first")
    halves: Sequence[Any] = x.float().chunk(2, dim)
    return halves


@operator("SwiGlu")
def _swiglu(x: Any, dim: int) -> Any:
    gate, up = _halves(x, dim)
    return F.silu(gate) * up


@operator("SwiGluGrad")
def _swiglu_grad(dy: Any, x: Any, dim: int) -> Any:
    gate, up = _halves(x, dim)
    dy = dy.float()
    return torch.cat((_ATEN.silu_backward(dy * up, gate), dy * F.silu(gate)), dim)


@operator("ClippedSwiglu")
def _clipped_swiglu(
    x: Any, groups: Any, dim: int, alpha: float, limit: float, bias: float, interleaved: bool
) -> Any:
    """Over the dimensions from `dim` on as one; rows beyond those that the groups count are not computed."""
    dim = dim % x.dim()
    shape = [*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim + 1 :]]
    flat = x.float().reshape(x.shape[:dim].numel(), -1)
    gate, up = (flat[:, ::2], flat[:, 1::2]) if interleaved else flat.chunk(2, 1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    y = gate * torch.sigmoid(alpha * gate) * (up + bias)
    if groups is not None:
        y[int(groups.sum()) :] = 0
    return y.reshape(shape)


# ---- masked softmax ----
@operator("ScaledMaskedSoftmax")
def scaled_masked_softmax(x: Any, mask: Any, scale: float, triangular: bool) -> Any:
    """softmax of what is scaled; where the mask is True -10000 stands in its place."""
    if triangular:
        raise ValueError("fixed_triu_mask is not supported")
    return torch.softmax((x.float() * scale).masked_fill(mask, _MASKED), -1)


@operator("ScaledMaskedSoftmaxBackward")
def scaled_masked_softmax_backward(dy: Any, y: Any, mask: Any, scale: float, triangular: bool) -> Any:
    """What is masked has no gradient."""
    dy, y = dy.float(), y.float()
    return (y * (dy - (dy * y).sum(-1, keepdim=True)) * scale).masked_fill(mask, 0)


@operator("MaskedSoftmaxWithRelPosBias")
def _masked_softmax(x: Any, mask: Any, bias: Any, scale: float, precision: int) -> Any:
    """Attention of windows: x (batch, windows, heads, rows, columns), or the first two as one; the mask of each window
    and the bias of each head are added."""
    scores = x.float() * scale + bias.float().reshape(-1, *x.shape[-2:])
    if mask is not None:
        mask = mask.float().reshape(-1, 1, *x.shape[-2:])
        scores = scores.unflatten(0, (-1, len(mask))) + mask if x.dim() == 4 else scores + mask
    return torch.softmax(scores, -1)
