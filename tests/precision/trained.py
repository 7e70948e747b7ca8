"""Faults in front of the last backward pass and behind it, in five programs that train; pairs that compute the same.

The programs lie in `programs/trained/`. Each fault is a replacement in the text of a program, as somebody who ports it
makes. Half of them were set aside before `compare` was mended for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transplt.precision.compare import Comparison
from transplt.precision.first_line import place, sentence

Swaps = tuple[tuple[str, str], ...]
#: Lines in front of the right one, or behind it, that do as well.
_BESIDE = 1


@dataclass(frozen=True)
class Trained:
    """One fault. `lines` are pieces of lines of either program that are right to name, `told` pieces of the sentence,
    one of which it has to have; both parted by `|`. `behind`: it acts behind the last backward pass."""

    kind: str
    name: str
    swaps: Swaps
    lines: str
    told: str = ""
    behind: bool = False
    aside: bool = False

    @property
    def nproc(self) -> int:
        return 2 if self.kind in ("shares", "halves") else 0


def _behind(kind: str, name: str, old: str, new: str, lines: str, told: str = "") -> Trained:
    return Trained(kind, name, ((old, new),), lines, told, behind=True)


def _before(kind: str, name: str, old: str, new: str, lines: str, told: str = "") -> Trained:
    return Trained(kind, name, ((old, new),), lines, told)


def _with_aside(faults: list[Trained]) -> Iterator[Trained]:
    """Every second one is set aside."""
    for number, each in enumerate(faults):
        yield Trained(each.kind, each.name, each.swaps, each.lines, each.told, each.behind, number % 2 == 1)


TRAINED = [*_with_aside([
    _behind("mlp", "a loss scale that is not undone",
            "    for parameter in model.parameters():\n        parameter.grad.div_(SCALE)\n", "",
            "parameter.grad.div_|optimizer.step()", "div_|scaled by 128"),
    _behind("mlp", "half the learning rate", "lr=3e-3", "lr=1.5e-3", "torch.optim.Adam(|optimizer.step()", "lr"),
    _behind("mlp", "SGD for Adam", "Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.999), eps=1e-8)",
            "SGD(model.parameters(), lr=3e-3)", "torch.optim.|optimizer.step()", "SGD"),
    _behind("mlp", "a schedule that falls faster", "gamma=0.9", "gamma=0.5",
            "lr_scheduler|optimizer.step()|schedule.step()", "lr"),
    _before("mlp", "a closer clamp", "clamp(-0.2, 1.5)", "clamp(-0.2, 0.75)", "x.clamp("),
    _before("mlp", "softplus with another beta", "F.softplus(self.second(x))", "F.softplus(self.second(x), beta=2.0)",
            "F.softplus("),
    _before("mlp", "no gradient through the residual", "x = x + F.softplus", "x = x.detach() + F.softplus",
            "F.softplus("),
    _before("mlp", "another beta in the loss", "smooth_l1_loss(guess, y)", "smooth_l1_loss(guess, y, beta=0.5)",
            "F.smooth_l1_loss", "beta"),
    _behind("pictures", "no Nesterov", ", nesterov=True", "", "torch.optim.SGD(|optimizer.step()", "nesterov"),
    _behind("pictures", "gradients cut at another value", "parameters(), 0.02", "parameters(), 0.01",
            "clip_grad_value_|optimizer.step()"),
    _behind("pictures", "weights held between bounds behind the step", "    optimizer.step()\n",
            "    optimizer.step()\n    with torch.no_grad():\n        model.fc.weight.clamp_(-0.05, 0.05)\n",
            "clamp_(-0.05|optimizer.step()"),
    _behind("pictures", "another momentum", "momentum=0.9", "momentum=0.5", "torch.optim.SGD(|optimizer.step()",
            "momentum"),
    _before("pictures", "corners that are aligned", "align_corners=False", "align_corners=True", "F.interpolate(",
            "align_corners"),
    _before("pictures", "a group norm of four groups", "nn.GroupNorm(2, 8)", "nn.GroupNorm(4, 8)",
            "self.norm1(self.conv1(x))"),
    _before("pictures", "no label smoothing", ", label_smoothing=0.1", "", "F.cross_entropy(", "label_smoothing"),
    _before("pictures", "the largest for the mean", "F.avg_pool2d(", "F.max_pool2d(", "self.down(x)", "max_pool2d"),
    _behind("words", "decay for all", '"weight_decay": 0.0', '"weight_decay": 0.1',
            "torch.optim.AdamW|optimizer.step()|groups = [", "weight_decay"),
    _behind("words", "gradients cut at another norm", "parameters(), 0.5)", "parameters(), 0.05)",
            "clip_grad_norm_|optimizer.step()"),
    _behind("words", "a shorter warm-up", "(step + 1) / 4", "(step + 1) / 2",
            "LambdaLR|optimizer.step()|torch.optim.AdamW", "lr"),
    _behind("words", "AMSGrad", "betas=(0.9, 0.98))", "betas=(0.9, 0.98), amsgrad=True)",
            "torch.optim.AdamW|optimizer.step()", "amsgrad"),
    _before("words", "a mask that hides the past", ".triu(diagonal=1)", ".tril(diagonal=-1)",
            ".triu(diagonal=1)|.tril(diagonal=-1)|masked_fill(hidden"),
    _before("words", "queries and keys swapped", "scores = q @ k.transpose(-2, -1)", "scores = k @ q.transpose(-2, -1)",
            "scores ="),
    _before("words", "a softmax over queries", ".softmax(-1)", ".softmax(-2)", "softmax("),
    _before("words", "places backward", "device=words.device)\n        x =",
            "device=words.device).flip(0)\n        x =", "torch.arange(|self.places(places)"),
    _behind("series", "no momentum", "momentum=0.5", "momentum=0.0", "torch.optim.RMSprop|slow.step()", "momentum"),
    _behind("series", "an optimizer that does not step", "    fast.step()\n", "", "fast.step()|slow.step()"),
    _behind("series", "another first accumulator", "initial_accumulator_value=0.1", "initial_accumulator_value=0.2",
            "torch.optim.Adagrad|fast.step()"),
    _behind("series", "the other part is cut", "clip_grad_norm_(model.cell.", "clip_grad_norm_(model.reader.",
            "clip_grad_norm_|slow.step()"),
    _before("series", "gates in another order", "i, f, g, o = ", "f, i, g, o = ", "chunk(4|torch.sigmoid(f"),
    _before("series", "states that are swapped", "h, c = self.cell(x", "c, h = self.cell(x", "self.cell(x[:, at]"),
    _before("series", "a forget gate without its bias", "torch.sigmoid(f + 1.0)", "torch.sigmoid(f)",
            "torch.sigmoid(f"),
    _before("series", "the wrong step as the goal", "wave[:, -1])", "wave[:, -2])", "F.mse_loss("),
    _behind("shares", "gradients that are not added up", "        dist.all_reduce(parameter.grad)\n", "",
            "dist.all_reduce(|parameter.grad.div_"),
    _behind("shares", "gradients that are not divided", "        parameter.grad.div_(world)\n", "",
            "dist.all_reduce(|parameter.grad.div_|clip_grad_norm_"),
    _behind("shares", "the largest gradient for their sum", "all_reduce(parameter.grad)",
            "all_reduce(parameter.grad, op=dist.ReduceOp.MAX)", "dist.all_reduce(|parameter.grad.div_"),
    _behind("shares", "another rate on one rank", "lr=0.1", "lr=0.1 * (1 + rank)",
            "torch.optim.SGD|optimizer.step()", "rank 1"),
    _before("shares", "weights that are not sent", "    dist.broadcast(parameter.data, src=0)\n", "    pass\n",
            "self.one(x)|model(x)", "initial weights differ"),
    _before("shares", "one share for both", "samples[step].chunk(world)[rank]", "samples[step].chunk(world)[0]",
            "samples[step]|model(x)|self.one(x)", "rank 1"),
    _before("shares", "silu for mish on one rank", "F.mish(self.two(x))",
            "(F.mish if rank == 0 else F.silu)(self.two(x))", "self.two(x)", "rank 1"),
    _before("shares", "no layer norm", "self.norm(self.one(x))",
            "self.one(x) * self.norm.weight + self.norm.bias", "self.one(x)"),
])]  # fmt: skip


@dataclass(frozen=True)
class Harmless:
    """Two runs that compute the same: `swaps` are those of the NPU's side, `bench` of the bench's."""

    kind: str
    name: str
    swaps: Swaps = ()
    bench: Swaps = ()
    threads: int = 1  #: of the NPU's side


_ATTENTION = """        scores = q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, WIDTH)
"""
_FUSED = """        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden)
        mixed = mixed.transpose(1, 2).reshape(batch, length, WIDTH)
"""
_STEP = "    optimizer.step()\n"
_SHOWN = """    shown = sum(each.grad.norm() for each in model.parameters())
    print(float(shown))
"""
HARMLESS = [
    # Of the bench alone: an NPU refuses this format of memory.
    Harmless("pictures", "channels last", (),
             (("Net().to(device)", "Net().to(device, memory_format=torch.channels_last)"),
              ("pictures[step].to(device)", "pictures[step].to(device, memory_format=torch.channels_last)"))),
    Harmless("words", "AdamW for all at once", (("0.98))", "0.98), foreach=True)"),),
             (("0.98))", "0.98), foreach=False)"),)),
    Harmless("pictures", "SGD for all at once", (("nesterov=True)", "nesterov=True, foreach=True)"),),
             (("nesterov=True)", "nesterov=True, foreach=False)"),)),
    Harmless("mlp", "a fused Adam", (("eps=1e-8)", "eps=1e-8, fused=True)"),)),
    Harmless("pictures", "two threads", threads=2),
    Harmless("words", "a fused attention", ((_ATTENTION, _FUSED),)),
    Harmless("words", "a norm of all gradients at once", (("parameters(), 0.5)", "parameters(), 0.5, foreach=True)"),),
             (("parameters(), 0.5)", "parameters(), 0.5, foreach=False)"),)),
    Harmless("words", "other shapes by other names", (("logits.flatten(0, 1)", "logits.reshape(-1, WORDS)"),
                                                      ("batch[:, 1:].flatten()", "batch[:, 1:].reshape(-1)"))),
    Harmless("series", "gradients that become zero", (("slow.zero_grad()", "slow.zero_grad(set_to_none=False)"),
                                                      ("fast.zero_grad()", "fast.zero_grad(set_to_none=False)"))),
    Harmless("mlp", "a norm that is shown", ((_STEP, _SHOWN + _STEP),)),
    Harmless("shares", "a loss that is shown", ((_STEP, _STEP + "    shown = loss.detach().clone()\n"
                                                 "    dist.all_reduce(shown)\n    dist.barrier()\n"),)),
    Harmless("pictures", "a function for a method", (("self.fc(x.flatten(1))", "self.fc(torch.flatten(x, 1))"),)),
]  # fmt: skip
KINDS = ("mlp", "pictures", "words", "series", "shares")


def graded(fault: Trained, found: Comparison) -> str:
    """`right`, or why not: `silent: ...`, `elsewhere: ...`, `not told: ...`."""
    said = sentence(found)
    if found.first is None or found.first.verdict is None:
        return f"silent: {said}" if found.same else f"unsettled: {said}"
    match = re.match(r"(.+):(\d+)", place(found.first.source))
    if match is None:
        return f"elsewhere: {said}"
    lines = Path(match[1]).read_text(encoding="utf-8").splitlines()
    at = int(match[2]) - 1
    near = "\n".join(lines[max(at - _BESIDE, 0) : at + _BESIDE + 1])
    if not any(piece in near for piece in fault.lines.split("|")):
        return f"elsewhere: {said}"
    return "right" if any(piece in said for piece in fault.told.split("|")) else f"not told: {said}"
