"""The functions a script calls."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional

from npu_emulator.trace import steps as trace
from npu_emulator.trace.log import quiet

from . import _models, _optimizers
from ._state import LossScaler, Options, maybe_print, state

_plain_binary_cross_entropy = functional.binary_cross_entropy
_LEVELS = {
    "O0": Options(True, "O0", torch.float32),
    "O1": Options(True, "O1", casts_functions=True, loss_scale="dynamic"),
    "O2": Options(True, "O2", torch.float16, keep_batchnorm_fp32=True, master_weights=True, loss_scale="dynamic"),
    "O3": Options(True, "O3", torch.float16),
}


def initialize(
    models: Any,
    optimizers: Any = None,
    enabled: bool = True,
    opt_level: str = "O1",
    cast_model_type: Any = None,
    patch_torch_functions: bool | None = None,
    keep_batchnorm_fp32: bool | str | None = None,
    master_weights: bool | None = None,
    loss_scale: float | str | None = None,
    cast_model_outputs: Any = None,
    num_losses: int = 1,
    verbosity: int = 1,
    dynamic_init_scale: float = 2.0**16,
    scale_growth_factor: float = 2.0,
    scale_backoff_factor: float = 0.5,
    scale_window: int = 2000,
    min_loss_scale: float | None = None,
    max_loss_scale: float = 2.0**24,
    combine_grad: bool | None = None,
    combine_ddp: bool | None = None,
    ddp_replica_count: int = 4,
    user_cast_preferred: bool | None = None,
    check_combined_tensors: bool | None = None,
) -> Any:
    """Prepare models and optimizers for an `opt_level`; returns them in the form in which they came."""
    state.options, state.verbosity = Options(), verbosity
    if not enabled:
        return models if optimizers is None else (models, optimizers)
    if opt_level not in _LEVELS:
        raise RuntimeError(f"[emulated apex] opt_level is O0, O1, O2 or O3, not {opt_level}")
    options = state.options = Options(**vars(_LEVELS[opt_level]))
    overrides = {
        "cast_model_type": cast_model_type,
        "casts_functions": patch_torch_functions,
        "keep_batchnorm_fp32": {"True": True, "False": False}.get(str(keep_batchnorm_fp32)),
        "master_weights": master_weights,
    }
    for name, value in overrides.items():
        if value is not None:
            if opt_level == "O1" and name != "casts_functions":
                raise RuntimeError(f"[emulated apex] {name} does not go with opt_level O1")
            setattr(options, name, value)
    if loss_scale is not None:
        options.loss_scale = loss_scale if loss_scale == "dynamic" else float(loss_scale)
    if combine_grad and opt_level not in ("O1", "O2"):
        raise RuntimeError("[emulated apex] combine_grad goes with opt_level O1 and O2")
    if combine_ddp and not combine_grad:
        raise RuntimeError("[emulated apex] combine_ddp needs combine_grad=True")
    options.combine_grad, options.combine_ddp = bool(combine_grad), bool(combine_ddp)

    all_models = models if isinstance(models, list) else [models]
    all_optimizers = optimizers if isinstance(optimizers, list) else [] if optimizers is None else [optimizers]
    if not all(isinstance(optimizer, torch.optim.Optimizer) for optimizer in all_optimizers):
        raise TypeError("[emulated apex] optimizers are one optimizer or a list of them")
    if not all(isinstance(model, torch.nn.Module) for model in all_models):
        raise TypeError("[emulated apex] models are one module or a list of them")
    _models.check(all_models)
    _cast(all_models, all_optimizers, options, cast_model_outputs)
    for optimizer in all_optimizers:
        _optimizers.prepare(optimizer, options)
    dynamic = options.loss_scale == "dynamic"
    scale = min(max_loss_scale, dynamic_init_scale) if dynamic else float(options.loss_scale)
    state.scalers = [
        LossScaler(
            dynamic, scale, scale_growth_factor, scale_backoff_factor, scale_window, min_loss_scale, max_loss_scale
        )
        for _ in range(num_losses)
    ]
    if options.combine_ddp:
        for model in all_models:
            for parameter in model.parameters():
                dist.broadcast(parameter.data, 0)
    maybe_print(f"amp: opt_level {opt_level}, loss scale {options.loss_scale}")
    return models if optimizers is None else (models, optimizers)


def _cast(models: list[Any], optimizers: list[Any], options: Options, outputs: Any) -> None:
    if options.cast_model_type is not None:
        for model in models:
            _models.cast(model, options, outputs)
        for optimizer in optimizers:
            with quiet():  # brings what is there to the dtype of the parameters
                optimizer.load_state_dict(optimizer.state_dict())
    elif outputs is not None:
        for model in models:
            _models.patch_forward(model, None, outputs)
    if options.casts_functions and state.casts is None:
        # Left open: O1 casts for the rest of the process. Nothing is cached, weights change under it.
        state.casts = torch.autocast("npu", dtype=torch.float16, cache_enabled=False)
        state.casts.__enter__()
        functional.binary_cross_entropy = _binary_cross_entropy
    if options.combine_grad or any(getattr(o, "is_npu_fused_optimizer", False) for o in optimizers):
        torch.nn.Module.zero_grad = _module_zero_grad


def _binary_cross_entropy(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """The loss that autocast refuses in any case, and O1 in float16 alone."""
    small = torch.float16 in (input.dtype, target.dtype)
    with contextlib.nullcontext() if small else torch.autocast("npu", enabled=False):
        return _plain_binary_cross_entropy(input, target, *args, **kwargs)


def _module_zero_grad(self: Any, set_to_none: bool = False) -> None:
    """`Module.zero_grad` keeps the gradients that are combined in one tensor."""
    trace.record_zero_grad()
    assert set_to_none is False, "[emulated apex] with combined gradients set_to_none must be False"
    for parameter in self.parameters():
        if parameter.grad is not None:
            parameter.grad.detach_()
            parameter.grad.zero_()


@contextlib.contextmanager
def scale_loss(
    loss: Any,
    optimizers: Any,
    loss_id: int = 0,
    model: Any = None,
    delay_unscale: bool = False,
    delay_overflow_check: bool = False,
) -> Iterator[Any]:
    """Yield the scaled loss; behind the block the gradients are unscaled, and the next step skips on overflow."""
    options = state.options
    if options is None:
        raise RuntimeError("[emulated apex] amp.initialize comes before amp.scale_loss")
    if not options.enabled:
        yield loss
        return
    every = optimizers if isinstance(optimizers, list) else [optimizers]
    scaler = state.scalers[loss_id]
    if not options.master_weights and not scaler.dynamic and scaler.scale == 1.0 and not options.combine_ddp:
        yield loss.float()
        return
    if not delay_unscale:
        for optimizer in every:
            if not optimizer._amp_stash.scaled:
                _optimizers.begin_backward(optimizer)
    scaled = loss.float() * scaler.scale
    trace.record_scale(loss, scaled)
    yield scaled
    if delay_unscale:
        for optimizer in every:
            optimizer._amp_stash.scaled = True
        return
    overflow = [_optimizers.end_backward(optimizer, scaler) for optimizer in every]
    skips = not delay_overflow_check and scaler.update(any(overflow))
    trace.record_update(scaler.scale)
    if skips:
        for optimizer in every:
            _optimizers.skip_next_step(optimizer, loss_id, scaler)


def state_dict(destination: Any = None) -> Any:
    """Scale and count of every loss, for a checkpoint."""
    destination = OrderedDict() if destination is None else destination
    for index, scaler in enumerate(_scalers()):
        destination[f"loss_scaler{index}"] = {"loss_scale": scaler.scale, "unskipped": scaler.unskipped}
    return destination


def load_state_dict(values: Any) -> None:
    """What `state_dict` gave; more scalers than there are is an error."""
    scalers = _scalers()
    for name, value in values.items():
        if not name.startswith("loss_scaler") or int(name[len("loss_scaler") :]) >= len(scalers):
            raise RuntimeError(f"[emulated apex] unexpected key in the state of amp: {name}")
        scaler = scalers[int(name[len("loss_scaler") :])]
        scaler.scale, scaler.unskipped = value["loss_scale"], value["unskipped"]


def _scalers() -> list[LossScaler]:
    if state.options is None or not state.options.enabled:
        raise AttributeError("[emulated apex] amp has no state: amp.initialize was not called with enabled=True")
    return state.scalers
