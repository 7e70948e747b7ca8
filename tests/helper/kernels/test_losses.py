"""Focal losses and the parts of a batch normalization over ranks in torch, against loops and torch's own."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.helper.kernels.rows import check_rows, close, kernels, np, numbers, torch

pytestmark = pytest.mark.torch
focal, norm = kernels("focal_loss"), kernels("sync_bn")
GAMMA, ALPHA = 1.5, 0.25


def test_each_row_names_a_function_that_takes_its_arguments() -> None:
    check_rows("losses", "focal_loss", "sync_bn")


def sigmoid_loss(logits: Any, targets: Any, weight: Any, first: int) -> Any:
    out = np.zeros(logits.shape)
    for n, target in enumerate(targets.tolist()):
        for c in range(logits.shape[1]):
            p = 1 / (1 + math.exp(-float(logits[n, c])))
            out[n, c] = (-ALPHA * (1 - p) ** GAMMA * math.log(p) if target == c + first
                         else -(1 - ALPHA) * p**GAMMA * math.log(1 - p))  # fmt: skip
            out[n, c] *= 1 if weight is None else float(weight[target])
            if first and target < 0:
                out[n, c] = 0
    return out


@pytest.mark.parametrize("weighed", [False, True])
def test_the_focal_loss_of_mmcv(weighed: bool) -> None:
    logits, targets = numbers(6, 4, low=-3, high=3), torch.tensor([0, 3, 1, 2, 3, 0])
    weight = numbers(4, seed=1, low=0.5, high=2) if weighed else torch.empty(0)
    output, slope = torch.full_like(logits, 5), torch.full_like(logits, 5)
    focal.sigmoid_focal_loss_forward(logits, targets, weight, output, gamma=GAMMA, alpha=ALPHA)
    close(output, sigmoid_loss(logits, targets, weight if weighed else None, 0))
    focal.sigmoid_focal_loss_backward(logits, targets, weight, slope, gamma=GAMMA, alpha=ALPHA)
    up, down = torch.empty_like(logits), torch.empty_like(logits)
    focal.sigmoid_focal_loss_forward(logits + 1e-6, targets, weight, up, GAMMA, ALPHA)
    focal.sigmoid_focal_loss_forward(logits - 1e-6, targets, weight, down, GAMMA, ALPHA)
    close(slope, (up - down) / 2e-6, 1e-7)


def test_a_class_that_is_none_and_large_logits() -> None:
    logits = torch.tensor([[200.0, -200.0], [1.0, 2.0]])
    output = torch.empty_like(logits)
    focal.sigmoid_focal_loss_forward(logits, torch.tensor([1, 2]), torch.empty(0), output, 2.0, 0.25)
    assert output.isfinite().all()
    close(output[1], sigmoid_loss(logits[1:].double(), torch.tensor([2]), None, 0)[0] * 0
          + [-0.75 * p**2 * math.log(1 - p) for p in torch.sigmoid(logits[1]).tolist()], 1e-5)  # fmt: skip
    focal.sigmoid_focal_loss_backward(logits, torch.tensor([1, 2]), torch.empty(0), output, 2.0, 0.25)
    assert output.isfinite().all()
    half = torch.empty(2, 2, dtype=torch.float16)
    focal.sigmoid_focal_loss_forward(logits.half(), torch.tensor([1, 2]), torch.empty(0).half(), half, 2.0, 0.25)
    assert half.isfinite().all()
    none = torch.empty(0, 2)
    focal.sigmoid_focal_loss_forward(none, torch.empty(0, dtype=torch.int64), torch.empty(0), none.clone(), 2.0, 0.25)


@pytest.mark.parametrize("weighed", [False, True])
def test_the_focal_loss_of_a_softmax(weighed: bool) -> None:
    logits, targets = numbers(5, 4, low=-3, high=3), torch.tensor([0, 3, -1, 2, 1])
    weight = numbers(4, seed=1, low=0.5, high=2) if weighed else torch.empty(0)
    given = logits.clone().requires_grad_()
    p = given.softmax(1)[torch.arange(5), targets.clamp(min=0)]
    wanted = -ALPHA * (1 - p) ** GAMMA * p.log() * (targets >= 0)
    wanted = wanted * weight[targets.clamp(min=0)] if weighed else wanted
    output, buff, slope = torch.full((5,), 5.0), torch.full((5,), 5.0), torch.full((5, 4), 5.0)
    output, buff, slope = output.double(), buff.double(), slope.double()
    probabilities = logits.softmax(1)
    focal.softmax_focal_loss_forward(probabilities, targets, weight, output, gamma=GAMMA, alpha=ALPHA)
    close(output, wanted.detach())
    focal.softmax_focal_loss_backward(probabilities, targets, weight, buff, slope, gamma=GAMMA, alpha=ALPHA)
    (grad,) = torch.autograd.grad(wanted.sum(), given)
    close(slope, grad)
    assert float(buff[2]) == 0.0


def test_the_focal_loss_with_a_background() -> None:
    logits, targets = numbers(6, 3, low=-3, high=3), torch.tensor([0, 3, -1, 2, 1, 0], dtype=torch.int32)
    found = focal.sigmoid_focalloss_forward(logits, targets, 3, GAMMA, ALPHA)
    close(found, sigmoid_loss(logits, targets, None, 1))
    grad = numbers(6, 3, seed=2)
    slope = focal.sigmoid_focalloss_backward(logits, targets, grad, 3, GAMMA, ALPHA)
    up = focal.sigmoid_focalloss_forward(logits + 1e-6, targets, 3, GAMMA, ALPHA)
    down = focal.sigmoid_focalloss_forward(logits - 1e-6, targets, 3, GAMMA, ALPHA)
    close(slope, grad * (up - down) / 2e-6, 1e-7)
    large = focal.sigmoid_focalloss_forward(torch.tensor([[300.0, -300.0]]), torch.tensor([2]), 2, 2.0, 0.25)
    close(large, torch.tensor([[0.75 * 300, 0.25 * 87.3365447]]), 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_batch_normalization_in_parts(dtype: str) -> None:
    """With one rank, they are what torch's own gives."""
    given = numbers(4, 3, 5, dtype=dtype)
    weight, bias = numbers(3, seed=1, dtype="float32"), numbers(3, seed=2, dtype="float32")
    mean, var, std = (torch.zeros(3) for _ in range(3))
    running_mean, running_var = torch.ones(3), torch.ones(3)
    normed, output = torch.zeros(4, 3, 5), torch.zeros_like(given)
    norm.sync_bn_forward_mean(given, mean)
    norm.sync_bn_forward_var(given, mean, var)
    momentum = torch.tensor([0.1])
    running = running_mean, running_var
    norm.sync_bn_forward_output(given, mean, var, weight, bias, *running, normed, std, output, eps=1e-5,
                                momentum=momentum, group_size=1)  # fmt: skip
    again = given.float().requires_grad_()
    wanted_mean, wanted_var = torch.ones(3), torch.ones(3)
    scale, shift = weight.clone().requires_grad_(), bias.clone().requires_grad_()
    wanted = torch.nn.functional.batch_norm(again, wanted_mean, wanted_var, scale, shift, True, 0.1, 1e-5)
    tolerance = 1e-5 if dtype == "float32" else 3e-3
    assert output.dtype == given.dtype
    close(output, wanted.detach(), tolerance)
    close(running_mean, wanted_mean, 1e-6)
    close(running_var, wanted_var, 1e-6)
    grad = numbers(4, 3, 5, seed=3, dtype=dtype)
    to_weight, to_bias, to_input = torch.ones(3), torch.ones(3), torch.ones_like(given)
    norm.sync_bn_backward_param(grad, normed, to_weight, to_bias)
    norm.sync_bn_backward_data(grad, weight, to_weight, to_bias, normed, std, to_input)
    wanted_grads = torch.autograd.grad(wanted, (again, scale, shift), grad.float())
    for one, two in zip((to_input, to_weight, to_bias), wanted_grads, strict=True):
        close(one, two, tolerance)
    norm.sync_bn_forward_output(given, mean, var, weight[:0], bias[:0], running_mean[:0], running_var[:0], normed[:0],
                                std[:0], output, 1e-5, 0.1, 1)  # fmt: skip
    close(output, normed, tolerance)
