"""Filters, activations, correlations and warping in torch, against loops written from their definitions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from tests.helper.kernels.rows import check_rows, close, kernels, np, numbers, torch

pytestmark = pytest.mark.torch
upfirdn, act, corr, warp = (kernels(name) for name in ("upfirdn", "bias_act", "correlation", "flow_warp"))


def test_each_row_names_a_function_that_takes_its_arguments() -> None:
    check_rows("images", "upfirdn", "bias_act", "correlation", "flow_warp")


# --- upfirdn2d -------------------------------------------------------------------------------------------------------


def filtered(image: Any, kernel: Any, up: Any, down: Any, pad: Any) -> Any:
    """One plane: zeros put in, padded or cut, convolved, thinned out."""
    (ux, uy), (dx, dy), (x0, x1, y0, y1) = up, down, pad
    height, width = image.shape
    spread = np.zeros((height * uy, width * ux))
    spread[::uy, ::ux] = image
    framed = np.zeros((height * uy + max(y0, 0) + max(y1, 0), width * ux + max(x0, 0) + max(x1, 0)))
    framed[max(y0, 0) :, max(x0, 0) :][: height * uy, : width * ux] = spread
    framed = framed[max(-y0, 0) : framed.shape[0] - max(-y1, 0), max(-x0, 0) : framed.shape[1] - max(-x1, 0)]
    kh, kw = kernel.shape
    out = np.zeros((framed.shape[0] - kh + 1, framed.shape[1] - kw + 1))
    for y, x, i, j in itertools.product(range(out.shape[0]), range(out.shape[1]), range(kh), range(kw)):
        out[y, x] += framed[y + i, x + j] * kernel[kh - 1 - i, kw - 1 - j]
    return out[::dy, ::dx]


FILTERS = [
    ((1, 1), (1, 1), (2, 1, 2, 1)), ((2, 2), (1, 1), (2, 1, 2, 1)), ((1, 1), (2, 2), (1, 1, 1, 1)),
    ((2, 3), (3, 2), (4, 0, -1, 5)), ((1, 1), (1, 1), (-1, 2, 3, -1)), ((3, 1), (1, 2), (0, 0, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("up", "down", "pad"), FILTERS)
def test_images_are_spread_padded_filtered_and_thinned(up: Any, down: Any, pad: Any) -> None:
    image, kernel = numbers(2, 3, 7, 6), numbers(3, 4, seed=1)
    wanted = np.stack([[filtered(plane, kernel.numpy(), up, down, pad) for plane in each] for each in image.numpy()])
    planes = upfirdn.upfirdn2d(image.reshape(6, 7, 6, 1), kernel, *up, *down, *pad)
    assert planes.is_contiguous()
    close(planes.reshape(wanted.shape), wanted)
    close(upfirdn.upfirdn2d(image, kernel, *up, *down, *pad, False, 1.0), wanted)
    close(upfirdn.upfirdn2d(image, kernel.flip([0, 1]), *up, *down, *pad, True, 2.5), wanted * 2.5)
    minor = upfirdn.upfirdn2d(image.permute(0, 2, 3, 1).contiguous(), kernel, *up, *down, *pad)
    close(minor.permute(0, 3, 1, 2), wanted)


def test_the_gradient_of_a_filter_is_the_filter_the_other_way() -> None:
    """As autograd functions of projects have it: up and down change places, the kernel is turned round."""
    image, kernel = numbers(1, 1, 6, 5).requires_grad_(), numbers(3, 4, seed=1)
    (ux, uy), (dx, dy), (x0, x1, y0, y1) = (2, 1), (1, 2), (2, 1, 1, 1)
    found = upfirdn.upfirdn2d.__wrapped__(image, kernel, ux, uy, dx, dy, x0, x1, y0, y1, False, 1.0)
    grad = numbers(*found.shape, seed=2)
    (wanted,) = torch.autograd.grad(found, image, grad)
    height, width = found.shape[2:]
    pads = (4 - x0 - 1, 5 * ux - width * dx + x0 - ux + 1, 3 - y0 - 1, 6 * uy - height * dy + y0 - uy + 1)
    close(upfirdn.upfirdn2d(grad, kernel, dx, dy, ux, uy, *pads, True, 1.0), wanted)


def test_kernels_record_no_gradients_and_keep_types_in_autocast() -> None:
    image = numbers(1, 1, 5, 5, dtype="float32").requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = upfirdn.upfirdn2d(image, torch.ones(2, 2), 1, 1, 1, 1, 0, 0, 0, 0, False, 1.0)
    assert found.dtype == torch.float32 and not found.requires_grad
    half = image.detach().half()
    close(upfirdn.upfirdn2d(half, torch.ones(2, 2), 1, 1, 1, 1, 0, 0, 0, 0, False, 1.0), found.half(), 2e-3)
    assert upfirdn.upfirdn2d(half[:0], torch.ones(2, 2), 1, 1, 1, 1, 0, 0, 0, 0, False, 1.0).shape == (0, 1, 4, 4)
    assert upfirdn.upfirdn2d(half[:0].view(0, 5, 5, 1), torch.ones(2, 2), 1, 1, 1, 1, 0, 0, 0, 0).shape == (0, 4, 4, 1)


# --- bias and activation ---------------------------------------------------------------------------------------------


def test_a_leaky_relu_with_bias_and_its_gradient() -> None:
    x, bias, none = numbers(2, 3, 4, 5), numbers(3, seed=1), torch.empty(0)
    x[0, 0, 0, 0] = -float(bias[0])  # exactly 0 is not above it
    added = x + bias.view(1, 3, 1, 1)
    wanted = torch.where(added > 0, added, added * 0.2) * math.sqrt(2)
    out = act.fused_bias_act(x, bias, none, 3, 0, 0.2, math.sqrt(2))
    close(out, wanted)
    close(act.fused_bias_act(x, none, none, 1, 0, 0.2, 3.0), x * 3)
    grad = numbers(2, 3, 4, 5, seed=2)
    slope = torch.where(out > 0, torch.ones_like(out), 0.2) * math.sqrt(2)
    close(act.fused_bias_act(grad, none, out, 3, 1, 0.2, math.sqrt(2)), grad * slope)
    close(act.fused_bias_act(grad, bias, out, 3, 1, 0.2, 1.0), (grad + bias.view(1, 3, 1, 1)) * slope / math.sqrt(2))
    close(act.fused_bias_act(grad, none, none, 3, 1, 0.2, 1.0), grad * 0.2)
    assert not act.fused_bias_act(grad, none, out, 3, 2, 0.2, 1.0).any()
    half = act.fused_bias_act(x.half(), bias.half(), none, 3, 0, 0.2, 1.0)
    assert half.dtype == torch.float16
    close(half, wanted / math.sqrt(2), 2e-3)


def test_a_bias_of_another_length_goes_round() -> None:
    x, bias = numbers(2, 3, 4), numbers(2, seed=1)
    wanted = x.clone().reshape(-1)
    for index in range(x.numel()):
        wanted[index] += bias[(index // 4) % 2]
    close(act.fused_bias_act(x, bias, torch.empty(0), 1, 0, 0.0, 1.0), wanted.reshape(x.shape))


def activations() -> dict[int, Any]:
    functional = torch.nn.functional
    return {
        1: lambda x: x, 2: functional.relu, 3: lambda x: functional.leaky_relu(x, 0.3), 4: torch.tanh, 5: torch.sigmoid,
        6: functional.elu, 7: functional.selu, 8: functional.softplus, 9: lambda x: x * torch.sigmoid(x),
    }  # fmt: skip


@pytest.mark.parametrize("clamp", [-1.0, 0.6])
@pytest.mark.parametrize("which", range(1, 10))
def test_activations_with_their_derivatives(which: int, clamp: float) -> None:
    gain, none = 1.3, torch.empty(0)
    x, b = numbers(2, 3, 5, low=-2, high=2), numbers(3, seed=1)
    dy, ddx = numbers(2, 3, 5, seed=2), numbers(2, 3, 5, seed=3)
    summed = (x + b.view(1, 3, 1)).requires_grad_()
    y = activations()[which](summed) * gain
    y = y.clamp(-clamp, clamp) if clamp >= 0 else y
    found = act.bias_act(x, b, none, none, none, 0, 1, which, 0.3, gain, clamp)
    close(found, y.detach())
    (dx,) = torch.autograd.grad(y, summed, dy, create_graph=True)
    xref, yref = (x, none) if which == 9 else (none, found)
    given = b if which == 9 else none
    close(act.bias_act(dy, given, xref, yref, none, 1, 1, which, 0.3, gain, clamp), dx.detach())
    second = torch.zeros_like(x)
    if dx.requires_grad:
        (second,) = torch.autograd.grad(dx, summed, ddx, allow_unused=True)
        second = torch.zeros_like(x) if second is None else second
    close(act.bias_act(ddx, given, xref, yref, dy, 2, 1, which, 0.3, gain, clamp), second.detach(), 1e-8)


def test_an_activation_keeps_layout_and_type_and_large_numbers() -> None:
    none = torch.empty(0)
    x = numbers(2, 3, 4, 4, dtype="float16").to(memory_format=torch.channels_last)
    found = act.bias_act(x, none, none, none, none, 0, 1, 4, 0.0, 1.0, -1.0)
    assert found.stride() == x.stride() and found.dtype == torch.float16
    large = torch.tensor([-500.0, 500.0])
    for which in range(1, 10):
        assert act.bias_act(large, none, none, none, none, 0, 0, which, 0.2, 1.0, -1.0).isfinite().all(), which
    with pytest.raises(ValueError, match="no activation 12"):
        act.bias_act(large, none, none, none, none, 0, 0, 12, 0.2, 1.0, -1.0)


# --- correlation -----------------------------------------------------------------------------------------------------


def at(image: Any, y: int, x: int) -> Any:
    inside = 0 <= y < image.shape[-2] and 0 <= x < image.shape[-1]
    return image[:, y, x] if inside else image[:, 0, 0] * 0


def flownet(one: Any, two: Any, pad: int, size: int, most: int, stride1: int, stride2: int) -> Any:
    radius, steps = (size - 1) // 2, most // stride2
    height = math.ceil((one.shape[2] + 2 * pad - 2 * (radius + most)) / stride1)
    width = math.ceil((one.shape[3] + 2 * pad - 2 * (radius + most)) / stride1)
    shifts = [(j * stride2, i * stride2) for j in range(-steps, steps + 1) for i in range(-steps, steps + 1)]
    out = np.zeros((one.shape[0], len(shifts), height, width))
    window = range(-radius, radius + 1)
    for n, (d, (dy, dx)), y, x in itertools.product(
        range(one.shape[0]), enumerate(shifts), range(height), range(width)
    ):
        y1, x1 = y * stride1 + most - pad, x * stride1 + most - pad
        out[n, d, y, x] = sum(float(at(one[n], y1 + j, x1 + i) @ at(two[n], y1 + dy + j, x1 + dx + i))
                              for j in window for i in window) / (size * size * one.shape[1])  # fmt: skip
    return out


FLOWNETS = [(2, 1, 2, 1, 1), (4, 1, 4, 1, 2), (0, 1, 2, 1, 1), (3, 3, 2, 2, 1), (4, 1, 3, 2, 2)]


@pytest.mark.parametrize("settings", FLOWNETS)
def test_flownets_correlation(settings: tuple[int, ...]) -> None:
    one, two = numbers(1, 2, 4, 5), numbers(1, 2, 4, 5, seed=1)
    scratch, output = one.new_empty(0), one.new_empty(0)
    assert corr.correlation_forward(one, two, scratch, scratch, output, *settings, 1) == 1
    close(output, flownet(one, two, *settings))

    class Correlation(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            result = a.new_empty(0)
            corr.correlation_forward(a, b, a.new_empty(0), a.new_empty(0), result, *settings, 1)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            to_a, to_b = a.new_empty(0), b.new_empty(0)
            corr.correlation_backward(a, b, scratch, scratch, grad, to_a, to_b, *settings, 1)
            return to_a, to_b

    torch.autograd.gradcheck(Correlation.apply, (one.requires_grad_(), two.requires_grad_()), fast_mode=True)


def test_correlation_of_halves_adds_up_in_float32() -> None:
    one, two = numbers(1, 64, 4, 4, dtype="float16"), numbers(1, 64, 4, 4, seed=1, dtype="float16")
    output = one.new_empty(0)
    corr.correlation_forward(one, two, output.clone(), output.clone(), output, 1, 1, 1, 1, 1)
    assert output.dtype == torch.float16
    close(output, flownet(one.double(), two.double(), 1, 1, 1, 1, 1), 1e-3)


SAMPLERS = [
    (1, 1, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1), (3, 2, 3, 5, 1, 2, 1, 2, 2, 1, 2, 1), (1, 1, 4, 2, 0, 1, 1, 1, 3, 2, 1, 2),
]  # fmt: skip


def sampled(one: Any, two: Any, kh: int, kw: int, patch_h: int, patch_w: int, ph: int, pw: int, dil_h: int, dil_w: int,
            dp_h: int, dp_w: int, dh: int, dw: int) -> Any:  # fmt: skip
    batch, _, height, width = one.shape
    oh, ow = (height + 2 * ph - (kh - 1) * dil_h - 1) // dh + 1, (width + 2 * pw - (kw - 1) * dil_w - 1) // dw + 1
    out = np.zeros((batch, patch_h, patch_w, oh, ow))
    rad_h, rad_w = dp_h * (patch_h - 1) // 2, dp_w * (patch_w - 1) // 2
    for n, p, q, y, x in itertools.product(range(batch), range(patch_h), range(patch_w), range(oh), range(ow)):
        for i, j in itertools.product(range(kh), range(kw)):
            i1, j1 = y * dh - ph + i * dil_h, x * dw - pw + j * dil_w
            i2, j2 = i1 + p * dp_h - rad_h, j1 + q * dp_w - rad_w
            out[n, p, q, y, x] += float(at(one[n], i1, j1) @ at(two[n], i2, j2))
    return out


@pytest.mark.parametrize("settings", SAMPLERS)
def test_the_correlation_sampler(settings: tuple[int, ...]) -> None:
    one, two = numbers(2, 3, 5, 6).requires_grad_(), numbers(2, 3, 5, 6, seed=1).requires_grad_()
    wanted = sampled(one.detach(), two.detach(), *settings)
    close(corr.correlation_sampler_forward(one, two, *settings), wanted)
    into = torch.empty(wanted.shape, dtype=one.dtype)
    corr.correlation_into_forward(one, two, into, *settings)
    close(into, wanted)
    grad = numbers(*wanted.shape, seed=2)
    first, second = corr.correlation_sampler_backward(one, two, grad, *settings)
    close((first * one).sum().detach(), (grad * into).sum())  # the product is linear in each map
    close((second * two).sum().detach(), (grad * into).sum())
    moved = torch.zeros_like(one)
    moved[1, 2, 3, 4] = 1
    close((first * moved).sum(), (grad * corr.correlation_sampler_forward(moved, two, *settings)).sum())
    close((second * moved).sum(), (grad * corr.correlation_sampler_forward(one, moved, *settings)).sum())
    third, fourth = torch.empty_like(one), torch.empty_like(two)
    corr.correlation_into_backward(grad, one, two, third, fourth, *settings)
    close(torch.stack([third, fourth]), torch.stack([first, second]))


def windowed(one: Any, two: Any, places: Any, radius: int) -> Any:
    """Bilinear reads of the second map around each place, times the pixel of the first: x outside, y inside."""
    batch, height, width, _ = one.shape
    side = 2 * radius + 1
    out = np.zeros((batch, places.shape[1], side * side, height, width))
    for b, n, y, x in itertools.product(range(batch), range(places.shape[1]), range(height), range(width)):
        px, py = (float(each) for each in places[b, n, y, x])
        for ix, iy in itertools.product(range(side), range(side)):
            qx, qy = px + ix - radius, py + iy - radius
            fx, fy = math.floor(qx), math.floor(qy)
            value = 0.0
            for jx, jy in itertools.product((0, 1), (0, 1)):
                weight = (qx - fx if jx else 1 - qx + fx) * (qy - fy if jy else 1 - qy + fy)
                value += weight * float(at(two[b].permute(2, 0, 1), fy + jy, fx + jx) @ one[b, y, x])
            out[b, n, ix * side + iy, y, x] = value
    return out


@pytest.mark.parametrize("piece", [2**26, 40])
def test_rafts_correlation(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.correlation"), "_CORRELATION_PIECE", piece)
    one, two = numbers(2, 3, 4, 5), numbers(2, 2, 3, 5, seed=1)
    places = numbers(2, 2, 3, 4, 2, seed=2, low=-3, high=5)
    places[0, 0, 0, 0] = torch.tensor([1.0, 0.0])
    places[0, 0, 0, 1] = torch.tensor([1e12, -1e12])
    (found,) = corr.alt_corr_forward(one, two, places, 2)
    close(found, windowed(one, two, places, 2))
    grad = numbers(*found.shape, seed=3)
    to_one, to_two, to_places = corr.alt_corr_backward(one, two, places, grad, 2)
    assert to_places.shape == places.shape and not to_places.any()
    close((to_one * one).sum(), (grad * found).sum())
    for index, (place, mine) in enumerate(((one, to_one), (two, to_two))):
        moved = torch.zeros_like(place)
        moved[1, 1, 2, 3] = 1
        pair = (moved, two) if index == 0 else (one, moved)
        close((mine * moved).sum(), (grad * corr.alt_corr_forward(*pair, places, 2)[0]).sum())


# --- warping and norm ------------------------------------------------------------------------------------------------


def warped(image: Any, flow: Any, bilinear: bool) -> Any:
    batch, _, height, width = image.shape
    out = np.zeros(image.shape)
    for b, y, x in itertools.product(range(batch), range(height), range(width)):
        px, py = x + float(flow[b, 0, y, x]), y + float(flow[b, 1, y, x])

        def read(row: float, column: float, b: int = b) -> Any:
            return image[b, :, int(min(max(row, 0), height - 1)), int(min(max(column, 0), width - 1))].numpy()

        if not bilinear:
            out[b, :, y, x] = read(math.floor(py + 0.5), math.floor(px + 0.5))
            continue
        fx, fy = math.floor(px), math.floor(py)
        a, c = px - fx, py - fy
        out[b, :, y, x] = ((1 - a) * (1 - c) * read(fy, fx) + a * (1 - c) * read(fy, fx + 1)
                           + (1 - a) * c * read(fy + 1, fx) + a * c * read(fy + 1, fx + 1))  # fmt: skip
    return out


@pytest.mark.parametrize("bilinear", [True, False])
def test_warping_by_a_flow(bilinear: bool) -> None:
    image, flow = numbers(2, 3, 4, 5), numbers(2, 2, 4, 5, seed=1, low=-3, high=3)
    flow[0, :, 0, 0] = 0.0
    flow[0, :, 1, 1] = 0.5
    output = torch.full_like(image, 7)
    warp.resample2d_forward(image, flow, output, 1, bilinear)
    close(output, warped(image, flow, bilinear))
    half = torch.zeros_like(image, dtype=torch.float16)
    warp.resample2d_forward(image.half(), flow.float(), half, 1, bilinear)
    close(half, output, 3e-3)


def test_a_flow_that_is_no_number_does_not_stop_a_program() -> None:
    image, flow = numbers(1, 2, 4, 5), torch.zeros(1, 2, 4, 5).double()
    flow[0, 0, 1, 1] = math.nan
    output = torch.zeros_like(image)
    warp.resample2d_forward(image, flow, output, 1, True)
    assert output[0, :, 1, 1].isnan().all() and int(output.isnan().sum()) == 2
    warp.resample2d_forward(image, flow, output, 1, False)
    assert output.isfinite().all()


def test_gradients_of_warping_are_added_and_written() -> None:
    class Warp(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, image: Any, flow: Any) -> Any:
            ctx.save_for_backward(image, flow)
            output = torch.zeros_like(image)
            warp.resample2d_forward(image, flow, output, 1, True)
            return output

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            image, flow = ctx.saved_tensors
            to_image, to_flow = torch.zeros_like(image), torch.full_like(flow, 9.0)
            warp.resample2d_backward(image, flow, grad, to_image, to_flow, 1, True)
            return to_image, to_flow

    inputs = numbers(1, 2, 3, 4).requires_grad_(), numbers(1, 2, 3, 4, seed=1, low=-2, high=2).requires_grad_()
    torch.autograd.gradcheck(Warp.apply, inputs, fast_mode=True)


def test_the_norm_over_channels() -> None:
    image = numbers(2, 3, 4, 5)
    output, grad = torch.zeros(2, 1, 4, 5, dtype=image.dtype), numbers(2, 1, 4, 5, seed=1)
    warp.channelnorm_forward(image, output, 2)
    close(output, image.norm(dim=1, keepdim=True))
    found = torch.zeros_like(image)
    warp.channelnorm_backward(image, output, grad, found, 2)
    close(found, grad * image / (output + 1e-9))
    zeros = torch.zeros_like(image)
    warp.channelnorm_forward(zeros, output, 2)
    warp.channelnorm_backward(zeros, output, grad, found, 2)
    assert not found.any()
