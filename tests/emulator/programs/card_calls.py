"""Calls of operators written down, drawn again, and judged: `transplt/emulator/on_card`, on the emulated card."""

import sys
from pathlib import Path

import torch
import torch_npu  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[3] / "transplt" / "emulator" / "on_card"))
import card_calls as calls
import card_operators as operators

aten = torch.ops.aten
card = operators._card()


def written(op, *args, **kwargs):
    named = {name: calls.encode(value) for name, value in kwargs.items()}
    call = {"op": calls.name_of(op), "args": calls.encode(args), "kwargs": named}
    calls.note_values(call["args"], args)
    call["types"] = [each["T"] for each in calls.tensors_of(call)]
    return call


def drawn(*args, seed=7):
    return operators._given(written(aten.add.Tensor, *args), "cpu", seed)[0]


def raises(*args):
    try:
        written(aten.add.Tensor, *args)
    except calls.Unsayable as why:
        return str(why)
    return ""


# What is drawn has the type, the shape, the strides and the range of what was there, and is the same each time.
weights = torch.rand(6, 4).t()
(again,) = drawn(weights)
assert (again.shape, again.stride(), again.dtype) == (weights.shape, weights.stride(), weights.dtype)
assert again.min() >= 0 and again.max() <= 1 and not torch.equal(again, weights)
assert torch.equal(again, drawn(weights)[0]) and not torch.equal(again, drawn(weights, seed=8)[0])
(wide,) = drawn(torch.randn(3, 1).expand(3, 5))
assert wide.stride() == (1, 0) and torch.equal(wide[:, 0], wide[:, 4])
(picture,) = drawn(torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last))
assert picture.is_contiguous(memory_format=torch.channels_last)
assert drawn(torch.full((4,), 2.5))[0].tolist() == [2.5] * 4
assert drawn(torch.rand(3, dtype=torch.complex64))[0].dtype is torch.complex64
assert drawn(torch.rand(0, 3))[0].shape == (0, 3)
# Indices lie within their bounds, which both come up; order and difference stay.
(index,) = drawn(torch.tensor([3, 9, 5, 3]))
assert (index.min(), index.max()) == (3, 9)
assert sorted(drawn(torch.randperm(9))[0].tolist()) == list(range(9))
lengths = drawn(torch.tensor([7, 5, 5, 2]))[0].tolist()
assert lengths == sorted(lengths, reverse=True) and (lengths[0], lengths[-1]) == (7, 2)
mask = torch.rand(50) < 0.3
assert drawn(mask)[0].sum() == mask.sum() and drawn(mask)[0].dtype is torch.bool
# A mask of attention has its infinities.
causal = torch.triu(torch.full((8, 8), float("-inf")), 1)
share = float((drawn(causal)[0] == float("-inf")).float().mean())
assert 0.2 < share < 0.7, share
# What has no such form is said.
assert raises(torch.tensor([1.0, float("nan")])) == "a tensor has values that are infinite or no numbers"
assert raises(torch.eye(2).to_sparse()) == "a tensor is sparse or quantized"
assert raises(torch.Generator()) == "an argument is a Generator"
# Calls that differ in numbers with a point are one call.
one, two = torch.ones(2), torch.ones(2, 2)


def key(op, *args):
    return calls.key_of(written(op, *args))


assert key(aten.add_.Tensor, one, 0.5) == key(aten.add_.Tensor, one, 0.1)
assert key(aten.sum.dim_IntList, two, [0]) != key(aten.sum.dim_IntList, two, [1])


def outcome(op, *args, **kwargs):
    found = operators._try(written(op, *args, **kwargs), 7, card)
    return found["state"], found["message"]


x, npu = torch.rand(4, 4), torch.rand(4, 4).npu()
twice, each = torch.tensor([1, 1]).npu(), torch.tensor([1, 3]).npu()
assert outcome(aten.mm.default, npu, npu)[0] == "equal"
assert outcome(aten.mm.default, npu.half(), npu.half())[0] == "equal"
assert outcome(aten.add_.Tensor, npu, 1.5)[0] == "equal"
assert outcome(aten._to_copy.default, x, device=torch.device("npu"), dtype=torch.float16)[0] == "equal"
assert outcome(aten._foreach_mul_.Scalar, [npu, npu[0]], 2.0)[0] == "equal"
assert outcome(aten.bernoulli.default, npu) == ("ran", "it draws")
assert outcome(aten.empty_like.default, npu) == ("ran", "its result is not set")
may = ("not tried", "two values may go to one place, and any of them may stay")
assert outcome(aten.index_put.default, npu, [twice], npu[:2]) == may
assert outcome(aten.index_put.default, npu, [twice], npu[:2], True)[0] == "equal"
assert outcome(aten.index_put.default, npu, [each], npu[:2])[0] == "equal"
assert outcome(aten.scatter.src, npu, 1, each.repeat(2, 1), npu) == may
assert outcome(aten.scatter.src, npu, 1, each.view(2, 1), npu)[0] == "equal"
assert outcome(aten.scatter_add.default, npu, 1, twice.repeat(2, 1), npu)[0] == "equal"
assert outcome(aten.linalg_cholesky_ex.default, npu, check_errors=True)[0] == "not tried"
unknown = {**written(aten.mm.default, npu, npu), "op": "aten::of_tomorrow"}
assert operators._try(unknown, 7, card)["state"] == "not tried"

# How far a result may be off.
truth = torch.linspace(-1, 1, 101)


def gap(share, types, scale=1.0):
    theirs = truth.to(getattr(torch, types[0])) * scale
    return operators._gap(theirs * (1 + share), theirs, types)


assert gap(1e-3, ["float32"])[0] < 1 < gap(1e-2, ["float32"])[0]
assert gap(1e-2, ["float32", "bfloat16"])[0] < 1 < gap(0.1, ["float32", "bfloat16"])[0]
assert gap(1e-6, ["float64"])[0] > 1
assert gap(1e-2, ["float32"], 1e-20)[0] > 1  # small results are no excuse
nan = torch.tensor([1.0, float("nan")])
assert operators._gap(nan, nan, ["float32"]) == (0.0, "")
assert "infinities and NaN" in operators._gap(nan, torch.ones(2), ["float32"])[1]
assert "gives the shape [2]" in operators._gap(torch.ones(2), torch.ones(3), ["float32"])[1]
assert operators._gap(torch.tensor([1, 2]), torch.tensor([1, 3]), ["float32"])[1].startswith("1 of 2 whole numbers")
print("ok")
