"""Matrices, layers, losses and dropout of the older interface (named_operators.py says how they are called)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from .named_operators import _ATEN, all_named, named
from .operators import OWN

#: torch_npu gives the backward of a layer norm the variance without its epsilon (LayerNormBackwardKernelNpu.cpp).
_EPSILON = 1e-5
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


# ---- matrices ----
def _product(one: Any, two: Any, bias: Any, first: bool, second: bool) -> Any:
    found = (one.transpose(-1, -2) if first else one) @ (two.transpose(-1, -2) if second else two)
    return found if bias is None else found + bias


@named("MatMul", "MatMulV2")
def _matmul(one: Any, two: Any, bias: Any = None, *, transpose_x1: bool = False, transpose_x2: bool = False) -> Any:
    return _product(one, two, bias, transpose_x1, transpose_x2)


@named("BatchMatMul", "BatchMatMulV2")
def _batch_matmul(one: Any, two: Any, bias: Any = None, *, adj_x1: bool = False, adj_x2: bool = False) -> Any:
    return _product(one, two, bias, adj_x1, adj_x2)


# ---- convolutions: four numbers for each of NCHW, of which the last two matter; pads are before and after ----
@named("Conv2D")
def _conv(
    x: Any, weight: Any, bias: Any = None, *, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int],
    groups: int = 1,
) -> Any:  # fmt: skip
    top, bottom, left, right = pads
    return F.conv2d(F.pad(x, (left, right, top, bottom)), weight, bias, strides[2:], 0, dilations[2:], groups)


@named("Conv2DTranspose")
def _conv_transpose(
    sizes: Any, x: Any, weight: Any, bias: Any = None, *, strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], output_padding: Sequence[int] = (0, 0, 0, 0), groups: int = 1,
) -> Any:  # fmt: skip
    return F.conv_transpose2d(
        x, weight, bias, strides[2:], (pads[0], pads[2]), output_padding[2:], groups, dilations[2:]
    )


def _conv_gradients(
    gradient: Any, x: Any, weight: Any, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int],
    groups: int, mask: Sequence[bool],
) -> tuple[Any, Any, Any]:  # fmt: skip
    found: tuple[Any, Any, Any] = _ATEN.convolution_backward(
        gradient, x, weight, None, strides[2:], (pads[0], pads[2]), dilations[2:], False, (0, 0), groups, mask
    )
    return found


@named("Conv2DBackpropInput")
def _conv_of_input(
    sizes: Any, weight: Any, gradient: Any, *, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int],
    groups: int = 1, outputs: Sequence[Any],
) -> Any:  # fmt: skip
    x = torch.empty(outputs[0].shape, dtype=weight.dtype, device="cpu")
    return _conv_gradients(gradient, x, weight, strides, pads, dilations, groups, [True, False, False])[0]


@named("Conv2DBackpropFilter")
def _conv_of_weight(
    x: Any, sizes: Any, gradient: Any, *, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int],
    groups: int = 1, outputs: Sequence[Any],
) -> Any:  # fmt: skip
    weight = torch.empty(outputs[0].shape, dtype=x.dtype, device="cpu")
    return _conv_gradients(gradient, x, weight, strides, pads, dilations, groups, [False, True, False])[1]


# ---- norms ----
def _along(values: Any, x: Any) -> Any:
    """Values of channels, in the dimensions of `x`."""
    return values.reshape(1, -1, *(1,) * (x.dim() - 2))


def _all_but_channels(x: Any) -> list[int]:
    return [dim for dim in range(x.dim()) if dim != 1]


@named("BNTrainingReduce", "BN3DTrainingReduce")
def _batch_norm_reduce(x: Any) -> tuple[Any, Any]:
    x = x.float()
    return x.sum(_all_but_channels(x)), x.square().sum(_all_but_channels(x))


@named("BNTrainingUpdate", "BN3DTrainingUpdate")
def _batch_norm_update(
    x: Any, total: Any, squares: Any, weight: Any, bias: Any, mean: Any, variance: Any, *, epsilon: float,
    factor: float,
) -> tuple[Any, ...]:  # fmt: skip
    count = x.numel() // x.shape[1]
    here = total / count
    spread = squares / count - here.square()
    y = (x.float() - _along(here, x)) * torch.rsqrt(_along(spread, x) + epsilon) * _along(weight, x) + _along(bias, x)
    unbiased = spread * count / max(count - 1, 1)
    return y, mean + (here - mean) * factor, variance + (unbiased - variance) * factor, here, spread


@named("BNInfer")
def _batch_norm_infer(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, *, epsilon: float) -> Any:
    return F.batch_norm(x.float(), mean, variance, weight, bias, False, 0.0, epsilon)


@named("BNTrainingUpdateGrad", "BN3DTrainingUpdateGrad")
def _batch_norm_update_grad(
    gradient: Any, x: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5
) -> tuple[Any, Any]:
    normed = (x.float() - _along(mean, x)) * torch.rsqrt(_along(variance, x) + epsilon)
    dims = _all_but_channels(x)
    return (gradient.float() * normed).sum(dims), gradient.float().sum(dims)


@named("BNTrainingReduceGrad", "BN3DTrainingReduceGrad")
def _batch_norm_reduce_grad(
    gradient: Any, x: Any, of_weight: Any, of_bias: Any, weight: Any, mean: Any, variance: Any, *,
    epsilon: float = 1e-5,
) -> Any:  # fmt: skip
    count, scale = x.numel() // x.shape[1], torch.rsqrt(_along(variance, x) + epsilon)
    normed = (x.float() - _along(mean, x)) * scale
    inner = gradient.float() - (_along(of_bias, x) + normed * _along(of_weight, x)) / count
    return inner * scale * _along(weight, x)


@named("BNInferGrad")
def _batch_norm_infer_grad(gradient: Any, weight: Any, variance: Any, *, epsilon: float) -> Any:
    return gradient * torch.rsqrt(_along(variance, gradient) + epsilon) * _along(weight, gradient)


@named("LayerNorm", "LayerNormV3")
def _layer_norm(
    x: Any, weight: Any, bias: Any, *, begin_norm_axis: int, epsilon: float, outputs: Sequence[Any]
) -> tuple[Any, Any, Any]:
    """The norm, the mean and the variance; the newer one gives the reciprocal deviation in its place, which nobody
    reads (npu_layer_norm_eval)."""
    shape = x.shape[begin_norm_axis:]
    weight, bias = (None if each is None else each.float().reshape(shape) for each in (weight, bias))
    y, mean, rstd = _ATEN.native_layer_norm(x.float(), shape, weight, bias, epsilon)
    return y, mean, rstd.pow(-2) - epsilon


@named("LayerNormGrad")
def _layer_norm_grad(gradient: Any, x: Any, variance: Any, mean: Any, weight: Any) -> tuple[Any, Any, Any]:
    shape = x.shape[x.dim() - weight.dim() :]
    return tuple(_ATEN.native_layer_norm_backward(
        gradient.float(), x.float(), shape, mean.float(), torch.rsqrt(variance.float() + _EPSILON), weight.float(),
        torch.zeros_like(weight, dtype=torch.float32), [True, True, True],
    ))  # fmt: skip


# ---- pools: numbers for each of NHWC (the first) or NCHW ----
@named("MaxPoolWithArgmaxV1")
def _max_pool(
    x: Any, *, ksize: Sequence[int], strides: Sequence[int], pads: Sequence[int], dilation: Sequence[int],
    ceil_mode: bool = False,
) -> tuple[Any, None]:  # fmt: skip
    """The maxima; the mask of their places is made again by the backward, which has `x`."""
    return F.max_pool2d(x.float(), ksize[1:3], strides[1:3], pads[1:3], dilation[1:3], ceil_mode), None


@named("MaxPoolGradWithArgmaxV1")
def _max_pool_grad(
    x: Any, gradient: Any, _: Any, *, ksize: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int] = (1, 1, 1, 1), ceil_mode: bool = False,
) -> Any:  # fmt: skip
    window = (ksize[1:3], strides[1:3], pads[1:3], dilations[1:3], ceil_mode)
    indices = _ATEN.max_pool2d_with_indices(x.float(), *window)[1]
    return _ATEN.max_pool2d_with_indices_backward(gradient.float(), x.float(), *window, indices)


def _window(ksize: Sequence[int], strides: Sequence[int], pads: Sequence[int], divisor: int) -> tuple[Any, ...]:
    return ksize[2:], strides[2:], (pads[0], pads[2]), divisor or None


@named("AvgPoolV2")
def _avg_pool(
    x: Any, *, ksize: Sequence[int], strides: Sequence[int], pads: Sequence[int], ceil_mode: bool, exclusive: bool,
    divisor_override: int = 0,
) -> Any:  # fmt: skip
    size, step, pad, divisor = _window(ksize, strides, pads, divisor_override)
    return F.avg_pool2d(x.float(), size, step, pad, ceil_mode, not exclusive, divisor)


@named("AvgPoolV2Grad")
def _avg_pool_grad(
    sizes: Any, gradient: Any, *, ksize: Sequence[int], strides: Sequence[int], pads: Sequence[int], ceil_mode: bool,
    exclusive: bool, divisor_override: int = 0, outputs: Sequence[Any],
) -> Any:  # fmt: skip
    size, step, pad, divisor = _window(ksize, strides, pads, divisor_override)
    x = torch.empty(outputs[0].shape, device="cpu")
    return _ATEN.avg_pool2d_backward(gradient.float(), x, size, step, pad, ceil_mode, not exclusive, divisor)


# ---- losses ----
@named("NLLLoss")
def _nll_loss(x: Any, target: Any, weight: Any, *, reduction: str = "mean", ignore_index: int = -100) -> Any:
    forward = _ATEN.nll_loss2d_forward if x.dim() == 4 else _ATEN.nll_loss_forward
    weight = None if weight is None else weight.float()
    return tuple(forward(x.float(), target.long(), weight, _REDUCTIONS[reduction], ignore_index))


@named("NLLLossGrad")
def _nll_loss_grad(
    x: Any, gradient: Any, target: Any, weight: Any, total: Any, *, reduction: str = "mean", ignore_index: int = -100
) -> Any:
    backward = _ATEN.nll_loss2d_backward if x.dim() == 4 else _ATEN.nll_loss_backward
    weight = None if weight is None else weight.float()
    gradient = gradient.float() if reduction == "none" else gradient.float().reshape(())
    return backward(
        gradient, x.float(), target.long(), weight, _REDUCTIONS[reduction], ignore_index, total.float().reshape(())
    )


@named("MseLoss")
def _mse_loss(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    return F.mse_loss(x, target, reduction=reduction)


@named("MseLossGrad")
def _mse_loss_grad(x: Any, target: Any, gradient: Any, *, reduction: str = "mean") -> Any:
    return _ATEN.mse_loss_backward(gradient, x, target, _REDUCTIONS[reduction])


@named("SoftmaxCrossEntropyWithLogits")
def _soft_cross_entropy(x: Any, labels: Any) -> tuple[Any, Any]:
    logs = torch.log_softmax(x.float(), -1)
    return -(labels * logs).sum(-1), logs.exp() - labels


@named("EmbeddingDenseGrad")
def _embedding_grad(
    gradient: Any, indices: Any, *, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> Any:
    return _ATEN.embedding_dense_backward(
        gradient.float(), indices.long(), num_weights, padding_idx, scale_grad_by_freq
    )


# ---- what is drawn: with the functions of the newer interface ----
@named("StatelessDropOutGenMask")
def _draw_bits(
    sizes: Any, keep: Any, seed: Any, _: Any, offset: Any, *, outputs: Sequence[Any]
) -> Any:
    draw = OWN["aclnnDropoutGenMask"].function
    return draw(sizes.reshape(-1).tolist(), 1 - float(keep), int(seed), int(offset.reshape(-1)[-1]), outputs=outputs)


all_named({
    "DropOutDoMask": lambda x, bits, keep: OWN["aclnnDropoutDoMask"].function(x, bits, 1 - float(keep)),
    "DropOutDoMaskV3": lambda x, mask, keep: _by_bytes(x, mask, float(keep)),
})  # fmt: skip


@named("DropOutGenMaskV3")
def _draw_bytes(sizes: Any, keep: Any, *, seed: int = 0, seed2: int = 0, outputs: Sequence[Any]) -> None:
    """One byte for each element."""
    OWN["aclnnInplaceBernoulli"].function(outputs[0], float(keep), seed, seed2)


def _by_bytes(x: Any, mask: Any, keep: float) -> Any:
    return x.float() * mask.reshape(-1)[: x.numel()].reshape(x.shape) / keep


@named("AxpyWithSoftmaxAndDropOutDoMask")
def _add_softmax_drop(x: Any, added: Any, mask: Any, *, alpha: float, input_keep_prob: float) -> tuple[Any, Any]:
    softmax = torch.softmax(x.float() + added.float() * alpha, -1)
    return softmax, _by_bytes(softmax, mask, input_keep_prob)


@named("DropoutWithMulsAndSoftmaxGrad")
def _add_softmax_drop_grad(gradient: Any, mask: Any, softmax: Any, *, alpha: float, input_keep_prob: float) -> Any:
    inner = _by_bytes(gradient, mask, input_keep_prob)
    softmax = softmax.float()
    return (inner - (inner * softmax).sum(-1, keepdim=True)) * softmax * alpha


@named("StatelessRandomNormalV2")
def _draw_normal(sizes: Any, key: Any, counter: Any, _: Any, *, outputs: Sequence[Any]) -> None:
    OWN["aclnnInplaceNormal"].function(outputs[0], 0.0, 1.0, int(key[0]), int(counter.reshape(-1)[-1]))


@named("StatelessRandomUniformV2")
def _draw_uniform(sizes: Any, key: Any, counter: Any, _: Any, *, outputs: Sequence[Any]) -> None:
    OWN["aclnnInplaceUniform"].function(outputs[0], 0.0, 1.0, int(key[0]), int(counter.reshape(-1)[-1]))


# ---- the overflow of float16, of which cards before 910B tell by a status that operators set ----
@named("NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUClearFloatStatusV2")
def _clear_status(*_: Any, outputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(torch.zeros(each.shape, device="cpu") for each in outputs)


@named("NPUGetFloatStatus", "NPUGetFloatStatusV2")
def _get_status(*_: Any) -> None:
    raise NotImplementedError(
        "the status of overflow is not emulated, by which a GradScaler finds infinities on cards before 910B"
    )


@named("CdistGrad")
def _cdist_grad(gradient: Any, one: Any, two: Any, distances: Any, *, p: float = 2.0) -> Any:
    """Of the first of two sets of points, all spread to [..., P, R, M]; -1 is the largest difference."""
    apart = one - two
    if p < 0:
        share = (apart.abs() == distances).to(apart.dtype) * apart.sign()
    else:
        share = apart.sign() * (apart.abs() / distances).pow(p - 1)
    return (gradient * torch.where(distances == 0, 0.0, share)).sum(-2)
