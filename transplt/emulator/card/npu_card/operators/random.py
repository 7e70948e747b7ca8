"""Operators that draw. The seed and the offset of each call come from torch_npu's generator: the same two give the same
numbers, any other offset others. With `config.random` of "cpu" the numbers are those of the CPU's own generator, in
place of which the program's calls then stand: a run equals a run on the CPU to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from npu_emulator.config import config

from . import operator, same

_SHARED = config.random == "cpu"
_MASK = (1 << 64) - 1
#: What torch_npu passes to random_ without bounds (RandomKernelNpuOpApi.cpp); for other types their largest number.
_BOUNDS = {
    torch.float16: (1 << 11) + 1, torch.bfloat16: (1 << 8) + 1, torch.float32: (1 << 24) + 1,
    torch.float64: (1 << 53) + 1, torch.bool: 1,
}  # fmt: skip


#: What stands on the CPU for the generators of the program's own, by their seeds.
_own: dict[int, Any] = {}


def _generator(seed: int, offset: int) -> Any:
    """A generator of this seed and offset. That of the CPU takes 32 bits: they are mixed of all (a round of
    splitmix64). None is the CPU's own."""
    if _SHARED:
        return _of_cpu(seed, offset)
    mixed = (seed * 0x9E3779B97F4A7C15 + offset * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
    return torch.Generator("cpu").manual_seed((mixed ^ mixed >> 31) & 0xFFFFFFFF)


def _of_cpu(seed: int, offset: int) -> Any:
    """The generator from which a run on the CPU would draw: its own, or, for another seed than that of the card's own,
    one of the program's."""
    if any((each.initial_seed() - seed) & _MASK == 0 for each in torch.npu.default_generators):
        return None  # an operator has the bits of a seed as a signed number, the generator as an unsigned one
    if offset == 0 or seed not in _own:
        _own[seed] = torch.Generator("cpu").manual_seed(seed)
    return _own[seed]


def _captured(seed: Any, offset: Any, more: int) -> tuple[int, int]:
    """Seed and offset of a graph, which keeps them in memory of the card."""
    return seed.reshape(-1)[0].item(), offset.reshape(-1)[0].item() + more


@operator("InplaceNormal")
def _normal_in_place(self: Any, mean: float, std: float, seed: int, offset: int) -> None:
    self.normal_(mean, std, generator=_generator(seed, offset))


@operator("NormalFloatFloat", "NormalFloatTensor", "NormalTensorFloat", "NormalTensorTensor")
def _normal(mean: Any, std: Any, seed: int, offset: int, outputs: Sequence[Any]) -> None:
    (out,) = outputs
    generator = _generator(seed, offset)
    if isinstance(mean, torch.Tensor) or isinstance(std, torch.Tensor):
        out.copy_(torch.normal(mean, std, generator=generator))
    else:
        out.normal_(mean, std, generator=generator)


@operator("InplaceUniform")
def _uniform(self: Any, low: float, high: float, seed: int, offset: int) -> None:
    self.uniform_(low, high, generator=_generator(seed, offset))


@operator("InplaceRandom")
def _random(self: Any, low: int, high: int, seed: int, offset: int) -> None:
    """`high` is not drawn. A call without bounds is known by the bounds that torch_npu gives it: the CPU draws it
    otherwise."""
    dtype = self.dtype
    if low == 0 and high == (_BOUNDS[dtype] if dtype in _BOUNDS else torch.iinfo(dtype).max):
        self.random_(generator=_generator(seed, offset))
    else:
        self.random_(low, high, generator=_generator(seed, offset))


@operator("InplaceRandomWithoutFromTo")
def _random_without_bounds(self: Any, seed: int, offset: int) -> None:
    self.random_(generator=_generator(seed, offset))


@operator("Multinomial")
def _multinomial(self: Any, samples: int, replacement: bool, seed: int, offset: int) -> Any:
    return torch.multinomial(self, samples, replacement, generator=_generator(seed, offset))


same({
    "InplaceNormalTensor": lambda self, mean, std, *at: _normal_in_place(self, mean, std, *_captured(*at)),
    "InplaceUniformTensor": lambda self, low, high, *at: _uniform(self, low, high, *_captured(*at)),
    "InplaceRandomTensor": lambda self, low, high, *at: _random(self, low, high, *_captured(*at)),
    "InplaceRandomWithoutFromToTensor": lambda self, *at: _random_without_bounds(self, *_captured(*at)),
    "MultinomialTensor": lambda self, count, again, *at: _multinomial(self, count, again, *_captured(*at)),
    "SimThreadExponential": lambda self, count, rate, seed, offset: (
        self.exponential_(rate, generator=_generator(seed, offset))
    ),
    "InplaceBernoulli InplaceBernoulliTensor": lambda self, probability, seed, offset: (
        self.bernoulli_(probability, generator=_generator(seed, offset))
    ),
    "Randperm": lambda count, seed, offset, outputs: (
        torch.randperm(count, dtype=outputs[0].dtype, device="cpu", generator=_generator(seed, offset))
    ),
})  # fmt: skip


@operator("RReluWithNoise")
def _rrelu(self: Any, noise: Any, low: Any, high: Any, training: bool, seed: int, offset: int) -> Any:
    return torch.ops.aten.rrelu_with_noise(self, noise, low, high, training, _generator(seed, offset))


@operator("InplaceRReluWithNoise")
def _rrelu_in_place(self: Any, noise: Any, low: Any, high: Any, training: bool, seed: int, offset: int) -> None:
    self.copy_(_rrelu(self, noise, low, high, training, seed, offset))


#: Multiplied with eight bytes of 0 or 1, read as one number, this gathers them as bits in the highest byte. A mask of
#: dropout has one bit a number, the lowest bit of a byte first.
_GATHER = 0x0102040810204080
#: For each byte its bits as eight bytes, read as one number.
_BYTES = torch.tensor(
    [sum((byte >> bit & 1) << 8 * bit for bit in range(8)) for byte in range(256)], dtype=torch.int64, device="cpu"
)


#: States of generators of the CPU before masks, by what torch_npu draws a mask with; more than `_MOST` lose the oldest.
_before: dict[tuple[int, int, int], Any] = {}
_MOST = 1 << 12


def _again(generator: Any, key: tuple[int, int, int]) -> Any:
    """What a mask is drawn from: in a backward, the state from which the forward drew it. The backward of attention
    draws the mask of its forward anew, by seed and offset. A forward that a backward repeats (checkpoints) has put its
    generators back, and draws on from there."""
    state = generator.get_state()
    if torch._C._current_graph_task_id() >= 0 and key in _before and not torch.equal(_before[key], state):
        return torch.Generator("cpu").set_state(_before[key])
    if len(_before) > _MOST:
        del _before[next(iter(_before))]
    _before[key] = state
    return generator


def _draw_mask(count: int, probability: float, seed: int, offset: int, mask: Any) -> None:
    """Fill a mask that keeps each of `count` numbers with 1 - `probability`, drawn as dropout on the CPU does (which
    draws the same for each type)."""
    places = torch.empty(mask.numel() * 8, dtype=torch.bool, device="cpu")
    generator = _generator(seed, offset)
    if _SHARED:
        generator = _again(generator or torch.default_generator, (seed, offset, count))
    places[:count].bernoulli_(1 - probability, generator=generator)
    places[count:] = False
    mask.copy_(places.view(torch.int64).mul_(_GATHER).bitwise_right_shift_(56).bitwise_and_(255))


def _size(shape: Sequence[int]) -> int:
    return int(torch.Size(shape).numel())


@operator("DropoutGenMask")
def _mask(shape: Sequence[int], probability: float, seed: int, offset: int, outputs: Sequence[Any]) -> None:
    _draw_mask(_size(shape), probability, seed, offset, outputs[0])


@operator("DropoutGenMaskV2")
def _mask_for_type(
    shape: Sequence[int], probability: float, seed: int, offset: int, dtype: Any, outputs: Sequence[Any]
) -> None:
    _draw_mask(_size(shape), probability, seed, offset, outputs[0])


@operator("DropoutGenMaskV2Tensor")
def _mask_of_graph(
    shape: Sequence[int], probability: float, seed: Any, offset: Any, more: int, dtype: Any, outputs: Sequence[Any]
) -> None:
    _draw_mask(_size(shape), probability, *_captured(seed, offset, more), outputs[0])


@lru_cache
def _noises(probability: float, dtype: Any) -> Any:
    """For each byte of a mask what eight numbers are multiplied with: 0, or 1 / (1 - probability) in their type, as
    dropout on the CPU scales."""
    bits = _BYTES.view(torch.uint8).view(256, 8).to(dtype)
    return bits.div_(1 - probability) if probability < 1 else bits.zero_()


@operator("DropoutDoMask")
def _apply_mask(self: Any, mask: Any, probability: float) -> Any:
    if not self.is_floating_point():
        raise TypeError(f"the input is of type {self.dtype}; only floating point numbers are dropped")
    noise = _noises(probability, self.dtype).index_select(0, mask.view(torch.uint8).reshape(-1).int())
    return self * noise.view(-1)[: self.numel()].view(self.shape)


@operator("DropoutV3")
def _dropout(self: Any, shape: Any, probability: float, seed: int, offset: int, outputs: Sequence[Any]) -> None:
    out, mask = outputs
    _draw_mask(self.numel(), probability, seed, offset, mask)
    out.copy_(_apply_mask(self, mask, probability))


@operator("DropoutV3Grad")
def _dropout_grad(grad: Any, mask: Any, scale: float) -> Any:
    """`scale` is 1 / (1 - probability), or 0."""
    return _apply_mask(grad, mask, 1 - 1 / scale if scale else 1.0)
