"""O2 and O3: models in float16."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ._state import Options

_WRAPPERS = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)


def check(models: list[Any]) -> None:
    """Models are bare, in float32 and on the NPU before `amp.initialize`."""
    for model in models:
        if isinstance(model, _WRAPPERS):
            raise RuntimeError(
                f"[emulated apex] the model is an instance of {type(model).__name__}: parallel wrappers are applied to "
                "what amp.initialize returns"
            )
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if tensor.is_floating_point() and (tensor.dtype == torch.float16 or tensor.device.type != "npu"):
                raise RuntimeError(
                    f"[emulated apex] {name} is {tensor.dtype} on {tensor.device}: amp.initialize takes float32 models "
                    "that are on the npu"
                )


def cast(model: Any, options: Options, outputs: Any) -> None:
    """Give a model another dtype, with a forward pass that casts what goes in and comes out."""
    for module in model.modules():
        normalises = isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.affine
        if options.keep_batchnorm_fp32 and normalises:
            continue
        _cast_own(module, options.cast_model_type)
    if options.cast_model_type != torch.float32:
        model._register_state_dict_hook(_state_in_float32)
    patch_forward(model, options.cast_model_type, outputs or torch.float32)


def patch_forward(model: Any, inputs: Any, outputs: Any) -> None:
    """Cast floating-point tensors before (`inputs`, None: not) and after the forward pass."""
    forward = model.forward

    def casting(*args: Any, **kwargs: Any) -> Any:
        if inputs is not None:
            args, kwargs = _convert(args, _to(inputs)), _convert(kwargs, _to(inputs))
        return _convert(forward(*args, **kwargs), _to(outputs))

    model.forward = casting


def _cast_own(module: Any, dtype: Any) -> None:
    for parameter in module._parameters.values():
        if parameter is not None and parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)
            if parameter.grad is not None:
                parameter.grad.data = parameter.grad.data.to(dtype)
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.is_floating_point():
            module._buffers[name] = buffer.to(dtype)


def _state_in_float32(module: Any, values: dict[str, Any], prefix: str, metadata: Any) -> None:
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and value.dtype == torch.float16:
            values[name] = value.to(torch.float32)


def _to(dtype: Any) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and not value.is_floating_point():
            return value
        return value.to(dtype)

    return change


def _convert(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to tensors, to batches with a `to` method, and inside containers."""
    if isinstance(value, torch.Tensor) or (hasattr(value, "to") and not isinstance(value, type)):
        return change(value)
    if isinstance(value, str) or type(value).__module__ == "numpy":
        return value
    if isinstance(value, Mapping):
        return {key: _convert(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_convert(item, change) for item in value))
    if isinstance(value, Iterable) and isinstance(value, (list, tuple, set)):
        return type(value)(_convert(item, change) for item in value)
    return value
