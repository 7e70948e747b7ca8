"""The fused forms of PyTorch's own optimizers: same formulas, fewer keywords."""

from __future__ import annotations

from typing import Any

import torch

from .base import NpuFusedOptimizerBase


def _check_rate(lr: Any) -> None:
    if lr is None or lr < 0:
        raise ValueError(f"[emulated npu] a learning rate is at least 0, not {lr}")


def adam_step(parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any], decoupled: bool) -> None:
    """One step of Adam (weight decay added to the gradient) or AdamW (`decoupled`: taken off the parameter)."""
    if not state:
        state["step"] = 0
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = torch.zeros_like(parameter)
    state["step"] += 1
    beta1, beta2 = group["betas"]
    decay = group["weight_decay"]
    if decoupled:
        parameter.mul_(1 - group["lr"] * decay)
    elif decay:
        gradient = gradient + decay * parameter
    mean = state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
    square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    if group["amsgrad"]:
        square = torch.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
    correction1, correction2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
    denominator = square.sqrt().div_(correction2**0.5).add_(group["eps"])
    parameter.addcdiv_(mean, denominator, value=-group["lr"] / correction1)


class NpuFusedAdam(NpuFusedOptimizerBase):
    """torch.optim.Adam without foreach, maximize, capturable, differentiable and fused."""

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
    ) -> None:
        _check_rate(lr)
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        )

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        adam_step(parameter, gradient, state, group, self._decoupled)


class NpuFusedAdamW(NpuFusedAdam):
    """torch.optim.AdamW, with the same limits."""

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedSGD(NpuFusedOptimizerBase):
    """torch.optim.SGD; the learning rate has no default."""

    def __init__(
        self,
        params: Any,
        lr: Any = None,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        _check_rate(lr)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("[emulated npu] Nesterov momentum needs a momentum and no dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
            },
        )

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * parameter
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = gradient.clone()
            else:
                buffer.mul_(group["momentum"]).add_(gradient, alpha=1 - group["dampening"])
            gradient = gradient + group["momentum"] * buffer if group["nesterov"] else buffer
        parameter.add_(gradient, alpha=-group["lr"])


class NpuFusedAdadelta(NpuFusedOptimizerBase):
    """torch.optim.Adadelta."""

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0
    ) -> None:
        _check_rate(lr)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay})

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["square_avg"], state["acc_delta"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        rho, eps = group["rho"], group["eps"]
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * parameter
        square = state["square_avg"].mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        delta = (state["acc_delta"] + eps).sqrt_().div_((square + eps).sqrt_()).mul_(gradient)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.add_(delta, alpha=-group["lr"])


class NpuFusedRMSprop(NpuFusedOptimizerBase):
    """torch.optim.RMSprop."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
    ) -> None:
        _check_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
            },
        )

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            for name in ("square_avg", "momentum_buffer", "grad_avg"):
                state[name] = torch.zeros_like(parameter)
        alpha = group["alpha"]
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * parameter
        square = state["square_avg"].mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].mul_(alpha).add_(gradient, alpha=1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        step = gradient / square.sqrt().add_(group["eps"])
        if group["momentum"]:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        parameter.add_(step, alpha=-group["lr"])
