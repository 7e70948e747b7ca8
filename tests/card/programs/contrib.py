"""torch_npu.contrib and torch_npu.optim on the card: against plain PyTorch, three steps each of the optimizers."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu
from beside import raises, run_checks, same
from torch.nn import functional as F
from torch_npu import optim
from torch_npu.contrib import function, module


def check_functions() -> None:
    a, b = torch.randn(3, 4), torch.randn(5, 4)
    same(function.matmul_transpose(a.npu(), b.npu()), a @ b.T)
    same(function.npu_fast_condition_index_put(a.npu(), (a > 0).npu(), 7.0), a.masked_fill(a > 0, 7.0))
    boxes, goals = torch.tensor([[0.0, 0, 10, 20]]), torch.tensor([[5.0, 5, 25, 25]])
    moves = function.npu_bbox_coder_encode_xyxy2xywh(boxes.npu(), goals.npu())
    same(moves, torch.tensor([[10 / 11, 5 / 21, 0.646627, 0.0]]), 1e-4)  # corners are pixels: 11 wide, not 10
    same(function.npu_bbox_coder_decode_xywh2xyxy(boxes.npu(), moves), goals, 1e-4)
    kept = function.dropout_with_byte_mask(torch.ones(64, 64).npu(), 0.5).cpu()
    assert set(kept.unique().tolist()) == {0.0, 2.0} and abs(kept.mean() - 1) < 0.1


def check_modules() -> None:
    for name, plain in (("Mish", F.mish), ("SiLU", F.silu), ("Swish", F.silu)):
        x = torch.randn(3, 4)
        same(getattr(module, name)()(x.npu()), plain(x))
    left, right = torch.randn(2, 4, 3, 3), torch.randn(2, 4, 3, 3)
    halves = module.ChannelShuffle(8)(left.npu(), right.npu())
    mixed = torch.cat((left, right), 1).view(2, 2, 4, 3, 3).transpose(1, 2).reshape(2, 8, 3, 3).chunk(2, 1)
    for half, wanted in zip(halves, mixed, strict=True):
        same(half, wanted)
    logits, target = torch.randn(4, 5), torch.tensor([0, 1, 2, 3])
    smooth = torch.full((4, 5), 0.1 / 4).scatter_(1, target[:, None], 0.9)
    same(module.LabelSmoothingCrossEntropy(5, 0.1)(logits.npu(), target.npu()), F.cross_entropy(logits, smooth))
    data, _ = module.Prefetcher([(torch.ones(2), torch.zeros(2))]).next()
    assert data.is_npu
    for name, plain, shape in (("1d", torch.nn.BatchNorm1d, (4, 3)), ("2d", torch.nn.BatchNorm2d, (4, 3, 2, 2))):
        x = torch.randn(shape)
        same(getattr(module, f"FastBatchNorm{name}")(3).npu()(x.npu()), plain(3)(x))
    assert module.Focus(3, 8, 1).npu()(torch.randn(1, 3, 8, 8).npu()).shape == (1, 8, 4, 4)
    x, layer = torch.randn(3, 2, 4), module.BiLSTM(4, 8)
    same(layer.npu()(x.npu()), layer.cpu()(x), 1e-4)
    # What drops nothing until its tensors are drawn ahead (enable_..._ensemble), in torch_npu itself.
    assert (module.NpuDropPath(0.5).train()(torch.ones(64, 3).npu()) == 1).all()
    assert (module.NpuFairseqDropout(0.5).train()(torch.ones(64, 3).npu()) == 1).all()


def steps(optimizer: Any, device: str, **settings: Any) -> torch.Tensor:
    """Three steps on a sum of squares, of two tensors and two types of their gradients' sizes."""
    torch.manual_seed(1)
    leaves = [torch.randn(3, 4).to(device).requires_grad_(), torch.randn(7).to(device).requires_grad_()]
    made = optimizer(leaves, **settings)
    for _ in range(3):
        made.zero_grad()
        loss = sum(((each - 0.5) ** 2).sum() + each[0].sum() ** 3 * 0.01 for each in leaves)
        loss.backward()
        made.step()
    return torch.cat([each.detach().cpu().flatten() for each in leaves])


def check_optimizers() -> None:
    for name, settings in (
        ("Adam", {"lr": 0.1}), ("Adam", {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True}), ("AdamW", {"lr": 0.1}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "betas": (0.8, 0.9)}), ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}), ("Adadelta", {"weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.05}), ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ):  # fmt: skip
        found = steps(getattr(optim, f"NpuFused{name}"), "npu", **settings)
        same(found, steps(getattr(torch.optim, name), "cpu", **settings))
    for name in ("Lamb", "AdamP", "BertAdam", "RMSpropTF"):
        assert steps(getattr(optim, f"NpuFused{name}"), "npu", lr=0.01).isfinite().all()
    leaf = torch.ones(3).npu().requires_grad_()
    leaf.grad = torch.tensor([3.0, 4.0, 0.0]).npu()
    made = optim.NpuFusedAdam([leaf])
    assert abs(float(made.clip_grad_norm_fused_(1.0)) - 5) < 1e-5
    same(leaf.grad, torch.tensor([0.6, 0.8, 0.0]))
    # A name that this release of torch_npu has not.
    lamb = optim.NpuFusedLamb([leaf], use_global_grad_norm=True)
    raises("get_optimizer_combined_grads", lamb.step)


def check_combined() -> None:
    flat = torch_npu.utils.npu_combine_tensors([torch.ones(2).npu(), torch.zeros(3).npu()])
    assert flat.tolist() == [1, 1, 0, 0, 0]


if __name__ == "__main__":
    run_checks(globals())
