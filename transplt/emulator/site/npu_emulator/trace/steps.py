"""Backward passes and steps of optimizers, in figures."""

from __future__ import annotations

import atexit
import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..config import config
from ..start import when_imported
from . import models, shaken
from .figures import figures, gradient_figures, number
from .log import emit, quiet

_numbers: dict[int, int] = {}
_attempts: dict[int, int] = {}
#: Optimizers stay alive here, or another would come by their ids.
_kept: list[Any] = []
_recorded: dict[int, Any] = {}
_stepping: set[int] = set()
_unscaled: dict[int, tuple[Any, Any, Any]] = {}
#: The gradients of an optimizer whose step is left out: an optimizer passes over parameters that have none.
_held_back: dict[int, list[tuple[Any, Any]]] = {}


def install() -> None:
    """Watch every optimizer, every backward pass and every scaler of this process."""
    models.install()
    if not config.models:
        models.watch_calls()
    _watch_making()
    register_optimizer_step_pre_hook(_before_step)
    register_optimizer_step_post_hook(_after_step)
    _watch_backward()
    _watch_scalers()
    atexit.register(_at_end)


def attempts() -> dict[int, int]:
    """How many steps each optimizer took or was kept from."""
    return _attempts


def stepping() -> bool:
    """Whether an optimizer is at work now."""
    return bool(_stepping)


def optimized() -> set[int]:
    """The ids of all parameters that an optimizer has."""
    return {id(parameter) for optimizer in _kept for parameter in _parameters(optimizer)}


def _number(optimizer: Any) -> int:
    if id(optimizer) not in _numbers:
        _numbers[id(optimizer)] = len(_kept)
        _kept.append(optimizer)
    return _numbers[id(optimizer)]


def _watch_making() -> None:
    kind: Any = torch.optim.Optimizer
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, params: Any, defaults: Any) -> None:
        made(self, params, defaults)
        sizes = [len(group["params"]) for group in self.param_groups]
        emit("optimizer", o=_number(self), kind=type(self).__name__, sizes=sizes, hyper=_hyper(self))
        shaken.shake(_parameters(self))

    kind.__init__ = __init__


def _hyper(optimizer: Any) -> list[dict[str, Any]]:
    """The numbers of each group; those that only choose an implementation are left out."""
    kept = []
    for group in optimizer.param_groups:
        values: dict[str, Any] = {}
        for key, value in group.items():
            if key in ("params", "foreach", "fused", "capturable", "initial_lr", "decoupled_weight_decay"):
                continue
            if isinstance(value, torch.Tensor):
                value = number(value)
            if isinstance(value, (bool, int, float)) or (
                isinstance(value, (tuple, list)) and all(isinstance(each, (int, float)) for each in value)
            ):
                values[key] = list(value) if isinstance(value, tuple) else value
        kept.append(values)
    return kept


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
    with quiet():
        which = _number(optimizer)
        done = _attempts.get(which, 0)
    assert config.trace
    if config.trace["steps"] and done >= config.trace["steps"]:
        emit("limit")
        atexit.register(_end_profiler)
        raise SystemExit(0)
    parameters = _parameters(optimizer)
    if which not in _recorded:
        names = [models.name_of(parameter) or f"{which}.{place}" for place, parameter in enumerate(parameters)]
        start = [figures(parameter) for parameter in parameters]
        lines = [str(parameter.dtype).removeprefix("torch.") for parameter in parameters]
        ids = [id(parameter) for parameter in parameters]
        kind, weights = type(optimizer).__name__, models.trained_types()
        emit("start", o=which, kind=kind, names=names, dtypes=lines, weights=weights, p=start, ids=ids)
    hyper = _hyper(optimizer)
    if hyper != _recorded.get(which):
        _recorded[which] = hyper
        emit("hyper", o=which, sizes=[len(group["params"]) for group in optimizer.param_groups], hyper=hyper)
    if done in dict(config.trace["left_out"]).get(which, ()):
        _held_back[which] = [(parameter, parameter.grad) for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        return None

    def record() -> None:
        if models.watches_calls():
            emit("others", o=which, p=models.computing({id(each) for each in parameters}), given=models.given)
        emit("grads", o=which, k=done, g=[gradient_figures(parameter.grad) for parameter in parameters])
        _stepping.add(which)

    return _recording_behind(args, kwargs, which, record)


def _recording_behind(args: Any, kwargs: Any, which: int, record: Callable[[], None]) -> tuple[Any, Any] | None:
    """Record the gradients now, or behind the closure that computes them where a step is given one."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if not callable(closure):
        record()
        return None

    def computed() -> Any:
        _stepping.discard(which)  # what a closure computes is not the optimizer's work
        result = closure()
        record()
        return result

    if "closure" in kwargs:
        return args, {**kwargs, "closure": computed}
    return (args[0], computed, *args[2:]), kwargs


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    with quiet():
        which = _number(optimizer)
        _stepping.discard(which)
        done = _attempts.get(which, 0)
        _attempts[which] = done + 1
        held = models.buffers()
    if which in _held_back:
        for parameter, gradient in _held_back.pop(which):
            parameter.grad = gradient
        emit("skipped", o=which, k=done, scale=1.0)
        return
    emit("step", o=which, k=done, p=[figures(parameter) for parameter in _parameters(optimizer)], b=held)
    shaken.shake(_parameters(optimizer))


def _end_profiler() -> None:
    """Close an open profiler: PyTorch 2.13 ends with SIGSEGV otherwise, and the program was kept from doing it."""
    if torch.autograd._profiler_enabled():
        torch.autograd._disable_profiler()


def _watch_backward() -> None:
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
        listed = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        scaled = any(id(each) in _unscaled for each in listed)
        emit("backward", loss=[_loss(each) for each in listed], dtype=[_dtype(each) for each in listed], scaled=scaled)
        _unscaled.clear()
        return original(tensors, grad_tensors, *args, **kwargs)

    torch.autograd.backward = backward


def _loss(tensor: Any) -> Any:
    """The loss, without the scale that a scaler put on it."""
    known = _unscaled.get(id(tensor))
    return known[1] if known is not None else number(tensor)


def _dtype(tensor: Any) -> str:
    """The type of the loss: what a scaler makes of it is wider."""
    known = _unscaled.get(id(tensor))
    return str((known[2] if known is not None else tensor).dtype).removeprefix("torch.")


def record_scale(loss: Any, scaled: Any, *, enabled: bool = True) -> None:
    """A scaler made `scaled` of a loss."""
    if config.trace:
        with quiet():
            value = number(loss)
            _unscaled[id(scaled)] = (scaled, value, loss)
        emit("scale", enabled=enabled, loss=value)


def record_skip(optimizer: Any, scale: float) -> None:
    """A scaler leaves out a step of an optimizer."""
    if config.trace:
        which = _number(optimizer)
        done = _attempts.get(which, 0)
        _attempts[which] = done + 1
        emit("skipped", o=which, k=done, scale=scale)


def record_zero_grad() -> None:
    """Gradients are set to zero by a method that an optimizer was given."""
    if config.trace:
        emit("zero_grad")


def record_update(scale: float) -> None:
    """The scale after a scaler has seen whether gradients overflowed."""
    if config.trace:
        emit("update", scale=scale, enabled=True)


def _watch_scalers() -> None:
    from torch.amp import grad_scaler

    _watch_scaler(grad_scaler.GradScaler, "__init__")
    when_imported("torch_npu", lambda module: _watch_own_scalers())


def _watch_own_scalers() -> None:
    """Those of torch_npu, which have their own way for all but the state."""
    from torch_npu.npu.amp import grad_scaler, sharded_grad_scaler

    _watch_scaler(grad_scaler.GradScaler, "__init__")
    _watch_scaler(sharded_grad_scaler._ShardedGradScaler)


def _watch_scaler(kind: Any, *begin: str) -> None:
    """Record what a class of scalers does itself, and `begin`, with which it makes one."""

    def scaled(original: Any, self: Any, outputs: Any) -> Any:
        result = original(self, outputs)
        if isinstance(outputs, torch.Tensor):
            record_scale(outputs, result, enabled=self.is_enabled())
        return result

    def unscaled(original: Any, self: Any, optimizer: Any) -> Any:
        emit("unscale", o=_number(optimizer))
        return original(self, optimizer)

    def updated(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        with quiet():
            value = self.get_scale()
        emit("update", scale=value, enabled=self.is_enabled())
        return result

    def stepped(original: Any, self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        which = _number(optimizer)
        before = _attempts.get(which, 0)
        result = original(self, optimizer, *args, **kwargs)
        if _attempts.get(which, 0) == before:
            with quiet():
                value = self.get_scale()
            record_skip(optimizer, value)
        return result

    def made(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        emit("scaler")

    watched = {"scale": scaled, "unscale_": unscaled, "update": updated, "_maybe_opt_step": stepped}
    for name, watch in (*watched.items(), *((name, made) for name in begin)):
        if (original := vars(kind).get(name)) is not None:
            setattr(kind, name, _around(original, watch))


def _around(original: Any, watch: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return watch(original, self, *args, **kwargs)

    return method


def _at_end() -> None:
    with contextlib.suppress(Exception):
        emit("end", p=models.parameters(), b=models.buffers(), steps={str(o): k for o, k in _attempts.items()})
