"""A layer norm and an activation as Triton kernels, with their gradients."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_forward(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask)
    tl.store(out + offsets, value * tl.sigmoid(1.702 * value), mask=mask)


@triton.jit
def gelu_backward(x, grad, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask)
    gate = tl.sigmoid(1.702 * value)
    slope = gate + 1.702 * value * gate * (1 - gate)
    tl.store(out + offsets, tl.load(grad + offsets, mask=mask) * slope, mask=mask)


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        gelu_forward[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        gelu_backward[(triton.cdiv(x.numel(), 32),)](x, grad.contiguous(), out, x.numel(), BLOCK=32)
        return out


@triton.jit
def norm_forward(x, weight, out, mean, scale, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * columns + offsets, mask=mask, other=0.0)
    middle = tl.sum(value, axis=0) / columns
    centred = tl.where(mask, value - middle, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    tl.store(mean + row, middle)
    tl.store(scale + row, factor)
    tl.store(out + row * columns + offsets, centred * factor * tl.load(weight + offsets, mask=mask), mask=mask)


@triton.jit
def norm_backward(x, weight, grad, mean, scale, grad_x, grad_weight, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    place = row * columns + offsets
    factor = tl.load(scale + row)
    normal = tl.where(mask, (tl.load(x + place, mask=mask, other=0.0) - tl.load(mean + row)) * factor, 0.0)
    given = tl.load(grad + place, mask=mask, other=0.0)
    wanted = given * tl.load(weight + offsets, mask=mask, other=0.0)
    first = tl.sum(wanted, axis=0) / columns
    second = tl.sum(wanted * normal, axis=0) / columns
    tl.store(grad_x + place, (wanted - first - normal * second) * factor, mask=mask)
    tl.atomic_add(grad_weight + offsets, given * normal, mask=mask)


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        rows, columns = x.shape
        out = torch.empty_like(x)
        mean, scale = torch.empty(rows, device=x.device), torch.empty(rows, device=x.device)
        block = triton.next_power_of_2(columns)
        norm_forward[(rows,)](x, weight, out, mean, scale, columns, eps, BLOCK=block)
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.block = block
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, mean, scale = ctx.saved_tensors
        grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(weight)
        norm_backward[(x.shape[0],)](
            x, weight, grad.contiguous(), mean, scale, grad_x, grad_weight, x.shape[1], BLOCK=ctx.block
        )
        return grad_x, grad_weight, None
