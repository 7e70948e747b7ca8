"""What operators of the older interface compute, by their names: those of torch_npu's own functions that have no
function of aclnn, and the usual ones of a training with `jit_compile=True`.

Inputs, outputs and attributes: op-plugin's ops/aclops. A function gets the inputs in order, as keywords those
attributes that it names, and `outputs` if it asks for them; it gives one value or a tuple.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from .operators import OWN

_ATEN = torch.ops.aten
NAMED: dict[str, Callable[[list[Any], dict[str, Any], list[Any]], Any]] = {}


def named(*names: str) -> Callable[[Any], Any]:
    """Let the function below compute the operators of these names."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values() if inspect.isfunction(function) else ()
        keywords = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}

        def run(inputs: list[Any], attributes: dict[str, Any], outputs: list[Any]) -> Any:
            given = {name: value for name, value in attributes.items() if name in keywords}
            if "outputs" in keywords:
                given["outputs"] = outputs
            return function(*inputs, **given)

        NAMED.update(dict.fromkeys(names, run))
        return function

    return add


def all_named(functions: dict[str, Callable[..., Any]]) -> None:
    """Likewise for a table of functions; a key may hold several names."""
    for name, function in functions.items():
        named(*name.split())(function)


def _numbers(values: Any) -> list[int]:
    """A tensor of numbers as a list."""
    found: list[int] = values.reshape(-1).tolist()
    return found


# ---- element by element ----
all_named({
    name: getattr(torch, name.lower()) for name in (
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Erfc", "Exp", "Expm1",
        "Floor", "Log1p", "Neg", "Reciprocal", "Relu", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt",
        "Square", "Tan", "Tanh", "Trunc", "Maximum", "Minimum", "Pow", "Atan2", "Less", "Greater",
    )
})  # fmt: skip
all_named({
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "RealDiv": torch.true_divide, "FloorDiv": torch.floor_divide,
    "FloorMod": torch.remainder, "Mod": torch.fmod, "Equal": torch.eq, "NotEqual": torch.ne, "LessEqual": torch.le,
    "GreaterEqual": torch.ge, "LogicalAnd": torch.logical_and, "LogicalOr": torch.logical_or,
    "LogicalNot": torch.logical_not, "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor, "Invert": torch.bitwise_not, "Identity": lambda x: x, "Mish": F.mish,
    "Select": torch.where, "SelectV2": torch.where, "Lerp": torch.lerp, "Xlogy": torch.xlogy,
    "ClipByValue": torch.clamp, "ClipByValueV2": torch.clamp,
    "Addcmul": lambda x, one, two, value: x + one * two * value,
    "Addcdiv": lambda x, one, two, value: x + one / two * value,
    "AxpyV2": lambda x, y, alpha: x + y * alpha,
    "MaskedFill": lambda x, mask, value: torch.where(mask, value.to(x.dtype), x),
    "ZerosLike": torch.zeros_like, "OnesLike": torch.ones_like,
    "Fill": lambda sizes, value: value.expand(_numbers(sizes)),
    "Range": lambda start, end, step: torch.arange(start.item(), end.item(), step.item(), device="cpu"),
    "HardSwish": F.hardswish, "HardSigmoid": F.hardsigmoid,
})  # fmt: skip
# CANN's gelu is that by tanh.
all_named({
    "Gelu": lambda x: F.gelu(x, approximate="tanh"),
    "FastGelu": lambda x: x * torch.sigmoid(1.702 * x),
    "ReluGrad": lambda gradient, x: gradient * (x > 0),
    "SigmoidGrad": lambda y, gradient: gradient * y * (1 - y),
    "TanhGrad": lambda y, gradient: gradient * (1 - y * y),
    "GeluGrad": lambda gradient, x, y: _ATEN.gelu_backward(gradient, x, approximate="tanh"),
    "MishGrad": lambda gradient, x, *_: _ATEN.mish_backward(gradient, x),
    "SwishGrad": lambda gradient, x, y: _ATEN.silu_backward(gradient, x),
    "SiluGrad": _ATEN.silu_backward,
})  # fmt: skip


all_named({
    "Swish": lambda x, *, scale=1.0: x * torch.sigmoid(scale * x),
    "LeakyRelu": lambda x, *, negative_slope=0.01: F.leaky_relu(x, negative_slope),
    "Cast": lambda x, *, outputs: x.to(outputs[0].dtype),
})  # fmt: skip


@named("FastGeluGrad")
def _fast_gelu_grad(gradient: Any, x: Any) -> Any:
    gate = torch.sigmoid(1.702 * x)
    return gradient * gate * (1 + 1.702 * x * (1 - gate))


@named("Log")
def _log(x: Any, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> Any:
    """By `base`; -1 is that of the natural logarithm."""
    found = torch.log(x.float() * scale + shift)
    return found if base < 0 else found / torch.log(torch.tensor(base, device="cpu"))


# ---- places: shapes and parts ----
all_named({
    "Transpose": lambda x, order: x.permute(_numbers(order)),
    "BroadcastTo": lambda x, sizes: x.broadcast_to(_numbers(sizes)),
    "Tile": lambda x, times: x.repeat(_numbers(times)),
    "ConcatD": lambda *parts, concat_dim: torch.cat(parts, concat_dim),
    "Pack": lambda *parts, axis: torch.stack(parts, axis),
    "GatherElements": lambda x, index, *, dim=0: x.gather(dim, index.long()),
    "ScatterElements": lambda x, index, values, *, axis=0: x.scatter(axis, index.long(), values),
    "Index": lambda x, masks, sizes, *indices: _ATEN.index(x, _indices(masks, indices)),
    "ReverseV2": lambda x, dims: x.flip(_numbers(dims)),
    "Roll": lambda x, *, shifts, dims=(): x.roll(shifts, dims),
    "Tril": lambda x, *, diagonal=0: torch.tril(x, diagonal),
    "Triu": lambda x, *, diagonal=0: torch.triu(x, diagonal),
})  # fmt: skip


@named("Slice")
def _slice(x: Any, starts: Any, sizes: Any) -> Any:
    for dim, (start, size) in enumerate(zip(_numbers(starts), _numbers(sizes), strict=True)):
        x = x.narrow(dim, start, size)
    return x


@named("StridedSlice")
def _strided_slice(x: Any, starts: Any, ends: Any, steps: Any, *, outputs: Sequence[Any]) -> Any:
    bounds = zip(_numbers(starts), _numbers(ends), _numbers(steps), strict=True)
    return x[tuple(slice(*each) for each in bounds)].reshape(outputs[0].shape)


@named("Pad")
def _pad(x: Any, amounts: Any) -> Any:
    """Zeros before and after each dimension, the first first."""
    pairs = amounts.reshape(-1, 2).flip(0)
    return F.pad(x, _numbers(pairs))


@named("PadV3")
def _pad_with(x: Any, amounts: Any, value: Any, *, mode: str = "constant") -> Any:
    numbers = _numbers(amounts.reshape(-1, 2).flip(0))
    if mode == "constant":
        return F.pad(x, numbers, value=value.item())
    return F.pad(x, numbers[: 2 * x.dim() - 4], mode={"edge": "replicate"}.get(mode, mode))


@named("AsStrided")
def _as_strided(x: Any, sizes: Any, strides: Any, start: Any) -> Any:
    return x.as_strided(_numbers(sizes), _numbers(strides), x.storage_offset() + int(start))


@named("ViewCopy")
def _view_copy(
    target: Any, sizes: Any, strides: Any, start: Any, x: Any, x_sizes: Any, x_strides: Any, x_start: Any
) -> Any:
    """Written into a view of the first input, which is the output as well."""
    _as_strided(target, sizes, strides, start).copy_(_as_strided(x, x_sizes, x_strides, x_start))


@named("GatherV2")
def _gather(x: Any, index: Any, dim: Any) -> Any:
    flat = x.index_select(int(dim), index.reshape(-1).long())
    return flat.unflatten(int(dim), index.shape) if index.dim() != 1 else flat


def _indices(masks: Any, indices: Sequence[Any]) -> list[Any]:
    """One index for each dimension whose mask is 1, None for the others."""
    left = iter(indices)
    return [next(left) if mask else None for mask in _numbers(masks)]


@named("OneHot")
def _one_hot(x: Any, depth: Any, on: Any, off: Any, *, axis: int = -1) -> Any:
    return _one_hot_of_depth(x, on, off, axis=axis, depth=int(depth))


@named("OneHotD")
def _one_hot_of_depth(x: Any, on: Any, off: Any, *, axis: int = -1, depth: int) -> Any:
    found = torch.where(x.unsqueeze(-1) == torch.arange(depth, device="cpu"), on, off)
    return found if axis == -1 else found.movedim(-1, axis)


# ---- along dimensions ----
def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(x: Any, dims: Any, *, keep_dims: bool = False) -> Any:
        return function(x, _numbers(dims) or tuple(range(x.dim())), keep_dims)

    return reduce


for _name, _function in {
    "ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax, "ReduceMin": torch.amin,
    "ReduceAll": torch.all, "ReduceAny": torch.any,
}.items():  # fmt: skip
    named(_name)(_reduction(_function))


@named("LpNormReduceV2")
def _powers(x: Any, *, p: float, axes: Sequence[int] = (), keepdim: bool = False) -> Any:
    """The first half of a norm: the sum of powers, or the greatest magnitude for one of infinite order."""
    dims = tuple(axes) or tuple(range(x.dim()))
    return x.abs().amax(dims, keepdim) if p == torch.inf else x.abs().pow(p).sum(dims, keepdim)


all_named({
    "LpNormUpdateV2": lambda powers, *, p: powers if p == torch.inf else powers.pow(1 / p),
    "Cumsum": lambda x, dim: x.cumsum(int(dim)),
    "ArgMaxV2": lambda x, dim, *, keep_dims=False: x.argmax(int(dim), keep_dims),
    "TopKV2": lambda x, k, *, dim=-1, largest=True, sorted=True: tuple(x.topk(int(k), dim, largest, sorted)),
    "Sort": lambda x, *, axis=-1, descending=False: tuple(x.sort(dim=axis, descending=descending, stable=True)),
    "SortV2": lambda x, *, axis=-1, descending=False: x.sort(dim=axis, descending=descending)[0],
    "SoftmaxV2": lambda x, *, axes=(-1,), outputs: torch.softmax(x.to(outputs[0].dtype), axes[0]),
    "LogSoftmaxV2": lambda x, *, axes=(-1,), outputs: torch.log_softmax(x.to(outputs[0].dtype), axes[0]),
    "SoftmaxGrad": lambda y, gradient, *, axes=(-1,): _ATEN._softmax_backward_data(gradient, y, axes[0], y.dtype),
    "LeakyReluGrad": lambda gradient, x, *, negative_slope=0.01: (
        torch.where(x > 0, gradient, gradient * negative_slope)
    ),
    "ConfusionTransposeD": lambda x, *, perm, shape, transpose_first: (
        x.permute(perm).reshape(shape) if transpose_first else x.reshape(shape).permute(perm)
    ),
    "IndexPutV2": lambda x, values, masks, _, *indices, accumulate=False: (
        _ATEN.index_put(x, _indices(masks, indices), values, accumulate)
    ),
    "LogSoftmaxGrad": lambda gradient, y, *, axis=(-1,): (
        _ATEN._log_softmax_backward_data(gradient, y, axis[0], y.dtype)
    ),
    "ScaledMaskedSoftmax": lambda x, mask, *, scale=1.0, fixed_triu_mask=False: (
        OWN["aclnnScaledMaskedSoftmax"].function(x, mask, scale, fixed_triu_mask)
    ),
    "ScaledMaskedSoftmaxGrad": lambda gradient, y, mask, *, scale=1.0, fixed_triu_mask=False: (
        OWN["aclnnScaledMaskedSoftmaxBackward"].function(gradient, y, mask, scale, fixed_triu_mask)
    ),
})  # fmt: skip


@named("ArgMaxWithValue")
def _max(x: Any, *, dimension: int, keep_dims: bool = False) -> tuple[Any, Any]:
    values, indices = x.max(dimension, keep_dims)
    return indices, values


@named("ArgMinWithValue")
def _min(x: Any, *, dimension: int, keep_dims: bool = False) -> tuple[Any, Any]:
    values, indices = x.min(dimension, keep_dims)
    return indices, values


@named("ArgMaxGrad")
def _max_grad(zeros: Any, indices: Any, gradient: Any, *, dimension: int) -> Any:
    """The gradient at the places of the values, along a dimension that the inputs may have lost."""
    if indices.dim() < zeros.dim():
        indices, gradient = indices.unsqueeze(dimension), gradient.unsqueeze(dimension)
    return zeros.scatter(dimension, indices.long(), gradient)
