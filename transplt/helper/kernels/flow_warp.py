"""FlowNet2's warping of an image by a flow, and its norm over channels."""

from __future__ import annotations

import torch

from transplt.helper.kernels.recompute import as_compiled, kernel_gradients, widened

__all__ = ["channelnorm_backward", "channelnorm_forward", "resample2d_backward", "resample2d_forward"]


def _warped(image: torch.Tensor, flow: torch.Tensor, kernel_size: int, bilinear: bool) -> torch.Tensor:
    batch, channels, height, width = image.shape
    rows, columns = flow.shape[2:]
    flat = widened(image).flatten(2)
    x = torch.arange(columns, device=flow.device, dtype=flow.dtype) + flow[:, 0]
    y = torch.arange(rows, device=flow.device, dtype=flow.dtype)[:, None] + flow[:, 1]

    def read(down: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        # a flow that is no number reads some pixel; its weights are none either
        row, column = down.nan_to_num(0).clamp(0, height - 1), right.nan_to_num(0).clamp(0, width - 1)
        index = row.long() * width + column.long()
        found = flat.gather(2, index.flatten(1)[:, None].expand(-1, channels, -1))
        return found.reshape(batch, channels, rows, columns)

    if not bilinear:
        near_x, near_y = (x + 0.5).floor(), (y + 0.5).floor()
        return read(near_y.clamp(0, rows - 1), near_x.clamp(0, columns - 1))
    left, top = x.detach().floor(), y.detach().floor()
    a, b = (x - left)[:, None], (y - top)[:, None]
    # the sides of the flow bound what is read, and a window over 1 begins there
    x0, x1 = left.clamp(0, columns - 1), (left + 1).clamp(0, columns - 1)
    y0, y1 = top.clamp(0, rows - 1), (top + 1).clamp(0, rows - 1)
    found = flat.new_zeros(batch, channels, rows, columns)
    for fy in range(kernel_size):
        for fx in range(kernel_size):
            above = read(y0 + fy, x0 + fx) * (1 - a) + read(y0 + fy, x1 + fx) * a
            below = read(y1 + fy, x0 + fx) * (1 - a) + read(y1 + fy, x1 + fx) * a
            found = found + above * (1 - b) + below * b
    return found


@as_compiled
def resample2d_forward(
    input1: torch.Tensor, input2: torch.Tensor, output: torch.Tensor, kernel_size: int, bilinear: bool = True
) -> int:
    """The image `input1` [batch, channels, height, width] at each pixel plus the flow `input2` (x, y), into `output`.

    Flow [batch, 2, height, width]. Places outside are those of the border, the nearest pixel where not `bilinear`.

    With kernel_size over 1, sums over windows that begin at the place, the last row and column again where they go
    over the border, where the compiled one reads other memory. Memory: four reads of the size of `output`.
    """
    output.copy_(_warped(input1, widened(input2), kernel_size, bilinear))
    return 1


@as_compiled
def resample2d_backward(
    input1: torch.Tensor, input2: torch.Tensor, grad_output: torch.Tensor, grad_input1: torch.Tensor,
    grad_input2: torch.Tensor, kernel_size: int, bilinear: bool = True,
) -> int:  # fmt: skip
    """The gradients of the bilinear `resample2d_forward`, as the compiled one gives in both modes: added to
    `grad_input1`, written into `grad_input2`.
    """
    image, flow = kernel_gradients(
        lambda one, two: _warped(one, two, kernel_size, True), (widened(input1), widened(input2)), grad_output
    )
    grad_input1.add_(image)
    grad_input2.copy_(flow)
    return 1


@as_compiled
def channelnorm_forward(input1: torch.Tensor, output: torch.Tensor, norm_deg: int) -> int:
    """The root of the sum of squares over channels, [batch, 1, height, width], into `output`, whatever `norm_deg`."""
    output.copy_(widened(input1).square().sum(1, keepdim=True).sqrt())
    return 1


@as_compiled
def channelnorm_backward(
    input1: torch.Tensor, output: torch.Tensor, grad_output: torch.Tensor, grad_input1: torch.Tensor, norm_deg: int
) -> int:
    """The gradient of `channelnorm_forward`, whose result is `output`, into `grad_input1`."""
    grad_input1.copy_(widened(grad_output) * widened(input1) / (widened(output) + 1e-9))
    return 1
