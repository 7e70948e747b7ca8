"""Element by element: arithmetic, comparisons, logic, bits, and functions of one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import operator, same, straight

_nn = torch._C._nn  # the element-wise layers that take `out=`
#: How a quotient is rounded, by the number that op-plugin passes (DivKernelNpuOpApi.cpp).
_ROUNDING = {0: None, 1: "trunc", 2: "floor"}

straight({name: getattr(torch, name.lower()) for name in (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Erfc Erfinv Exp Exp2 Expm1 Floor Frac Log Log10 Log1p Log2 "
    "Neg Reciprocal Round Rsqrt Sigmoid Signbit Sin Sinc Sinh Sqrt Tan Tanh Trunc Atan2 Gcd LogAddExp LogAddExp2 "
    "Maximum Minimum Mul Div Lerp"
).split()})  # fmt: skip
straight({
    "Sign": torch.sgn, "AngleV2": torch.angle, "BitwiseNot": torch.bitwise_not, "LogicalNot": torch.logical_not,
    "IsNegInf": torch.isneginf, "IsPosInf": torch.isposinf,
    "Relu": lambda self, out=None: torch.clamp_min(self, 0, out=out),
    "Silu": _nn.silu, "Mish": _nn.mish, "Hardswish": _nn.hardswish, "Hardsigmoid": _nn.hardsigmoid,
    "LogSigmoid": _nn.log_sigmoid,
    "LeakyRelu": _nn.leaky_relu, "Hardtanh": _nn.hardtanh, "Softplus": _nn.softplus, "Elu": _nn.elu,
    "Threshold": lambda self, threshold, value, out=None: torch.ops.aten.threshold(self, threshold, value)
    if out is None else torch.ops.aten.threshold.out(self, threshold, value, out=out),
    "RoundDecimals": lambda self, decimals, out=None: torch.round(self, decimals=decimals, out=out),
})  # fmt: skip
straight({
    "Muls": torch.mul, "Divs": torch.div, "FloorDivide": torch.floor_divide, "FloorDivides": torch.floor_divide,
    "FmodTensor": torch.fmod, "FmodScalar": torch.fmod, "RemainderTensorTensor": torch.remainder,
    "RemainderTensorScalar": torch.remainder,
    "PowTensorScalar": torch.pow, "PowTensorTensor": torch.pow, "PowScalarTensor": torch.pow,
    "LogicalAnd": torch.logical_and, "LogicalOr": torch.logical_or, "LogicalXor": torch.logical_xor,
    "BitwiseAndTensor": torch.bitwise_and, "BitwiseOrTensor": torch.bitwise_or, "BitwiseXorTensor": torch.bitwise_xor,
    "BitwiseAndScalar": torch.bitwise_and, "BitwiseOrScalar": torch.bitwise_or, "BitwiseXorScalar": torch.bitwise_xor,
    "LeftShift": torch.bitwise_left_shift, "LeftShifts": torch.bitwise_left_shift,
    "RightShift": torch.bitwise_right_shift,
    "EqTensor": torch.eq, "NeTensor": torch.ne, "LtTensor": torch.lt, "LeTensor": torch.le, "GtTensor": torch.gt,
    "GeTensor": torch.ge, "EqScalar": torch.eq, "NeScalar": torch.ne, "LtScalar": torch.lt, "LeScalar": torch.le,
    "GtScalar": torch.gt, "GeScalar": torch.ge, "LessScalar": torch.lt,
    "XLogYTensor": torch.xlogy, "XLogYScalarOther": torch.xlogy, "XLogYScalarSelf": torch.xlogy,
    "Lerps": torch.lerp, "Clamp": torch.clamp, "ClampTensor": torch.clamp, "ClampMin": torch.clamp_min,
    "ClampMax": torch.clamp_max, "ClampMinTensor": torch.clamp_min, "ClampMaxTensor": torch.clamp_max,
    "SWhere": torch.where, "NanToNum": torch.nan_to_num,
    "Add": lambda self, other, alpha, out=None: torch.add(self, other, alpha=alpha, out=out),
    "Sub": lambda self, other, alpha, out=None: torch.sub(self, other, alpha=alpha, out=out),
    "Rsub": lambda self, other, alpha, out=None: torch.sub(other, self, alpha=alpha, out=out),
    "Adds": lambda self, other, alpha, out=None: torch.add(self, other, alpha=alpha, out=out),
    "Subs": lambda self, other, alpha, out=None: torch.sub(self, other, alpha=alpha, out=out),
    "AddV3": lambda self, other, alpha, out=None: torch.add(torch.mul(other, alpha), self, out=out),
    "DivMod": lambda self, other, mode, out=None: torch.div(self, other, rounding_mode=_ROUNDING[mode], out=out),
    "DivMods": lambda self, other, mode, out=None: torch.div(self, other, rounding_mode=_ROUNDING[mode], out=out),
    "Addcdiv": lambda self, one, two, value, out=None: torch.addcdiv(self, one, two, value=value, out=out),
    "Addcmul": lambda self, one, two, value, out=None: torch.addcmul(self, one, two, value=value, out=out),
})  # fmt: skip
same({"RemainderScalarTensor": torch.remainder})


same({
    "Rsubs": lambda self, other, alpha: torch.rsub(self, other, alpha=alpha),
    "IsClose": lambda self, other, rtol, atol, equal_nan: torch.isclose(self, other, rtol, atol, equal_nan),
    "Equal": lambda self, other: torch.tensor(torch.equal(self, other), device="cpu"),
    # A negative `eps` is none (LogitKernelNpuOpApi.cpp).
    "Logit": lambda self, eps: torch.logit(self, eps if eps >= 0 else None),
    "LogitGrad": lambda self, grad, eps: torch.ops.aten.logit_backward(grad, self, eps if eps >= 0 else None),
    "MaskedScale": lambda self, mask, scale: self * mask * scale,
    "InplaceMaskedFillScalar": lambda self, mask, value: self.masked_fill_(mask.bool(), value),
    "InplaceMaskedFillTensor": lambda self, mask, value: self.masked_fill_(mask.bool(), value.reshape(())),
})  # fmt: skip


@operator("IsInScalarTensor", "IsInTensorScalar")
def _isin(elements: Any, among: Any, assume_unique: bool, invert: bool) -> Any:
    return torch.isin(elements, among, assume_unique=assume_unique, invert=invert)


@operator("FakeQuantPerTensorAffineCachemask")
def _fake_quantize(self: Any, scale: Any, zero_point: Any, enabled: float, low: int, high: int) -> Any:
    """Not enabled, all numbers pass."""
    on = torch.tensor([1 if enabled >= 1 else 0], device="cpu")
    return torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        self, scale, zero_point, on, low, high
    )


@operator("FakeQuantPerChannelAffineCachemask")
def _fake_quantize_by_channel(self: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> Any:
    return torch.ops.aten.fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis, low, high)


@operator("Sleep")
def _sleep(cycles: Sequence[int]) -> None:
    """The card's time is not emulated: nothing waits."""
