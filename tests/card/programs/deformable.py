"""Deformable convolution: without offsets a plain one, with whole offsets the image moved, and its gradients."""

from __future__ import annotations

import torch
import torch_npu
from torch.nn import functional

torch.manual_seed(0)
KERNEL, STRIDE, PADDING, DILATION = [3, 2], [1, 1, 2, 1], [1, 1, 2, 2], [1, 1, 1, 2]
images, weight, bias = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 2), torch.randn(6)
plain = functional.conv2d(images, weight, bias, (2, 1), (1, 2), (1, 2), groups=2)
taps = 2 * KERNEL[0] * KERNEL[1]  # two groups of channels with offsets of their own
offsets = torch.zeros(2, 3 * taps, *plain.shape[2:])
offsets[:, 2 * taps :] = 1


def convolved(inputs: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
    found, _ = torch_npu.npu_deformable_conv2d(
        inputs.npu(), weight.npu(), ways.npu(), bias.npu(), kernel_size=KERNEL, stride=STRIDE, padding=PADDING,
        dilation=DILATION, groups=2, deformable_groups=2, modulated=True,
    )  # fmt: skip
    return found.cpu()


torch.testing.assert_close(convolved(images, offsets), plain, rtol=1e-4, atol=1e-4)

halved = offsets.clone()
halved[:, 2 * taps :] = 0.5
torch.testing.assert_close(convolved(images, halved), (plain - bias[:, None, None]) / 2 + bias[:, None, None])

# One step to the right: what the kernel reads lies one column further.
moved = offsets.clone()
moved[:, :taps] = 1
shifted = functional.pad(images, (0, 1))[..., 1:]
inner = (slice(None), slice(None), slice(None), slice(2, -2))
torch.testing.assert_close(convolved(images, moved)[inner], functional.conv2d(
    shifted, weight, bias, (2, 1), (1, 2), (1, 2), groups=2
)[inner], rtol=1e-4, atol=1e-4)  # fmt: skip

# Gradients are slopes, where no offset is whole.
drawn = offsets + torch.rand_like(offsets) * 0.8 + 0.1
leaves = [each.npu().requires_grad_() for each in (images, drawn)]
result, _ = torch_npu.npu_deformable_conv2d(
    leaves[0], weight.npu(), leaves[1], bias.npu(), kernel_size=KERNEL, stride=STRIDE, padding=PADDING,
    dilation=DILATION, groups=2, deformable_groups=2, modulated=True,
)  # fmt: skip
result.square().sum().backward()
for at, leaf in enumerate(leaves):
    way = torch.randn_like(leaf, device="cpu")
    ends = []
    for sign in (1, -1):
        inputs = [images, drawn]
        inputs[at] = inputs[at] + sign * 1e-3 * way
        ends.append(convolved(*inputs).double().square().sum())
    slope, found = (ends[0] - ends[1]) / 2e-3, (leaf.grad.cpu() * way).sum().double()
    assert abs(slope - found) < 0.02 * abs(slope) + 0.5, (at, slope, found)
