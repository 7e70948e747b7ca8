"""Deformable convolutions and attention in torch, against loops written from their definitions."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import pytest

from tests.helper.kernels.rows import check_rows, close, kernels, np, numbers, torch

pytestmark = pytest.mark.torch
conv, attn = kernels("deform_conv"), kernels("deform_attn")


def test_each_row_names_a_function_that_takes_its_arguments() -> None:
    check_rows("deformable", "deform_conv", "deform_attn")


def between(image: Any, y: float, x: float) -> Any:
    """A read of [channels, height, width] between pixels, 0 outside and 1 away from the map."""
    high, wide = image.shape[1:]
    out = np.zeros(image.shape[0])
    if not (-1 < y < high and -1 < x < wide):
        return out
    top, left = math.floor(y), math.floor(x)
    for row, column in itertools.product((top, top + 1), (left, left + 1)):
        if 0 <= row < high and 0 <= column < wide:
            out += (1 - abs(y - row)) * (1 - abs(x - column)) * image[:, row, column]
    return out


def deformed(image: Any, offset: Any, mask: Any, weight: Any, stride: Any, pad: Any, dilation: Any, groups: int,
             parts: int) -> Any:  # fmt: skip
    batch, channels, _, _ = image.shape
    count, _, kh, kw = weight.shape
    height, width = offset.shape[2:]
    out = np.zeros((batch, count, height, width))
    for b, y, x, i, j, part in itertools.product(
        range(batch), range(height), range(width), range(kh), range(kw), range(parts)
    ):
        tap = part * kh * kw + i * kw + j
        place = (y * stride[0] - pad[0] + i * dilation[0] + float(offset[b, 2 * tap, y, x]),
                 x * stride[1] - pad[1] + j * dilation[1] + float(offset[b, 2 * tap + 1, y, x]))  # fmt: skip
        read = between(image[b], *place) * (1 if mask is None else float(mask[b, tap, y, x]))
        for c in range(part * channels // parts, (part + 1) * channels // parts):
            group = c // (channels // groups)
            for o in range(group * count // groups, (group + 1) * count // groups):
                out[b, o, y, x] += read[c] * weight[o, c - group * channels // groups, i, j]
    return out


#: height and width, kernel, stride, pad, dilation, groups, deformable groups
FORMS = [
    ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1, 1), ((6, 5), (3, 2), (2, 1), (1, 2), (1, 2), 2, 2),
    ((4, 4), (1, 1), (1, 1), (0, 0), (1, 1), 1, 2), ((7, 6), (2, 3), (2, 3), (0, 1), (2, 1), 2, 1),
]  # fmt: skip


def a_form(form: Any, seed: int = 0) -> tuple[Any, ...]:
    (high, wide), kernel, stride, pad, dilation, groups, parts = form
    height, width = (
        (side + 2 * p - d * (k - 1) - 1) // s + 1
        for side, p, d, k, s in zip((high, wide), pad, dilation, kernel, stride, strict=True)
    )
    taps = kernel[0] * kernel[1]
    image = numbers(2, 4, high, wide, seed=seed)
    offset = numbers(2, parts * taps * 2, height, width, seed=seed + 1, low=-2.5, high=2.5)
    offset[0, :, 0, 0] = 0.0
    offset[0, 0, -1, -1] = 1e9
    mask = numbers(2, parts * taps, height, width, seed=seed + 2)
    weight = numbers(6, 4 // groups, *kernel, seed=seed + 3)
    return image, offset, mask, weight


@pytest.mark.parametrize("piece", [2**25, 1])
@pytest.mark.parametrize("form", FORMS)
def test_deformable_convolutions(form: Any, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.deform_conv"), "_DEFORM_PIECE", piece)
    image, offset, mask, weight = a_form(form)
    _, kernel, stride, pad, dilation, groups, parts = form
    scratch = image.new_empty(0)
    wanted = deformed(*(each.numpy() for each in (image, offset)), None, weight.numpy(), *form[2:])
    output = torch.full(wanted.shape, 9.0, dtype=image.dtype)
    swapped = [each for pair in (kernel, stride, pad, dilation) for each in pair[::-1]]
    assert conv.deform_conv_forward(image, weight, offset, output, scratch, scratch, *swapped, groups, parts, 2) == 1
    close(output, wanted)
    wanted = deformed(*(each.numpy() for each in (image, offset, mask, weight)), *form[2:])
    bias, straight = numbers(6, seed=9), [each for pair in (kernel, stride, pad, dilation) for each in pair]
    conv.modulated_deform_conv_forward(image, weight, bias, scratch, offset, mask, output, scratch, *straight, groups,
                                       parts, False)  # fmt: skip
    close(output, wanted)
    conv.modulated_deform_conv_forward(image, weight, bias, scratch, offset, mask, output, scratch, *straight, groups,
                                       parts, True)  # fmt: skip
    wanted = wanted + bias.numpy()[None, :, None, None]
    close(output, wanted)
    if groups == 1:
        close(conv.dcn_v2_forward(image, weight, bias, offset, mask, *straight, parts), wanted)
        output.zero_()
        conv.dcn_v2_cuda_forward(image, weight, bias, scratch, offset, mask, output, scratch, *straight, parts)
        close(output, wanted)


def smooth(form: Any) -> tuple[Any, ...]:
    """Inputs whose places are not at a pixel, where the derivative jumps."""
    image, offset, mask, weight = a_form(form)
    offset = numbers(*offset.shape, seed=4, low=0.1, high=0.9) + numbers(*offset.shape, seed=5, low=-3, high=2).round()
    return image, offset, mask, weight


@pytest.mark.parametrize("form", [FORMS[1], FORMS[2]])
def test_gradients_of_deformable_convolutions(form: Any) -> None:
    _, kernel, stride, pad, dilation, groups, parts = form
    swapped = [each for pair in (kernel, stride, pad, dilation) for each in pair[::-1]]

    class Deformed(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, image: Any, offset: Any, weight: Any) -> Any:
            ctx.save_for_backward(image, offset, weight)
            output = image.new_empty(image.shape[0], weight.shape[0], *offset.shape[2:])
            none = image.new_empty(0)
            conv.deform_conv_forward(image, weight, offset, output, none, none, *swapped, groups, parts, 1)
            return output

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            image, offset, weight = ctx.saved_tensors
            to_image, to_offset, to_weight = (torch.zeros_like(each) for each in ctx.saved_tensors)
            none = image.new_empty(0)
            conv.deform_conv_backward_input(image, offset, grad, to_image, to_offset, weight, none, *swapped, groups,
                                            parts, 1)  # fmt: skip
            conv.deform_conv_backward_filter(image, offset, grad, to_weight, none, none, *swapped, groups, parts, 1.0)
            return to_image, to_offset, to_weight

    image, offset, mask, weight = (each.requires_grad_() for each in smooth(form))
    assert torch.autograd.gradcheck(Deformed.apply, (image, offset, weight), fast_mode=True)
    scaled = torch.ones_like(weight)
    none, grad = image.new_empty(0), numbers(2, 6, *offset.shape[2:], seed=8)
    conv.deform_conv_backward_filter(image, offset, grad, scaled, none, none, *swapped, groups, parts, 0.5, 1)
    plain = torch.zeros_like(weight)
    conv.deform_conv_backward_filter(image, offset, grad, plain, none, none, *swapped, groups, parts, 1.0, 1)
    close(scaled, 1 + plain / 2)  # added to what was there

    straight = [each for pair in (kernel, stride, pad, dilation) for each in pair]
    bias = numbers(6, seed=7).requires_grad_()

    class Modulated(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            ctx.save_for_backward(*given)
            image, offset, mask, weight, bias = given
            output = image.new_empty(image.shape[0], weight.shape[0], *offset.shape[2:])
            conv.modulated_deform_conv_forward(image, weight, bias, none, offset, mask, output, none, *straight, groups,
                                               parts, True)  # fmt: skip
            return output

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            image, offset, mask, weight, bias = ctx.saved_tensors
            to_image, to_offset, to_mask, to_weight, to_bias = (torch.zeros_like(each) for each in ctx.saved_tensors)
            conv.modulated_deform_conv_backward(
                image, weight, bias, none, offset, mask, none, to_image, to_weight, to_bias, to_offset, to_mask, grad,
                *straight, groups, parts, True)  # fmt: skip
            if groups == 1:
                again = conv.dcn_v2_backward(image, weight, bias, offset, mask, grad, *straight, parts)
                for one, two in zip(again, (to_image, to_offset, to_mask, to_weight, to_bias), strict=True):
                    close(one, two)
                buffers = [torch.zeros_like(each) for each in (image, weight, bias, offset, mask)]
                conv.dcn_v2_cuda_backward(image, weight, bias, none, offset, mask, none, *buffers, grad, *straight,
                                          parts)  # fmt: skip
                for one, two in zip(buffers, (to_image, to_weight, to_bias, to_offset, to_mask), strict=True):
                    close(one, two)
            return to_image, to_offset, to_mask, to_weight, to_bias

    assert torch.autograd.gradcheck(Modulated.apply, (image, offset, mask, weight, bias), fast_mode=True)


def test_without_an_offset_it_is_a_convolution_also_in_halves_and_without_images() -> None:
    image, weight = numbers(2, 4, 5, 5, dtype="float16"), numbers(3, 4, 3, 3, seed=1, dtype="float16")
    output, none = torch.empty(2, 3, 5, 5, dtype=torch.float16), torch.empty(0)
    offset = torch.zeros(2, 18, 5, 5, dtype=torch.float16)
    conv.deform_conv_forward(image, weight, offset, output, none, none, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 64)
    close(output, torch.nn.functional.conv2d(image.double(), weight.double(), padding=1), 5e-3)
    nothing = conv.dcn_v2_forward(image[:0], weight, torch.zeros(3), torch.zeros(0, 18, 5, 5), torch.zeros(0, 9, 5, 5),
                                  3, 3, 1, 1, 1, 1, 1, 1, 1)  # fmt: skip
    assert nothing.shape == (0, 3, 5, 5)


def test_the_derivative_at_a_pixel_is_the_one_to_the_right_of_it() -> None:
    """Offsets start at 0: floor() decides which side counts, as in the compiled kernels."""
    image = torch.tensor([1.0, 2.0, 7.0, 11.0]).view(1, 1, 1, 4)
    weight, offset, none = torch.ones(1, 1, 1, 1), torch.zeros(1, 2, 1, 4), torch.empty(0)
    to_image, to_offset = torch.zeros_like(image), torch.zeros_like(offset)
    conv.deform_conv_backward_input(image, offset, torch.ones_like(image), to_image, to_offset, weight, none, 1, 1, 1,
                                    1, 0, 0, 1, 1, 1, 1, 1)  # fmt: skip
    close(to_offset[0, 1, 0], torch.tensor([1.0, 5.0, 4.0, -11.0]))
    close(to_image, torch.ones_like(image))


# --- attention -------------------------------------------------------------------------------------------------------

SHAPES = [(4, 5), (2, 3), (1, 2)]


def an_attention(dtype: str = "float64") -> tuple[Any, ...]:
    batch, heads, width, queries, points = 2, 2, 3, 4, 2
    starts = [0, *itertools.accumulate(h * w for h, w in SHAPES)]
    value = numbers(batch, starts[-1], heads, width, dtype=dtype)
    places = numbers(batch, queries, heads, len(SHAPES), points, 2, seed=1, dtype=dtype, low=-0.4, high=1.4)
    weights = numbers(batch, queries, heads, len(SHAPES), points, seed=2, dtype=dtype)
    return value, torch.tensor(SHAPES), torch.tensor(starts[:-1]), places, weights


def attended(value: Any, places: Any, weights: Any) -> Any:
    batch, _, heads, width = value.shape
    out = np.zeros((batch, places.shape[1], heads * width))
    for b, q, m in itertools.product(range(batch), range(places.shape[1]), range(heads)):
        start = 0
        for level, (high, wide) in enumerate(SHAPES):
            image = value[b, start : start + high * wide, m].T.reshape(width, high, wide).numpy()
            start += high * wide
            for (x, y), weight in zip(places[b, q, m, level].tolist(), weights[b, q, m, level].tolist(), strict=True):
                out[b, q, m * width : (m + 1) * width] += weight * between(image, y * high - 0.5, x * wide - 0.5)
    return out


@pytest.mark.parametrize("piece", [2**26, 30])
def test_attention_at_places(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.deform_attn"), "_ATTENTION_PIECE", piece)
    value, shapes, starts, places, weights = an_attention()
    found = attn.ms_deform_attn_forward(value, shapes, starts, places, weights, 64)
    assert found.is_contiguous()
    close(found, attended(value, places, weights))

    class Attention(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            ctx.save_for_backward(*given)
            return attn.ms_deform_attn_forward(given[0], shapes, starts, *given[1:], im2col_step=64)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            value, places, weights = ctx.saved_tensors
            found = attn.ms_deform_attn_backward(value, shapes, starts, places, weights, grad, 64)
            into = [torch.ones_like(each) for each in ctx.saved_tensors]
            attn.ms_deform_attn_into_backward(value, shapes, starts, places, weights, grad, *into, im2col_step=64)
            for one, two in zip(into, found, strict=True):
                close(one, two + 1)
            return tuple(found)

    given = tuple(each.requires_grad_() for each in (value, places, weights))
    assert torch.autograd.gradcheck(Attention.apply, given, fast_mode=True)


def test_attention_in_halves() -> None:
    value, shapes, starts, places, weights = an_attention("float16")
    found = attn.ms_deform_attn_forward(value, shapes, starts, places, weights)
    assert found.dtype == torch.float16
    close(found, attended(value.double(), places, weights), 5e-3)
    grads = attn.ms_deform_attn_backward(value, shapes, starts, places, weights, torch.ones_like(found))
    assert [each.dtype for each in grads] == [torch.float16] * 3
