"""The same operator on each tensor of a list (aclnnForeach...): PyTorch's own, of the CPU.

Numbers come as scalars (the newer V2) or as tensors of one number; a list of numbers as a list of scalars, or as one
tensor of them.
"""

from __future__ import annotations

from typing import Any

import torch

from . import operator, same

_UNARY = (
    "Abs Acos Asin Atan Cos Cosh Erf Erfc Exp Expm1 Log Log10 Log1p Log2 Neg Reciprocal Sigmoid Sign Sin Sinh Sqrt Tan "
    "Tanh"
).split()
_BINARY = ("Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow")
#: How numbers are rounded by ForeachRoundOffNumber (ForeachRoundOffNumberKernelNpuOpApi.cpp).
_ROUNDING = {1: "round", 2: "floor", 3: "ceil", 5: "trunc", 7: "frac"}


def _each(name: str, outputs: Any, inputs: Any, *others: Any, **keywords: Any) -> None:
    """`torch._foreach_<name>` of the inputs, in place where they are the outputs too."""
    if outputs is inputs or all(out is given for out, given in zip(outputs, inputs, strict=True)):
        getattr(torch, f"_foreach_{name}_")(inputs, *others, **keywords)
    else:
        torch._foreach_copy_(outputs, getattr(torch, f"_foreach_{name}")(inputs, *others, **keywords))


def _number(value: Any) -> Any:
    """A number that may have come as a tensor of one."""
    return value.reshape(-1)[0].item() if isinstance(value, torch.Tensor) else value


def _numbers(values: Any) -> list[Any]:
    return values.reshape(-1).tolist() if isinstance(values, torch.Tensor) else list(values)


def _add_unary(name: str) -> None:
    @operator(f"Foreach{name}")
    def compute(inputs: Any, outputs: Any) -> None:
        _each(name.lower(), outputs[0], inputs)


def _add_binary(name: str) -> None:
    function = name.lower()

    @operator(f"Foreach{name}Scalar", f"Foreach{name}ScalarV2")
    def with_number(inputs: Any, other: Any, outputs: Any) -> None:
        _each(function, outputs[0], inputs, _number(other))

    @operator(f"Foreach{name}ScalarList")
    def with_numbers(inputs: Any, others: Any, outputs: Any) -> None:
        _each(function, outputs[0], inputs, _numbers(others))

    if name in ("Add", "Sub"):

        @operator(f"Foreach{name}List", f"Foreach{name}ListV2")
        def with_scaled_list(inputs: Any, others: Any, alpha: Any, outputs: Any) -> None:
            _each(function, outputs[0], inputs, others, alpha=_number(alpha))

    else:

        @operator(f"Foreach{name}List")
        def with_list(inputs: Any, others: Any, outputs: Any) -> None:
            _each(function, outputs[0], inputs, others)


def _add_ternary(name: str) -> None:
    function = name.lower()

    @operator(f"Foreach{name}Scalar", f"Foreach{name}ScalarV2")
    def with_number(inputs: Any, ones: Any, twos: Any, value: Any, outputs: Any) -> None:
        _each(function, outputs[0], inputs, ones, twos, value=_number(value))

    @operator(f"Foreach{name}ScalarList")
    def with_numbers(inputs: Any, ones: Any, twos: Any, values: Any, outputs: Any) -> None:
        _each(function, outputs[0], inputs, ones, twos, _numbers(values))


for _name in _UNARY:
    _add_unary(_name)
for _name in _BINARY:
    _add_binary(_name)
for _name in ("Addcmul", "Addcdiv"):
    _add_ternary(_name)


same({
    "ForeachZeroInplace": lambda inputs: torch._foreach_zero_(inputs),
    "ForeachCopy": lambda inputs, outputs: torch._foreach_copy_(outputs[0], inputs),
    "ForeachNorm": lambda inputs, order, outputs: torch._foreach_copy_(outputs[0], torch._foreach_norm(inputs, order)),
    "ForeachLerpScalar": lambda inputs, ends, weight, outputs: _each("lerp", outputs[0], inputs, ends, _number(weight)),
    "ForeachLerpList": lambda inputs, ends, weights, outputs: _each("lerp", outputs[0], inputs, ends, weights),
    "ForeachRoundOffNumber ForeachRoundOffNumberV2": lambda inputs, mode, outputs: _each(
        _ROUNDING[int(_number(mode))], outputs[0], inputs
    ),
})  # fmt: skip


@operator("ForeachPowScalarAndTensor")
def _pow_of_number(base: Any, exponents: Any, outputs: Any) -> None:
    torch._foreach_copy_(outputs[0], torch._foreach_pow(base, exponents))
