"""Functions of torch_npu that it calls by the names of their operators (aclop), beside plain PyTorch."""

from __future__ import annotations

import torch
import torch_npu
from beside import TOLERANCE, compare, raises, run_checks, same
from torch.nn import functional as F


def check_activations() -> None:
    x = torch.randn(3, 10)
    for kind in TOLERANCE:
        compare(torch_npu.npu_silu, F.silu, [x], kind)
        compare(torch_npu.npu_mish, F.mish, [x], kind)
        mask = torch.rand(2, 1, 32, 32) < 0.3
        compare(
            lambda x, mask=mask: torch_npu.npu_scaled_masked_softmax(x, mask.npu(), 0.5, False),
            lambda x, mask=mask: torch.softmax(torch.where(mask, torch.tensor(-10000.0), x * 0.5), -1),
            [torch.randn(2, 2, 32, 32)], kind,
        )  # fmt: skip


def check_shapes() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    same(torch_npu.npu_confusion_transpose(x.npu(), (0, 2, 1), (2, 12), True), x.permute(0, 2, 1).reshape(2, 12))
    same(torch_npu.npu_confusion_transpose(x.npu(), (1, 0, 2), (4, 2, 3), False), x.view(4, 2, 3).permute(1, 0, 2))
    leaf = x.npu().requires_grad_()
    torch_npu.npu_confusion_transpose(leaf, (0, 2, 1), (2, 12), True)[0, 5].backward()
    assert leaf.grad.cpu().nonzero().tolist() == [[0, 2, 1]]
    for number in (2, 29, 3):
        same(torch_npu.npu_format_cast(x.npu(), number), x)
    same(torch_npu.npu_format_cast_(x.npu(), 29), x)
    same(torch_npu.npu_transpose(x.npu(), (2, 0, 1)), x.permute(2, 0, 1))
    same(torch_npu.npu_reshape(x.npu(), (4, 6)), x.reshape(4, 6))
    same(torch_npu.npu_broadcast(x[:1].npu(), (5, 3, 4)), x[:1].expand(5, 3, 4))
    same(torch_npu.npu_slice(x.npu(), [0, 1, 1], [2, 2, 2]), x[:, 1:3, 1:3])
    same(torch_npu.npu_pad(x[0].npu(), [1, 0, 2, 1]), F.pad(x[0], (2, 1, 1, 0)))
    same(torch_npu.npu_one_hot(torch.tensor([0, 2]).npu(), depth=3), torch.tensor([[1.0, 0, 0], [0, 0, 1]]))
    same(torch_npu.npu_bmmV2(x.npu(), x.transpose(1, 2).contiguous().npu(), []), x @ x.transpose(1, 2))
    for function, other in ((torch_npu.npu_max, torch.max), (torch_npu.npu_min, torch.min)):
        values, indices = function(x.npu(), 1)
        same(values, other(x, 1)[0])
        same(indices, other(x, 1)[1])
        assert indices.dtype == torch.int32
    half = torch.zeros(2, 3, 4, dtype=torch.float16).npu()
    same(torch_npu.npu_dtype_cast_(half, x.npu()), x)
    assert torch_npu.npu_dtype_cast(x.npu(), torch.float16).dtype == torch.float16
    same(torch_npu.one_(half), torch.ones(2, 3, 4))


def check_losses() -> None:
    compare(
        torch_npu.npu_softmax_cross_entropy_with_logits,
        lambda x, labels: -(labels * torch.log_softmax(x, -1)).sum(-1),
        [torch.randn(6, 4), torch.softmax(torch.randn(6, 4), -1)], torch.float32, gradients=False,
    )  # fmt: skip
    x, labels = torch.randn(6, 4), torch.softmax(torch.randn(6, 4), -1)
    leaf, other = x.npu().requires_grad_(), x.clone().requires_grad_()
    torch_npu.npu_softmax_cross_entropy_with_logits(leaf, labels.npu()).sum().backward()
    F.cross_entropy(other, labels, reduction="sum").backward()
    same(leaf.grad, other.grad)
    y, weight, bias = torch.randn(5, 8), torch.rand(8), torch.randn(8)
    same(torch_npu.npu_layer_norm_eval(y.npu(), [8], weight.npu(), bias.npu()), F.layer_norm(y, (8,), weight, bias))


def check_convolutions() -> None:
    for groups in (1, 2):
        compare(
            lambda x, w, b, groups=groups: torch_npu.npu_conv2d(x, w, b, [2, 1], [1, 2], [1, 1], groups),
            lambda x, w, b, groups=groups: F.conv2d(x, w, b, (2, 1), (1, 2), 1, groups),
            [torch.randn(2, 4, 7, 6), torch.randn(6, 4 // groups, 3, 3), torch.randn(6)], torch.float32,
            gradients=False,
        )  # fmt: skip
    compare(
        lambda x, w: torch_npu.npu_convolution_transpose(x, w, None, [1, 1], [0, 0], [2, 2], [1, 1], 1),
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1), [torch.randn(2, 4, 5, 5), torch.randn(4, 3, 3, 3)],
        torch.float32, gradients=False,
    )  # fmt: skip


def check_boxes() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [10, 10, 20, 20], [32, 32, 38, 42]])
    truths = torch.tensor([[0.0, 0, 10, 20], [0, 10, 10, 10], [10, 10, 20, 20]])
    same(
        torch_npu.npu_iou(boxes.half().npu(), truths.half().npu()),
        torch.tensor([[0.4985, 0, 0], [0, 0, 0], [0, 0.9961, 0]]), 5e-3,
    )  # fmt: skip
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10.5]])
    scores = torch.tensor([0.5, 0.9, 0.3, 0.05])
    kept, count = torch_npu.npu_nms_v4(
        boxes.npu(), scores.npu(), 3, torch.tensor(0.5).npu(), torch.tensor(0.1).npu()
    )
    assert int(count) == 2 and kept.tolist()[:2] == [1, 2]
    anchors, goals = torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[5.0, 6, 7, 8]])
    given = (0.0, 0.0, 0.0, 0.0)
    moves = torch_npu.npu_bounding_box_encode(anchors.npu(), goals.npu(), *given, 0.1, 0.1, 0.2, 0.2)
    same(moves, torch.tensor([[13.3281, 13.3281, 0, 0]]), 1e-3)
    deltas = torch.tensor([[5.0, 6, 7, 8]])
    found = torch_npu.npu_bounding_box_decode(anchors.npu(), deltas.npu(), *given, 1, 1, 1, 1, (10, 10), 0.1)
    same(found, torch.tensor([[2.5, 6.5, 9, 9]]), 1e-4)
    signs = torch.tensor([5.0, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2])
    packed = torch_npu.npu_sign_bits_pack(signs.npu(), 1)
    assert packed.tolist() == [[159, 15]]
    same(torch_npu.npu_sign_bits_unpack(packed[0], 1, torch.float32)[0, :14], torch.where(signs < 0, -1.0, 1.0))


def check_dropout() -> None:
    x = torch.ones(64, 64)
    out, _ = torch_npu._dropout_with_byte_mask(x.npu(), 0.25)
    kept = out.cpu() != 0
    assert abs(kept.float().mean() - 0.75) < 0.03 and (out.cpu()[kept] - 4 / 3).abs().max() < 1e-5
    leaf = x.npu().requires_grad_()
    out = torch_npu._dropout_with_byte_mask(leaf, 0.25)[0]
    out.sum().backward()
    same(leaf.grad, out)


def check_unknown() -> None:
    raises("GIoU is not emulated", lambda: torch_npu.npu_giou(torch.rand(4, 3).npu(), torch.rand(4, 3).npu(), True))


if __name__ == "__main__":
    run_checks(globals())
