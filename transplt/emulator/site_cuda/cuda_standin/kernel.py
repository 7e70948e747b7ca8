"""The boxed kernel of the dispatch key: runs every operator on CPU aliases of its arguments on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from npu_emulator.host_memory import raise_if_host_is_full
from npu_emulator.record import record

from . import devices
from .kind import EMULATED, KIND
from .relabel import to_card, to_cpu
from .schema import OperatorInfo

_Tensor = torch.Tensor
_CPU = torch.device("cpu")
CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_infos: dict[Any, OperatorInfo] = {}
#: Called as (info, args, kwargs) before each operator.
hooks: list[Callable[[OperatorInfo, Any, Any], None]] = []


def count(name: str) -> None:
    """Count one operator call."""
    record.operators[name] += 1


def info_of(op: Any) -> OperatorInfo:
    info = _infos.get(op)
    if info is None:
        info = _infos[op] = OperatorInfo(op)
    return info


class Call:
    """The devices seen among the arguments of one call."""

    __slots__ = ("foreign", "index", "target")

    def __init__(self) -> None:
        self.index: int | None = None  # of the CUDA arguments
        self.target: int | None = None  # of a device argument
        self.foreign: str | None = None  # the first argument on the CPU

    def unwrap(self, value: Any, info: OperatorInfo, argument: str) -> Any:
        """`value` with CUDA tensors replaced by CPU aliases and CUDA devices by the CPU."""
        if isinstance(value, _Tensor):
            device = value.device
            if device.type == KIND:
                index = device.index
                if self.index is None:
                    self.index = index
                elif self.index != index and not info.mixed_ok and not (value.dim() == 0 and info.pointwise):
                    raise RuntimeError(
                        f"{EMULATED} {info.name}: all tensors must be on the same device, but argument "
                        f"'{argument}' is on {KIND}:{index} and an earlier one on {KIND}:{self.index}"
                    )
                return to_cpu(value)
            if (
                self.foreign is None
                and device.type == "cpu"
                and not (value.dim() == 0 and (info.pointwise or info.fused))
            ):
                self.foreign = argument
            return value
        if isinstance(value, (list, tuple)):
            if value and (isinstance(value[0], _Tensor) or any(isinstance(x, _Tensor) for x in value)):
                return [self.unwrap(x, info, argument) for x in value]
            return value
        if isinstance(value, torch.device) and value.type == KIND:
            self.target = value.index if value.index is not None else devices.state.device
            if self.index is None:
                self.index = self.target
            return _CPU
        return value

    def check(self, info: OperatorInfo) -> None:
        """RuntimeError when CUDA and CPU tensors meet in an operator that does not take both."""
        if self.foreign is not None and self.index is not None and not info.mixed_ok:
            raise RuntimeError(
                f"{EMULATED} {info.name}: all tensors must be on the same device, but argument "
                f"'{self.foreign}' is on cpu and another one on {KIND}:{self.index}"
            )


def _number(value: Any, args: list[Any]) -> Any:
    """A Python number as the 0-dim tensor PyTorch would have made of it."""
    dtype = None
    if isinstance(value, float):
        wide = any(isinstance(a, _Tensor) and a.dtype == torch.float64 for a in args)
        dtype = torch.float64 if wide else torch.get_default_dtype()
    return torch.tensor(value, dtype=dtype, device="cpu")


def wrap(result: Any, index: int) -> Any:
    """`result` with CPU tensors replaced by CUDA ones over the same memory."""
    if isinstance(result, _Tensor):
        return to_card(result, index)
    if isinstance(result, (list, tuple)):
        parts = [wrap(x, index) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def move_into(target: Any, cpu_result: Any, index: int) -> None:
    """Let the CUDA tensor `target` have the memory and shape of `cpu_result`."""
    source = to_card(cpu_result, index)
    torch.ops.aten.set_.source_Storage_storage_offset.redispatch(
        CPU_KEYS, target, source.untyped_storage(), source.storage_offset(), source.shape, source.stride()
    )


def boxed(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run `op` for CUDA arguments."""
    if devices.forked:
        raise RuntimeError(
            f"{EMULATED} this process was forked after its parent had used the {KIND} device: start workers that "
            "touch the device with the 'spawn' method"
        )
    info = _infos.get(op)
    if info is None:
        info = info_of(op)
    record.operators[info.name] += 1
    if hooks:
        for hook in hooks:
            hook(info, args, kwargs)
    call = Call()
    names = info.arguments
    unwrap = call.unwrap
    cpu_args = [unwrap(a, info, names[i]) for i, a in enumerate(args)]
    for i in info.number_positions:  # a Python number where the schema has a Tensor arrives unwrapped
        if i < len(cpu_args) and isinstance(cpu_args[i], (int, float, complex)):
            cpu_args[i] = _number(cpu_args[i], cpu_args)
    cpu_kwargs = {k: unwrap(v, info, k) for k, v in kwargs.items()}
    if info.index_like and args[0].device.type == "cpu":
        raise RuntimeError(
            f"{EMULATED} {info.name}: a cpu tensor cannot be indexed with {KIND} indices (device mismatch)"
        )
    index = call.target if call.target is not None else call.index
    if index is None:
        index = devices.state.device
    call.check(info)
    # out= tensors of the wrong size must be resizable: give the CPU kernel a fresh one, move the result in afterwards
    fresh: dict[str, Any] = {}
    if info.is_out:
        for name in info.written:
            given = cpu_kwargs.get(name) if name is not None else None
            if name is not None and isinstance(given, _Tensor) and given.numel() == 0:
                cpu_kwargs[name] = fresh[name] = torch.empty_like(given)
    try:
        if info.random and not devices.SHARED_RANDOM:
            result = _run_random(op, info, index, cpu_args, cpu_kwargs)
        else:
            result = op(*cpu_args, **cpu_kwargs)
    except RuntimeError as error:
        raise_if_host_is_full(error)
        raise
    if info.results == 0:
        return None

    def give(written: str | None, value: Any) -> Any:
        if written is None:
            return wrap(value, index)
        target = kwargs[written] if written in kwargs else args[names.index(written)]
        if written in fresh and fresh[written].shape != target.shape:
            move_into(target, fresh[written], index)
        return target

    if info.results == 1:
        return give(info.written[0], result)
    return tuple([give(w, x) for w, x in zip(info.written, result, strict=True)])


def _run_random(op: Any, info: OperatorInfo, index: int, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a random operator with the generator of `cuda:index`, leaving the CPU's generator as it is."""
    generator = devices.generators[index]
    if info.generator is not None:
        if info.generator < len(args):
            if args[info.generator] is None:
                args[info.generator] = generator
        elif kwargs.get(info.arguments[info.generator]) is None:
            kwargs[info.arguments[info.generator]] = generator
        return op(*args, **kwargs)
    default = torch._C.default_generator
    saved = default.get_state()
    default.set_state(generator.get_state())
    try:
        return op(*args, **kwargs)
    finally:
        generator.set_state(default.get_state())
        default.set_state(saved)
