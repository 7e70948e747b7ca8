"""Own kernels of layers for which PyTorch asks a device for a fused operator: convolution, LSTM and GRU cells,
SyncBatchNorm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .kernel import Call, count, hooks, info_of
from .relabel import to_card, to_cpu

_aten: Any = torch.ops.aten


def convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    info = info_of(_aten.convolution_overrideable.default)
    count("aten::convolution")
    for hook in hooks:
        hook(info, (input, weight, bias), {})
    call = Call()
    x, w, b = (call.unwrap(t, info, n) for t, n in ((input, "input"), (weight, "weight"), (bias, "bias")))
    call.check(info)
    assert call.index is not None
    result = _aten.convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups)
    return to_card(result, call.index)


def convolution_backward(
    grad_output: Any,
    input: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> Any:
    index = input.device.index
    count("aten::convolution_backward")
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    gradients = _aten.convolution_backward(
        to_cpu(grad_output),
        to_cpu(input),
        to_cpu(weight),
        [channels],
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        output_mask,
    )
    return tuple(None if g is None else to_card(g, index) for g in gradients)


def _with_bias(gates: Any, bias: Any) -> Any:
    return to_cpu(gates) if bias is None else to_cpu(gates) + to_cpu(bias)


def lstm_cell(input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """Gate blocks along dim 1, as in the weights: input, forget, candidate, output."""
    index = cx.device.index
    count("aten::_thnn_fused_lstm_cell")
    pre = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    p_in, p_forget, p_candidate, p_out = pre.chunk(4, 1)
    take, keep, candidate, show = p_in.sigmoid(), p_forget.sigmoid(), p_candidate.tanh(), p_out.sigmoid()
    cell = keep * to_cpu(cx) + take * candidate
    saved = torch.cat([take, keep, candidate, show], 1)
    return to_card(show * cell.tanh(), index), to_card(cell, index), to_card(saved, index)


def lstm_cell_backward(grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool) -> Any:
    if grad_hy is None and grad_cy is None:
        return (None,) * 3
    index = cx.device.index
    take, keep, candidate, show = to_cpu(workspace).chunk(4, 1)
    squashed = to_cpu(cy).tanh()
    d_cell = torch.zeros_like(squashed) if grad_cy is None else to_cpu(grad_cy)
    d_show = torch.zeros_like(squashed)
    if grad_hy is not None:
        d_hidden = to_cpu(grad_hy)
        d_show = d_hidden * squashed
        d_cell = d_cell + d_hidden * show * (1 - squashed.square())
    d_pre = torch.cat(
        [
            d_cell * candidate * take * (1 - take),
            d_cell * to_cpu(cx) * keep * (1 - keep),
            d_cell * take * (1 - candidate.square()),
            d_show * show * (1 - show),
        ],
        1,
    )
    d_bias = to_card(d_pre.sum(0), index) if has_bias else None
    return to_card(d_pre, index), to_card(d_cell * keep, index), d_bias


def gru_cell(input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """Gate blocks along dim 1, as in the weights: reset, update, candidate."""
    index = hx.device.index
    count("aten::_thnn_fused_gru_cell")
    from_x, from_h = _with_bias(input_gates, input_bias), _with_bias(hidden_gates, hidden_bias)
    old = to_cpu(hx)
    width = old.shape[1]
    gates = (from_x[:, : 2 * width] + from_h[:, : 2 * width]).sigmoid()
    reset, update = gates.chunk(2, 1)
    candidate_h = from_h[:, 2 * width :]
    candidate = (from_x[:, 2 * width :] + reset * candidate_h).tanh()
    step = old - candidate
    saved = torch.cat([gates, candidate, candidate_h, step], 1)  # private to the two GRU kernels
    return to_card(candidate + update * step, index), to_card(saved, index)


def gru_cell_backward(grad_hy: Any, workspace: Any, has_bias: bool) -> Any:
    index = grad_hy.device.index
    d_new = to_cpu(grad_hy)
    reset, update, candidate, candidate_h, step = to_cpu(workspace).chunk(5, 1)
    d_candidate = d_new * (1 - update) * (1 - candidate.square())
    d_gates = torch.cat([d_candidate * candidate_h * reset * (1 - reset), d_new * step * update * (1 - update)], 1)
    d_x, d_h = torch.cat([d_gates, d_candidate], 1), torch.cat([d_gates, d_candidate * reset], 1)
    out = [d_x, d_h, d_new * update] + ([d_x.sum(0), d_h.sum(0)] if has_bias else [None, None])
    return tuple(None if t is None else to_card(t, index) for t in out)


def _all_but_channels(x: Any) -> list[int]:
    return [0, *range(2, x.dim())]


def _per_channel(t: Any, x: Any) -> Any:
    return t.view([1, -1] + [1] * (x.dim() - 2))


def batch_norm_stats(input: Any, eps: float) -> Any:
    x = to_cpu(input).float()
    dims = _all_but_channels(x)
    index = input.device.index
    return to_card(x.mean(dims), index), to_card(torch.rsqrt(x.var(dims, unbiased=False) + eps), index)


def batch_norm_gather(
    input: Any, mean: Any, invstd: Any, running_mean: Any, running_var: Any, momentum: float, eps: float, counts: Any
) -> Any:
    """Mean and inverse deviation of the joined batch from those of its parts (rows)."""
    index = mean.device.index
    m, s, n = to_cpu(mean), to_cpu(invstd), to_cpu(counts).to(torch.float32).view(-1, 1)
    total = n.sum()
    joined = (m * n).sum(0) / total
    var = (((1 / s**2 - eps) + m**2) * n).sum(0) / total - joined**2
    if running_mean is not None:
        to_cpu(running_mean).mul_(1 - momentum).add_(joined, alpha=momentum)
        to_cpu(running_var).mul_(1 - momentum).add_(var * total / (total - 1), alpha=momentum)
    return to_card(joined, index), to_card(torch.rsqrt(var + eps), index)


def batch_norm_elemt(input: Any, weight: Any, bias: Any, mean: Any, invstd: Any, eps: float) -> Any:
    x = to_cpu(input)
    y = (x - _per_channel(to_cpu(mean), x)) * _per_channel(to_cpu(invstd), x)
    if weight is not None:
        y = y * _per_channel(to_cpu(weight), x)
    if bias is not None:
        y = y + _per_channel(to_cpu(bias), x)
    return to_card(y.to(x.dtype), input.device.index)


def batch_norm_backward_reduce(
    grad_out: Any, input: Any, mean: Any, invstd: Any, weight: Any, input_g: bool, weight_g: bool, bias_g: bool
) -> Any:
    g, x, index = to_cpu(grad_out), to_cpu(input), input.device.index
    dims = _all_but_channels(x)
    sum_dy = g.sum(dims)
    sum_dy_xmu = (g * (x - _per_channel(to_cpu(mean), x))).sum(dims)
    return (
        to_card(sum_dy, index),
        to_card(sum_dy_xmu, index),
        to_card(sum_dy_xmu * to_cpu(invstd), index) if weight_g else None,
        to_card(sum_dy.clone(), index) if bias_g else None,
    )


def batch_norm_backward_elemt(
    grad_out: Any, input: Any, mean: Any, invstd: Any, weight: Any, sum_dy: Any, sum_dy_xmu: Any, counts: Any
) -> Any:
    g, x, n, s = to_cpu(grad_out), to_cpu(input), to_cpu(counts).sum(), to_cpu(invstd)
    centred = (x - _per_channel(to_cpu(mean), x)) * _per_channel(s * s * to_cpu(sum_dy_xmu) / n, x)
    r = (g - _per_channel(to_cpu(sum_dy) / n, x) - centred) * _per_channel(s, x)
    if weight is not None:
        r = r * _per_channel(to_cpu(weight), x)
    return to_card(r, input.device.index)


def kernels() -> dict[str, Callable[..., Any]]:
    """Operator name (without aten::) -> kernel."""
    return {
        "convolution_overrideable": convolution,
        "convolution_backward_overrideable": convolution_backward,
        "_thnn_fused_lstm_cell": lstm_cell,
        "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
        "_thnn_fused_gru_cell": gru_cell,
        "_thnn_fused_gru_cell_backward": gru_cell_backward,
        "batch_norm_stats": batch_norm_stats,
        "batch_norm_gather_stats_with_counts": batch_norm_gather,
        "batch_norm_elemt": batch_norm_elemt,
        "batch_norm_backward_reduce": batch_norm_backward_reduce,
        "batch_norm_backward_elemt": batch_norm_backward_elemt,
    }
