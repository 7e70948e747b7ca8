"""The parts of SyncBatchNorm: halves of a batch with joint statistics are the whole batch."""

from __future__ import annotations

import torch
import torch_npu

torch.manual_seed(0)
EPSILON, MOMENTUM = 1e-5, 0.1
whole = torch.randn(8, 3, 4, 5) * 2 + 1
weight, bias, grad = torch.rand(3) + 0.5, torch.randn(3), torch.randn_like(whole)
norm = torch.nn.BatchNorm2d(3, EPSILON, MOMENTUM)
norm.weight.data.copy_(weight)
norm.bias.data.copy_(bias)
watched = whole.clone().requires_grad_()
expected = norm(watched)
expected.backward(grad)

scale, shift = weight.npu(), bias.npu()
halves, grads = whole.npu().split([3, 5]), grad.npu().split([3, 5])
counts = torch.tensor([[float(each.numel() // 3)] for each in halves]).npu()


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found.detach().cpu().reshape(wanted.shape), wanted.detach(), rtol=1e-4, atol=1e-5)


running_mean, running_variance = torch.zeros(3).npu(), torch.ones(3).npu()
means, inverses = zip(*(torch.batch_norm_stats(each, EPSILON) for each in halves), strict=True)
mean, inverse = torch.batch_norm_gather_stats_with_counts(
    halves[0], torch.stack(means), torch.stack(inverses), running_mean, running_variance, MOMENTUM, EPSILON,
    counts.reshape(-1),
)  # fmt: skip
close(running_mean, norm.running_mean)
close(running_variance, norm.running_var)
close(torch.cat([torch.batch_norm_elemt(each, scale, shift, mean, inverse, EPSILON) for each in halves]), expected)

sums, squares = zip(*(torch_npu.batch_norm_reduce(each, EPSILON) for each in halves), strict=True)
running_mean, running_variance = torch.zeros(3).npu(), torch.ones(3).npu()
found = torch_npu.batch_norm_gather_stats_update(
    halves[0], torch.stack(sums), torch.stack(squares), running_mean, running_variance, MOMENTUM, EPSILON,
    counts.reshape(-1),
)  # fmt: skip
close(found[0], mean.cpu())
close(found[1], inverse.cpu())
close(running_variance, norm.running_var)

parts = [
    torch.batch_norm_backward_reduce(each_grad, each, mean, inverse, scale, True, True, True)
    for each_grad, each in zip(grads, halves, strict=True)
]
plain, by_distance, of_weight, of_bias = (sum(part[1:], part[0]) for part in zip(*parts, strict=True))
close(of_weight, norm.weight.grad)
close(of_bias, norm.bias.grad)
joint = counts.reshape(-1).to(torch.int32)
found = [
    torch.batch_norm_backward_elemt(each_grad, each, mean, inverse, scale, plain, by_distance, joint)
    for each_grad, each in zip(grads, halves, strict=True)
]
close(torch.cat(found), watched.grad)
