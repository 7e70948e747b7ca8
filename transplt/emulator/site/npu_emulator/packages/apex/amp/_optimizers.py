"""What `amp.initialize` does to an optimizer: float32 master weights, gradients that are unscaled, steps that skip."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MethodType
from typing import Any

import torch
import torch.distributed as dist

from npu_emulator.trace import steps as trace
from npu_emulator.trace.log import quiet

from ._state import LossScaler, Options, disable_casts, maybe_print


@dataclass
class Stash:
    """The parameters of one optimizer. `pairs` are (float16 parameter, float32 master); `kept` the gradients that were
    there before the backward pass in progress, one for each of `own`."""

    options: Options
    combined: bool
    ready: bool = False
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    own: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    scaled: bool = False
    skips: bool = False
    reduced: bool = False


def prepare(optimizer: Any, options: Options) -> None:
    """Make an optimizer one of amp's; what has to wait for loaded weights waits for the first backward pass."""
    if hasattr(optimizer, "_amp_stash"):
        raise RuntimeError("[emulated apex] an optimizer goes through amp.initialize only once")
    fused = getattr(optimizer, "is_npu_fused_optimizer", False)
    if fused and options.opt_level not in ("O1", "O2"):
        raise RuntimeError("[emulated apex] NpuFused optimizers need opt_level O1 or O2")
    combined = options.combine_grad or fused
    if combined and options.opt_level == "O2" and not options.master_weights:
        raise RuntimeError("[emulated apex] O2 needs master_weights with combine_grad and NpuFused optimizers")
    optimizer._amp_stash = Stash(options, combined)
    if options.master_weights:
        optimizer.step = MethodType(_stepping_masters(optimizer.step), optimizer)
    if options.casts_functions:
        optimizer.step = MethodType(_without_casts(optimizer.step), optimizer)
    if options.master_weights or combined:
        optimizer.zero_grad = MethodType(_zero_grad, optimizer)
    if combined:
        optimizer.clip_optimizer_grad_norm_fused = MethodType(_clip, optimizer)


def begin_backward(optimizer: Any) -> None:
    """Put gradients aside that are there already (accumulation): those to come are scaled."""
    stash = _ready(optimizer)
    stash.kept = [parameter.grad for parameter in stash.own]
    for parameter in stash.own:
        parameter.grad = None
    for half, _ in stash.pairs:
        half.grad = None


@torch.no_grad()
def end_backward(optimizer: Any, scaler: LossScaler) -> bool:
    """Unscale what the backward pass left and add what was put aside; True when something of it is inf or nan."""
    stash = _ready(optimizer)
    if stash.options.combine_ddp:
        _reduce(stash)
    overflow = False
    for half, master in stash.pairs:
        if half.grad is None:
            continue
        overflow = overflow or not bool(torch.isfinite(half.grad).all())
        gradient = half.grad.float() / scaler.scale
        master.grad = gradient if master.grad is None else master.grad + gradient
    kept = stash.kept or [None] * len(stash.own)
    for parameter, before in zip(stash.own, kept, strict=True):
        if parameter.grad is None:
            parameter.grad = before
            continue
        overflow = overflow or not bool(torch.isfinite(parameter.grad).all())
        parameter.grad.div_(scaler.scale)
        if before is not None:
            parameter.grad.add_(before)
    stash.kept = []
    stash.scaled = False
    return overflow


def skip_next_step(optimizer: Any, loss_id: int, scaler: LossScaler) -> None:
    """Let the next call of `optimizer.step` do nothing."""
    stash = optimizer._amp_stash
    if stash.skips:
        return
    step = optimizer.step

    def skip(closure: Any = None) -> None:
        if closure is not None:
            raise RuntimeError("[emulated apex] amp does not take closures")
        maybe_print(f"Gradient overflow.  Skipping step, loss scaler {loss_id} reducing loss scale to {scaler.scale}")
        trace.record_skip(optimizer, scaler.scale)
        for _, master in stash.pairs:
            master.grad = None
        optimizer.step = step
        stash.skips = False

    optimizer.step = skip
    stash.skips = True


def _ready(optimizer: Any) -> Stash:
    """The stash, with its masters made from the weights as they are now when this is the first time."""
    stash: Stash = optimizer._amp_stash
    if stash.ready:
        return stash
    stash.ready = True
    for group in optimizer.param_groups:
        for index, parameter in enumerate(group["params"]):
            if not parameter.requires_grad:
                continue
            if not stash.options.master_weights or parameter.dtype == torch.float32:
                stash.own.append(parameter)
                continue
            master = parameter.detach().clone().float().requires_grad_()
            group["params"][index] = master
            if parameter in optimizer.state:
                optimizer.state[master] = optimizer.state.pop(parameter)
            stash.pairs.append((parameter, master))
    if stash.pairs:
        with quiet():  # brings what is there to the dtype of the masters
            optimizer.load_state_dict(optimizer.state_dict())
    return stash


def _stepping_masters(step: Any) -> Any:
    def new_step(self: Any, closure: Any = None) -> Any:
        if closure is not None:
            raise RuntimeError("[emulated apex] amp does not take closures")
        result = step()
        with torch.no_grad():
            for half, master in self._amp_stash.pairs:
                half.copy_(master)
                master.grad = None
        return result

    return new_step


def _without_casts(step: Any) -> Any:
    def new_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with disable_casts():
            return step(*args, **kwargs)

    return new_step


@torch.no_grad()
def _zero_grad(self: Any) -> None:
    """`optimizer.zero_grad()`, which takes no arguments once amp has the optimizer."""
    trace.record_zero_grad()
    stash = _ready(self)
    for parameter in [*(half for half, _ in stash.pairs), *stash.own]:
        if parameter.grad is not None:
            parameter.grad.detach_()
            parameter.grad.zero_()
    for _, master in stash.pairs:
        master.grad = None


def _clip(self: Any, max_norm: float, norm_type: float = 2) -> Any:
    """The fused clipping of combined gradients: those of the parameters that the optimizer updates."""
    parameters = [parameter for group in self.param_groups for parameter in group["params"]]
    return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)


def _reduce(stash: Stash) -> None:
    """Average the gradients over all ranks: what combine_ddp does in place of DistributedDataParallel."""
    gradients = [parameter.grad for parameter in [*(half for half, _ in stash.pairs), *stash.own]]
    present = [gradient for gradient in gradients if gradient is not None]
    if not stash.reduced and present:
        sizes: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(sizes, sum(gradient.numel() for gradient in present))
        if len(set(sizes)) != 1:
            raise RuntimeError("[emulated apex] combine_ddp needs gradients of the same parameters on every rank")
        stash.reduced = True
    for gradient in present:
        gradient.div_(dist.get_world_size())
        dist.all_reduce(gradient)
