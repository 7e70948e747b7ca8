"""Operators on images, regions, losses and time on the emulated card, which refuses types as the real one does."""

from __future__ import annotations

import importlib
import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, torch
from tests.helper.kernels.rows import ROOT
from transplt.edits import helper_source

pytestmark = pytest.mark.torch
TOPICS = ("images", "deformable", "detection", "spatial", "losses", "fused")
Call = tuple[str, tuple[Any, ...]]


def number(*shape: int) -> Any:
    return torch.randn(shape)


def images() -> Iterator[Call]:
    one, two, none = number(2, 3, 6, 7), number(2, 3, 6, 7), torch.zeros(0)
    yield "upfirdn2d", (number(4, 6, 7, 1), number(3, 4), 2, 2, 1, 1, 2, 1, -1, 2)
    yield "upfirdn2d", (one.half(), number(3, 4), 1, 1, 2, 2, 2, 1, 1, 2, True, 2.0)
    yield "fused_bias_act", (one, number(3), none, 3, 0, 0.2, 1.4)
    yield "fused_bias_act", (one.half(), none.half(), two.half(), 3, 1, 0.2, 1.4)
    for act in range(1, 10):
        yield "bias_act", (one, number(3), none, none, none, 0, 1, act, 0.2, 1.3, 0.6)
        yield "bias_act", (one, none, two, two, two, 2, 1, act, 0.2, 1.3, 0.6)
    flow = 3, 1, 2, 1, 1, 1
    yield "correlation_forward", (one, two, none, none, torch.zeros(0), *flow)
    buffers = torch.zeros(0), torch.zeros(0)
    yield "correlation_backward", (one, two, none, none, number(2, 25, 8, 9), *buffers, *flow)
    sampler = 1, 1, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1
    grad, out = number(2, 3, 3, 6, 7), torch.zeros(2, 3, 3, 6, 7)
    yield "correlation_sampler_forward", (one, two, *sampler)
    yield "correlation_sampler_backward", (one, two, grad, *sampler)
    yield "correlation_into_forward", (one, two, out, *sampler)
    yield "correlation_into_backward", (grad, one, two, torch.zeros_like(one), torch.zeros_like(two), *sampler)
    first, second, places = number(1, 4, 5, 8), number(1, 3, 4, 8), torch.rand(1, 1, 4, 5, 2) * 6 - 1
    yield "alt_corr_forward", (first, second, places, 2)
    yield "alt_corr_backward", (first, second, places, number(1, 1, 25, 4, 5), 2)
    moved = torch.rand(2, 2, 6, 7) * 4 - 2
    yield "resample2d_forward", (one, moved, torch.zeros_like(one), 1, True)
    yield "resample2d_forward", (one, moved, torch.zeros_like(one), 1, False)
    yield "resample2d_backward", (one, moved, two, torch.zeros_like(one), torch.zeros_like(moved), 1, True)
    yield "channelnorm_forward", (one, torch.zeros(2, 1, 6, 7), 2)
    yield "channelnorm_backward", (one, torch.rand(2, 1, 6, 7) + 1, number(2, 1, 6, 7), torch.zeros_like(one), 2)


def deformable() -> Iterator[Call]:
    image, weight, offset, mask = number(2, 4, 5, 6), number(6, 4, 3, 3), number(2, 18, 5, 6), torch.rand(2, 9, 5, 6)
    bias, grad, none = number(6), number(2, 6, 5, 6), torch.zeros(0)
    sizes = 3, 3, 1, 1, 1, 1, 1, 1
    to = [torch.zeros_like(each) for each in (image, offset, mask, weight, bias)]
    yield "deform_conv_forward", (image, weight, offset, torch.zeros(2, 6, 5, 6), none, none, *sizes, 1, 1, 64)
    yield "deform_conv_backward_input", (image, offset, grad, to[0], to[1], weight, none, *sizes, 1, 1, 64)
    yield "deform_conv_backward_filter", (image, offset, grad, to[3], none, none, *sizes, 1, 1, 1.0, 64)
    given = image, weight, bias, none, offset, mask
    yield "modulated_deform_conv_forward", (*given, torch.zeros(2, 6, 5, 6), none, *sizes, 1, 1, True)
    back = none, to[0], to[3], to[4], to[1], to[2], grad
    yield "modulated_deform_conv_backward", (*given, *back, *sizes, 1, 1, True)
    yield "dcn_v2_forward", (image, weight, bias, offset, mask, *sizes, 1)
    yield "dcn_v2_backward", (image, weight, bias, offset, mask, grad, *sizes, 1)
    yield "dcn_v2_cuda_forward", (*given, torch.zeros(2, 6, 5, 6), none, *sizes, 1)
    yield "dcn_v2_cuda_backward", (*given, *back, *sizes, 1)
    yield from attentions()


def attentions(width: int = 8) -> Iterator[Call]:
    shapes, starts = torch.tensor([[3, 4], [2, 2]]), torch.tensor([0, 12])
    value, places, weights = number(2, 16, 2, width), torch.rand(2, 5, 2, 2, 3, 2), torch.rand(2, 5, 2, 2, 3)
    given, grad = (value, shapes, starts, places, weights), number(2, 5, 2 * width)
    yield "ms_deform_attn_forward", (*given, 64)
    yield "ms_deform_attn_forward", (value.half(), shapes, starts, places.half(), weights.half(), 64)
    yield "ms_deform_attn_backward", (*given, grad, 64)
    into = [torch.zeros_like(each) for each in (value, places, weights)]
    yield "ms_deform_attn_into_backward", (*given, grad, *into, 64)


def detection() -> Iterator[Call]:
    corner, scores = torch.rand(40, 2) * 20, torch.rand(40)
    boxes = torch.cat([corner, corner + torch.rand(40, 2) * 12 + 1], 1)
    rows = torch.cat([boxes, scores[:, None]], 1)
    yield "nms_by_score", (boxes, scores, 0.4, 0)
    yield "nms_of_pixels", (boxes, scores, 0.4)
    yield "nms_of_rows", (rows, 0.4)
    yield "nms_match", (rows, 0.4)
    yield "bbox_overlaps", (boxes, boxes[:9], torch.zeros(40, 9), 0, False, 1)
    yield "bbox_overlaps", (boxes, boxes, torch.zeros(40), 1, True, 0)
    image, grad = number(2, 3, 8, 9), number(5, 3, 2, 3)
    rois = torch.cat([torch.tensor([0.0, 1, 1, 0, 1])[:, None], boxes[:5]], 1)
    none, back = torch.zeros(0), torch.zeros(2, 3, 8, 9)
    out, y, x = torch.zeros(5, 3, 2, 3), torch.zeros(5, 3, 2, 3), torch.zeros(5, 3, 2, 3)
    yield "roi_align_forward", (image, rois, 0.4, 2, 3, 0, True)
    yield "roi_align_backward", (grad, rois, 0.4, 2, 3, 2, 3, 8, 9, 2, False)
    yield "roi_align_into_forward", (image, rois, out, none, none, 2, 3, 0.4, 2, 1, True)
    yield "roi_align_into_forward", (image, rois, out, y, x, 2, 3, 0.4, 2, 0, True)
    yield "roi_align_into_backward", (grad, rois, none, none, back, 2, 3, 0.4, 0, 1, True)
    yield "roi_align_into_backward", (grad, rois, torch.rand(5, 3, 2, 3) * 6, x, back, 2, 3, 0.4, 2, 0, True)
    yield "roi_align_rows_forward", (image, rois, 2, 3, 0.4, 2, out)
    yield "roi_align_rows_backward", (grad, rois, 2, 3, 0.4, 2, back)
    askew = torch.cat([rois, torch.rand(5, 1)], 1)
    yield "roi_align_rotated_forward", (image, askew, 0.4, 2, 3, 0)
    yield "roi_align_rotated_backward", (grad, askew, 0.4, 2, 3, 2, 3, 8, 9, 2)
    yield "roi_align_rotated_into_forward", (image, askew, out, 2, 3, 0.4, 2, True, False)
    yield "roi_align_rotated_into_backward", (grad, askew, back, 2, 3, 0.4, 0, False, True)
    argmax = torch.randint(-1, 72, (5, 3, 2, 3)).int()
    yield "roi_pool_forward", (image, rois, 0.4, 2, 3)
    yield "roi_pool_backward", (grad, image, rois, argmax, 0.4, 2, 3, 2, 3, 8, 9)
    yield "roi_pool_into_forward", (image, rois, out, argmax, 2, 3, 0.4)
    yield "roi_pool_into_backward", (grad, rois, argmax, back, 2, 3, 0.4)
    yield "roi_pool_rows_forward", (image, rois, 2, 3, 0.4, out, argmax)
    yield "roi_pool_rows_backward", (grad, rois, argmax, 0.4, back)
    four, sides = number(2, 8, 6, 7), torch.rand(2, 4, 4) * 6
    yield "border_align_forward", (four, sides, torch.zeros(2, 2, 4, 4), torch.zeros(2, 2, 4, 4).int(), 3)
    where = torch.randint(0, 4, (2, 2, 4, 4)).int()
    yield "border_align_backward", (number(2, 2, 4, 4), sides, where, torch.zeros(2, 8, 6, 7), 3)
    offset = number(5, 2, 2, 3)
    yield "deform_roi_pool_forward", (image, rois, offset, out, 2, 3, 0.4, 2, 0.1)
    into = back, torch.zeros_like(offset)
    yield "deform_roi_pool_backward", (grad, image, rois, offset, *into, 2, 3, 0.4, 2, 0.1)
    many, trans, share = number(2, 16, 8, 9), number(5, 4, 2, 2), number(5, 4, 4, 4)
    sizes, counts = (False, 0.4, 4, 2, 4, 2, 3, 0.1), torch.full((5, 4, 4, 4), 9.0)
    yield "dcn_v2_psroi_pooling_forward", (many, rois, trans, *sizes)
    yield "dcn_v2_psroi_pooling_backward", (share, many, rois, trans, counts, *sizes)
    buffers = torch.zeros(5, 4, 4, 4), torch.zeros(5, 4, 4, 4)
    yield "deform_psroi_pooling_cuda_forward", (many, rois, trans, *buffers, *sizes)
    buffers = torch.zeros_like(many), torch.zeros_like(trans)
    yield "deform_psroi_pooling_cuda_backward", (share, many, rois, trans, counts, *buffers, *sizes)


def spatial() -> Iterator[Call]:
    features, masks, grad = number(2, 4, 3, 4), number(2, 18, 6, 8), number(2, 4, 6, 8)
    out, sizes = torch.zeros(2, 4, 6, 8), (3, 2, 2)
    back = torch.zeros_like(features), torch.zeros_like(masks)
    yield "carafe_naive_forward", (features, masks, out, *sizes)
    yield "carafe_naive_backward", (grad, features, masks, *back, *sizes)
    scratch = torch.zeros(0), torch.zeros(0), torch.zeros(0), torch.zeros(0)
    yield "carafe_forward", (features, masks, torch.zeros(2, 4, 3, 4), *scratch[:2], out, *sizes)
    yield "carafe_backward", (grad, number(2, 3, 4, 4), masks, *scratch, *back, *sizes)
    around, whole, mask = number(2, 15, 3, 4), torch.zeros(2, 12, 3, 4), (2, 3, 4, 3, 5, 1, 2)
    for kind in (0, 1):
        yield "psamask_forward", (around, whole, kind, *mask)
        yield "psamask_backward", (number(2, 12, 3, 4), torch.zeros_like(around), kind, *mask)
    t, weight = number(2, 3, 3, 4), number(2, 6, 3, 4)
    yield "ca_forward", (t, number(2, 3, 3, 4), torch.zeros_like(weight))
    yield "ca_backward", (weight, t, number(2, 3, 3, 4), torch.zeros_like(t), torch.zeros_like(t))
    yield "ca_map_forward", (weight, t, torch.zeros_like(t))
    yield "ca_map_backward", (number(2, 3, 3, 4), weight, t, torch.zeros_like(weight), torch.zeros_like(t))
    yield "criss_cross_forward", (t, number(2, 3, 3, 4))
    yield "criss_cross_backward", (weight, t, number(2, 3, 3, 4))
    yield "criss_cross_map_forward", (weight, t)
    yield "criss_cross_map_backward", (number(2, 3, 3, 4), weight, t)
    for side in ("top", "bottom", "left", "right"):
        yield f"{side}_pool_forward", (features,)
        yield f"{side}_pool_backward", (features, number(2, 4, 3, 4))
    shift = torch.tensor([[1, -1], [0, 3]]).int()
    yield "tin_shift_forward", (number(2, 4, 6, 3), shift, torch.zeros(2, 4, 6, 3))
    rows, columns = torch.tensor([0, 2]), torch.tensor([1, 3])
    yield "masked_im2col_forward", (features[:1], rows, columns, torch.zeros(36, 2), 3, 3, 1, 1)
    yield "masked_im2col_rows", (features[:1], rows, columns, 3, 3, 1, 1, torch.zeros(36, 2))
    yield "masked_col2im_rows", (number(4, 2), rows, columns, 3, 4, 4, torch.zeros(1, 4, 3, 4))
    yield "masked_col2im_forward", (number(4, 2), rows, columns, torch.zeros(1, 4, 3, 4), 3, 4, 4)


def losses() -> Iterator[Call]:
    logits, targets, weight = number(6, 4), torch.tensor([0, 3, 1, 2, 4, 0]), torch.rand(4)
    for name in ("sigmoid_focal_loss_forward", "sigmoid_focal_loss_backward"):
        yield name, (logits, targets, weight, torch.zeros(6, 4), 2.0, 0.25)
    shares, signed = logits.softmax(1), targets - 1
    yield "softmax_focal_loss_forward", (shares, signed, weight, torch.zeros(6), 2.0, 0.25)
    yield "softmax_focal_loss_backward", (shares, signed, weight, torch.zeros(6), torch.zeros(6, 4), 2.0, 0.25)
    yield "sigmoid_focalloss_forward", (logits, targets.int(), 4, 2.0, 0.25)
    yield "sigmoid_focalloss_backward", (logits, targets.int(), number(6, 4), 4, 2.0, 0.25)
    given, mean, var = number(4, 3, 5).half(), number(3), torch.rand(3)
    yield "sync_bn_forward_mean", (given, torch.zeros(3))
    yield "sync_bn_forward_var", (given, mean, torch.zeros(3))
    buffers = torch.zeros(3), torch.ones(3), torch.zeros(4, 3, 5), torch.zeros(3), torch.zeros_like(given)
    yield "sync_bn_forward_output", (given, mean, var, number(3), number(3), *buffers, 1e-5, torch.tensor([0.1]), 2)
    norm = number(4, 3, 5)
    yield "sync_bn_backward_param", (given, norm, torch.zeros(3), torch.zeros(3))
    yield "sync_bn_backward_data", (given, number(3), number(3), number(3), norm, var + 1, torch.zeros_like(given))


def fused() -> Iterator[Call]:
    scores, mask = number(2, 3, 4, 4).half(), torch.rand(2, 1, 4, 4) > 0.5
    scale = torch.tensor([0.7])[0]
    yield "scaled_masked_softmax_forward", (scores, mask, scale)
    yield "scaled_masked_softmax_forward", (scores, mask.byte(), scale)
    yield "scaled_softmax_forward", (scores, scale)
    yield "scaled_softmax_backward", (scores, scores.softmax(-1), scale)
    yield "scaled_softmax_batch_per_block", (64, 64, 2, 8)
    yield "scaled_triangular_softmax_forward", (scores[0], scale)
    yield "scaled_triangular_softmax_backward", (scores[0], scores[0].softmax(-1).tril(), scale)
    pair, angle = number(2, 4, 6), number(4, 6)
    yield "apply_rotary", (pair, number(2, 4, 6), angle.cos(), angle.sin(), torch.zeros(2, 4, 6), pair.clone(), True)
    states, share, shift = number(2, 5, 8).half(), number(8), number(8)
    yield "layer_norm_forward_affine", (states, (8,), share, shift, 1e-5)
    stats = torch.zeros(10), torch.ones(10)
    yield "layer_norm_backward_affine", (number(2, 5, 8), *stats, states, (8,), share, shift, 1e-5)
    given, few, many = number(2, 6, 5), number(3, 3), number(2, 3, 3, 5)
    yield "lightconv_forward", (given, few, 1)
    yield "lightconv_backward", (given, 1, number(2, 6, 5), few)
    yield "dynamicconv_forward", (given, many, 1)
    yield "dynamicconv_backward", (given, 1, number(2, 6, 5), many)
    yield "ngram_repeat_block", (torch.randint(0, 3, (4, 8)), torch.zeros(4, 5), 2, 6, 2, 2)
    tensors, flag = [number(3, 4), number(5).half()], torch.zeros(1).int()
    yield "multi_tensor_l2norm", (65536, flag, [tensors], True)
    yield "multi_tensor_scale", (65536, flag, [tensors, [torch.zeros(3, 4), torch.zeros(5)]], 0.5)
    out = [torch.zeros(3, 4), torch.zeros(5)]
    yield "multi_tensor_axpby", (65536, flag, [tensors, [number(3, 4), number(5) / 0], out], 2.0, -1.0, -1)
    u, delta, A = number(2, 4, 11), torch.rand(2, 4, 11), -torch.rand(4, 3)
    B, C, D, bias = number(2, 1, 3, 11), number(4, 3), number(4), number(4)
    scan = u, delta, A, B, C, D, number(2, 4, 11), bias
    yield "selective_scan_fwd", (*scan, True)
    yield "selective_scan_bwd", (*scan, number(2, 4, 11), None, number(2, 4, 11), None, True, True)
    x, taps, ends = number(2, 4, 11).half(), number(4, 3).half(), number(4).half()
    yield "causal_conv1d_fwd", (x, taps, ends, torch.zeros(2, 11).int(), None, torch.zeros(2, 4, 2).half(), True)
    yield "causal_conv1d_bwd", (x, taps, ends, number(2, 4, 11).half(), None, True)


def function(name: str) -> Any:
    return getattr(importlib.import_module(f"transplt.helper.kernels.{helper_source.owners()[name]}"), name)


def moved(given: Any, to: str) -> Any:
    """Copies of the tensors in a value, there."""
    if isinstance(given, torch.Tensor):
        return given.detach().clone().to(to)
    return type(given)(moved(each, to) for each in given) if isinstance(given, (list, tuple)) else given


def differences(here: Any, there: Any) -> Iterator[str]:
    if isinstance(here, (list, tuple)):
        for one, two in zip(here, there, strict=True):
            yield from differences(one, two)
    elif not isinstance(here, torch.Tensor):
        if here != there:
            yield f"{here} and {there}"
    elif there.device.type != "npu" or here.dtype != there.dtype:
        yield f"{here.dtype} and {there.dtype} on {there.device}"
    elif not torch.allclose(here.float(), there.cpu().float(), rtol=1e-4, atol=2e-3, equal_nan=True):
        yield f"{here} and {there}"


def views(result: Any, given: Any) -> Iterator[str]:
    """Results that callers could not change in place where an `autograd.Function` gives them."""
    for each in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(each, torch.Tensor) and each._is_view() and not any(each is one for one in given):
            yield "a view"


def compared(calls: list[Call]) -> list[tuple[str, list[str]]]:
    """The functions called, with what differs between the CPU and the card."""
    found = []
    for name, arguments in calls:
        here, there = moved(arguments, "cpu"), moved(arguments, "npu")
        results = function(name)(*here), function(name)(*there)
        said = [*differences(results[0], results[1]), *differences(here, there), *views(results[0], here)]
        found.append((name, said))
    return found


def on_both() -> list[tuple[str, list[str]]]:
    import torch_npu  # noqa: F401

    torch.manual_seed(0)
    return compared([*images(), *deformable(), *detection(), *spatial(), *losses(), *fused()])


def test_every_function_runs_on_the_card_as_on_the_cpu() -> None:
    (found,) = each_rank(on_both, 1, host="npu")
    assert [(name, said) for name, said in found if said] == []
    folder = ROOT / "rules" / "support" / "kernel_functions"
    rows = [row for topic in TOPICS for row in json.loads((folder / f"{topic}.json").read_text("utf-8"))["functions"]]
    rows += [each for row in rows for each in row.get("variants", ())]
    on_the_host = {"soft_nms", "multi_tensor_apply"}
    assert {name for name, _ in found} == {row["helper"] for row in rows if "helper" in row} - on_the_host


def with_driving_sdk() -> list[Any]:
    """Where attention comes from with DrivingSDK there: a stand-in that gives the sum of the values, times 2."""
    import torch_npu  # noqa: F401

    asked: list[tuple[int, ...]] = []

    def answer(value: Any, shapes: Any, starts: Any, places: Any, weights: Any) -> Any:
        asked.append(tuple(value.shape))
        return 2 * value.sum(1, keepdim=True).flatten(2).expand(-1, places.shape[1], -1)

    package = types.ModuleType("mx_driving")
    package.multi_scale_deformable_attn = answer  # type: ignore[attr-defined]
    sys.modules["mx_driving"] = package
    found = []
    for width in (8, 6):
        for name, arguments in attentions(width):
            before = len(asked)
            result = function(name)(*moved(arguments, "npu"))
            found.append((width, name, len(asked) > before))
            if name == "ms_deform_attn_backward" and width == 8:
                found.append(bool((result[0].cpu() - 2 * arguments[5].sum(1).view(2, 1, 2, 8)).abs().max() < 1e-4))
    value = next(iter(attentions(8)))[1]
    before = len(asked)
    function("ms_deform_attn_forward")(*value)  # on the CPU
    return [*found, len(asked) == before]


def test_driving_sdk_answers_where_it_takes_the_sizes() -> None:
    (found,) = each_rank(with_driving_sdk, 1, host="npu")
    sure = [each for each in found if not isinstance(each, tuple)]
    assert sure == [True, True]
    assert {(width, used) for width, _, used in (each for each in found if isinstance(each, tuple))} == {
        (8, True), (6, False),
    }  # fmt: skip
