"""Activations and softmax, and their gradients."""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch

from . import operator, same

aten = torch.ops.aten

operator("SiluBackward")(aten.silu_backward.default)
operator("HardswishBackward", "HardswishBackwardV2")(aten.hardswish_backward.default)

_APPROXIMATIONS = {0: "none", 1: "tanh"}
#: The slope of `fast_gelu`, an approximation of gelu by a sigmoid.
_FAST_GELU = 1.702


def _computed_in(input: Any, outputs: Any) -> Any:
    """The type in which a softmax over `input` is taken: a wider one where the output has it."""
    return outputs[0].dtype if outputs[0].dtype.itemsize > input.dtype.itemsize else input.dtype


@operator("Softmax")
def softmax(input: Any, axis: int, outputs: Any) -> Any:
    """In the wider one of the types of input and output."""
    return aten._softmax(input.to(_computed_in(input, outputs)), axis, False)


same({
    # In the wider one of the types of input and output.
    "LogSoftmax": lambda input, axis, outputs: aten._log_softmax(input.to(_computed_in(input, outputs)), axis, False),
    # From the input alone.
    "LogSigmoidBackward": lambda grad, input, _buffer: grad * torch.sigmoid(-input),
})  # fmt: skip


@operator("SoftmaxBackward")
def softmax_backward(grad: Any, result: Any, axis: int) -> Any:
    """By the result of the forward."""
    grad = grad.to(result.dtype)
    return aten._softmax_backward_data(grad, result, axis, result.dtype)


@operator("LogSoftmaxBackward")
def log_softmax_backward(grad: Any, result: Any, axis: int) -> Any:
    """By the result of the forward."""
    grad = grad.to(result.dtype)
    return aten._log_softmax_backward_data(grad, result, axis, result.dtype)


class _Asked(threading.local):
    approximation = "none"


#: What the call of gelu that goes on asks for. torch_npu does not pass it on, and a card takes tanh for both
#: (ops-nn, aclnnGelu.md): a known silent error, NPU736. Numbers here are those that the program asks for.
asked = _Asked()
#: By the address of an input, what was asked for: its backward is not told either.
_approximations: dict[int, str] = {}
_MOST = 1 << 12


@operator("Gelu")
def gelu_as_asked(input: Any) -> Any:
    """By the function of errors, or by tanh."""
    if len(_approximations) > _MOST:
        _approximations.clear()
    _approximations[input.data_ptr()] = asked.approximation
    return aten.gelu(input, approximate=asked.approximation)


@operator("GeluBackward")
def gelu_backward_as_asked(grad: Any, input: Any) -> Any:
    """As `gelu_as_asked` of this input."""
    return aten.gelu_backward(grad, input, approximate=_approximations.get(input.data_ptr(), "none"))


def remember_gelu(functional: Any) -> None:
    """Let `torch.nn.functional.gelu` say which approximation it is asked for."""
    original = functional.gelu

    @functools.wraps(original)
    def gelu(*args: Any, **kwargs: Any) -> Any:
        asked.approximation = kwargs.get("approximate", "none")
        try:
            return original(*args, **kwargs)  # a dump records what was given
        finally:
            asked.approximation = "none"

    functional.gelu = gelu
    torch.jit._builtins._register_builtin(gelu, "aten::gelu")


@operator("PreluBackward")
def prelu_backward(grad: Any, input: Any, weight: Any) -> Any:
    """Gradients of the input and of the weight, which is one number or one for each channel (axis 1)."""
    wide = weight.reshape([1, -1] + [1] * (input.dim() - 2)) if input.dim() > 1 else weight
    of_input, of_weight = aten._prelu_kernel_backward(grad, input, wide)
    return of_input, of_weight.float().sum_to_size(wide.shape)


@operator("GeluV2")
def gelu(input: Any, approximation: int) -> Any:
    """Approximation 1 is by tanh."""
    return aten.gelu(input, approximate=_APPROXIMATIONS[approximation])


@operator("GeluBackwardV2")
def gelu_backward(grad: Any, input: Any, approximation: str) -> Any:
    """The approximation by its name."""
    return aten.gelu_backward(grad, input, approximate=approximation)


@operator("GeluMul")
def gelu_times(input: Any, approximation: Any) -> Any:
    """The gelu of the first half of the last axis times the second."""
    first, second = input.chunk(2, -1)
    return aten.gelu(first, approximate=approximation or "none") * second


@operator("FastGelu")
def fast_gelu(input: Any) -> Any:
    """x * sigmoid(1.702 * x)."""
    return input * torch.sigmoid(_FAST_GELU * input)


@operator("FastGeluBackward")
def fast_gelu_backward(grad: Any, input: Any) -> Any:
    """The derivative of `fast_gelu`."""
    chance = torch.sigmoid(_FAST_GELU * input)
    return grad * (chance + _FAST_GELU * input * chance * (1 - chance))


def _halves(input: Any, axis: int, activate_left: bool) -> tuple[Any, Any]:
    """The half that is activated, and the other one."""
    left, right = input.chunk(2, axis)
    return (left, right) if activate_left else (right, left)


@operator("GeGluV3")
def gated_gelu(input: Any, axis: int, approximation: int, activate_left: bool) -> Any:
    """One half times the gelu of the other; and that gelu."""
    inner, gate = _halves(input, axis, activate_left)
    active = aten.gelu(inner, approximate=_APPROXIMATIONS[approximation])
    return gate * active, active


@operator("GeGluV3Backward")
def gated_gelu_backward(
    grad: Any, input: Any, active: Any, axis: int, approximation: int, activate_left: bool
) -> Any:
    """The gradient of both halves."""
    inner, gate = _halves(input, axis, activate_left)
    of_inner = aten.gelu_backward(grad * gate, inner, approximate=_APPROXIMATIONS[approximation])
    both = (of_inner, grad * active) if activate_left else (grad * active, of_inner)
    return torch.cat(both, axis)


@operator("LogSigmoidForward")
def log_sigmoid(input: Any) -> Any:
    """The result; torch_npu makes the buffer empty (LogSigmoidNpuOpApi.cpp)."""
    return aten.log_sigmoid(input), None
