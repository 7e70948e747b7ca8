"""Normalisations: batch, layer, group, root mean square; what SyncBatchNorm sums over processes."""

from __future__ import annotations

from typing import Any

import torch

from . import operator

aten = torch.ops.aten


def _wide(value: Any) -> Any:
    """Statistics are taken in float32."""
    return value if value is None else value.float()


def _by_channel(value: Any, input: Any) -> Any:
    """A number for each channel, as it spreads over `input`."""
    return value if value is None else value.float().reshape([1, -1] + [1] * (input.dim() - 2))


def _but_channels(input: Any) -> list[int]:
    return [axis for axis in range(input.dim()) if axis != 1]


@operator("BatchNorm")
def batch_norm(
    input: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, epsilon: float
) -> Any:
    """Without training the statistics of the batch stay unwritten."""
    wide = [_wide(each) for each in (input, weight, bias)]
    running = [_wide(mean), _wide(variance)]
    result, batch_mean, batch_inverse = aten.native_batch_norm(*wide, *running, training, momentum, epsilon)
    if not training:
        return result, None, None
    for target, value in zip((mean, variance), running, strict=True):
        if target is not None:
            target.copy_(value)
    return result, batch_mean, batch_inverse


@operator("BatchNormBackward")
def batch_norm_backward(
    grad: Any, input: Any, weight: Any, mean: Any, variance: Any, batch_mean: Any, batch_inverse: Any, training: bool,
    epsilon: float, wanted: Any,
) -> Any:  # fmt: skip
    """Gradients of input, weight and bias."""
    tensors = [_wide(each) for each in (grad, input, weight, mean, variance, batch_mean, batch_inverse)]
    return aten.native_batch_norm_backward(*tensors, training, epsilon, wanted)


@operator("BatchNormStats")
def batch_norm_stats(input: Any, epsilon: float) -> Any:
    """Mean and inverse deviation of each channel."""
    variance, mean = torch.var_mean(input.float(), _but_channels(input), correction=0)
    return mean, torch.rsqrt(variance + epsilon)


def _update(running: Any, value: Any, momentum: float) -> None:
    if running is not None:
        running.copy_(running.float() * (1 - momentum) + value * momentum)


@operator("BatchNormGatherStatsWithCounts")
def batch_norm_gather_stats(
    _input: Any, means: Any, inverses: Any, mean: Any, variance: Any, momentum: float, epsilon: float, counts: Any
) -> Any:
    """Statistics of all processes (a row each) as those of one batch; the running ones move along."""
    share = counts.float().reshape(-1, 1)
    total = share.sum()
    joint = (means.float() * share).sum(0) / total
    squares = inverses.float().pow(-2) - epsilon + means.float().square()
    spread = (squares * share).sum(0) / total - joint.square()
    _update(mean, joint, momentum)
    _update(variance, spread * total / (total - 1), momentum)
    return joint, torch.rsqrt(spread + epsilon)


@operator("BatchNormReduce")
def batch_norm_sums(input: Any) -> Any:
    """Sums of each channel, and of its squares."""
    wide = input.float()
    return wide.sum(_but_channels(input)), wide.square().sum(_but_channels(input))


@operator("SyncBatchNormGatherStats")
def sync_batch_norm_gather_stats(
    sums: Any, squares: Any, counts: Any, mean: Any, variance: Any, momentum: float, epsilon: float
) -> Any:
    """As `batch_norm_gather_stats`, from sums (a row for each process)."""
    total = counts.float().sum()
    joint = sums.float().sum(0) / total
    spread = squares.float().sum(0) / total - joint.square()
    _update(mean, joint, momentum)
    _update(variance, spread * total / (total - 1), momentum)
    return joint, torch.rsqrt(spread + epsilon)


@operator("BatchNormElemt")
def batch_norm_elements(input: Any, weight: Any, bias: Any, mean: Any, inverse: Any, _epsilon: float) -> Any:
    """The input with given statistics."""
    result = (input.float() - _by_channel(mean, input)) * _by_channel(inverse, input)
    if weight is not None:
        result = result * _by_channel(weight, input)
    return result if bias is None else result + _by_channel(bias, input)


@operator("BatchNormReduceBackward")
def batch_norm_reduce_backward(
    grad: Any, input: Any, mean: Any, inverse: Any, _weight: Any, input_wanted: bool, weight_wanted: bool,
    bias_wanted: bool,
) -> Any:  # fmt: skip
    """Sums of the gradient, of it times the distance from the mean, and the gradients of weight and bias."""
    axes = _but_channels(input)
    plain = grad.float().sum(axes)
    by_distance = (grad.float() * (input.float() - _by_channel(mean, input))).sum(axes)
    return (
        plain if input_wanted else None,
        by_distance if input_wanted else None,
        by_distance * inverse if weight_wanted else None,
        plain if bias_wanted else None,
    )


@operator("BatchNormElemtBackward")
def batch_norm_elements_backward(
    grad: Any, input: Any, mean: Any, inverse: Any, weight: Any, plain: Any, by_distance: Any, counts: Any
) -> Any:
    """The gradient of the input, by the sums of all processes (`batch_norm_reduce_backward`)."""
    total = counts.sum()
    scale = _by_channel(inverse, input)
    distance = input.float() - _by_channel(mean, input)
    centred = grad.float() - _by_channel(plain, input) / total
    centred = centred - distance * scale.square() * _by_channel(by_distance, input) / total
    return centred * (scale if weight is None else scale * _by_channel(weight, input))


@operator("LayerNorm", "FastLayerNorm")
def layer_norm(input: Any, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """Result, mean and inverse deviation."""
    return aten.native_layer_norm(_wide(input), shape, _wide(weight), _wide(bias), epsilon)


@operator("LayerNormBackward")
def layer_norm_backward(
    grad: Any, input: Any, shape: Any, mean: Any, inverse: Any, weight: Any, bias: Any, wanted: Any
) -> Any:
    """Gradients of input, weight and bias."""
    grad, input, mean, inverse, weight, bias = map(_wide, (grad, input, mean, inverse, weight, bias))
    return aten.native_layer_norm_backward(grad, input, shape, mean, inverse, weight, bias, wanted)


@operator("GroupNorm")
def group_norm(
    input: Any, weight: Any, bias: Any, batch: int, channels: int, area: int, groups: int, epsilon: float
) -> Any:
    """Result, mean and inverse deviation of each group."""
    return aten.native_group_norm(
        _wide(input).contiguous(), _wide(weight), _wide(bias), batch, channels, area, groups, epsilon
    )


@operator("GroupNormBackward")
def group_norm_backward(
    grad: Any, input: Any, mean: Any, inverse: Any, weight: Any, batch: int, channels: int, area: int, groups: int,
    wanted: Any,
) -> Any:  # fmt: skip
    """Gradients of input, weight and bias."""
    tensors = [_wide(each) for each in (grad, input, mean, inverse, weight)]
    tensors[:2] = [each.contiguous() for each in tensors[:2]]
    return aten.native_group_norm_backward(*tensors, batch, channels, area, groups, wanted)


def _root_mean_square(input: Any, weight: Any, epsilon: float) -> tuple[Any, Any]:
    """What `weight` is multiplied with, and the inverse root of the mean square, over weight's axes."""
    axes = list(range(-weight.dim(), 0))
    inverse = torch.rsqrt(input.float().square().mean(axes, keepdim=True) + epsilon)
    return input.float() * inverse, inverse


@operator("RmsNorm")
def rms_norm(input: Any, weight: Any, epsilon: float) -> Any:
    """Result, and the inverse root of the mean square."""
    normal, inverse = _root_mean_square(input, weight, epsilon)
    return normal * weight.float(), inverse


@operator("GemmaRmsNorm")
def gemma_rms_norm(input: Any, weight: Any, epsilon: float) -> Any:
    """As `rms_norm`, with a weight that is counted from 1."""
    normal, inverse = _root_mean_square(input, weight, epsilon)
    return normal * (1 + weight.float()), inverse


@operator("RmsNormGrad")
def rms_norm_backward(grad: Any, input: Any, inverse: Any, weight: Any) -> Any:
    """Gradients of input and weight."""
    axes = list(range(-weight.dim(), 0))
    inverse = inverse.float().reshape(*input.shape[: input.dim() - weight.dim()], *[1] * weight.dim())
    normal = input.float() * inverse
    weighted = grad.float() * weight.float()
    of_input = inverse * (weighted - normal * (weighted * normal).mean(axes, keepdim=True))
    return of_input, (grad.float() * normal).sum_to_size(weight.shape)
