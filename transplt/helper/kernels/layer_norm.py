"""apex's layer normalization, whose backward pass is given the mean and the inverse deviation of the forward pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = ["layer_norm_backward_affine", "layer_norm_forward_affine"]


@as_compiled
def layer_norm_forward_affine(
    input: torch.Tensor, normalized_shape: Sequence[int], gamma: torch.Tensor, beta: torch.Tensor, epsilon: float
) -> list[torch.Tensor]:
    """The normalized `input` times gamma plus beta, in the type of gamma, and mean and 1 / deviation, float32 [rows].

    The last dimensions, `normalized_shape`, are normalized together; computed in float32 by torch's own operator.
    """
    shape = [int(each) for each in normalized_shape]
    found, mean, inverse = torch.native_layer_norm(widened(input), shape, widened(gamma), widened(beta), epsilon)
    return [found.to(gamma.dtype), mean.reshape(-1), inverse.reshape(-1)]


@as_compiled
def layer_norm_backward_affine(
    dout: torch.Tensor, mean: torch.Tensor, invvar: torch.Tensor, input: torch.Tensor, normalized_shape: Sequence[int],
    gamma: torch.Tensor, beta: torch.Tensor, epsilon: float,
) -> list[torch.Tensor]:  # fmt: skip
    """The gradients of `layer_norm_forward_affine`: of the input, gamma and beta."""
    shape = [int(each) for each in normalized_shape]
    rows = [*input.shape[: input.dim() - len(shape)], *[1] * len(shape)]
    found = torch.ops.aten.native_layer_norm_backward(
        widened(dout), widened(input), shape, mean.view(rows), invvar.view(rows), widened(gamma), widened(beta),
        [True, True, True])  # fmt: skip
    return [each.to(one.dtype) for each, one in zip(found, (input, gamma, beta))]  # noqa: B905
