"""Fused optimizers that PyTorch does not have: LAMB, AdamP, BertAdam and TensorFlow's RMSprop, after their papers."""

from __future__ import annotations

import math
from typing import Any

import torch

from .adaptive import _check_rate
from .base import NpuFusedOptimizerBase


def _moments(parameter: Any, gradient: Any, state: dict[str, Any], beta1: float, beta2: float) -> tuple[Any, Any]:
    """The running means of the gradient and of its square, after this step."""
    if not state:
        state["step"] = 0
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
    state["step"] += 1
    return (
        state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1),
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2),
    )


class NpuFusedLamb(NpuFusedOptimizerBase):
    """LAMB (arXiv 1904.00962, version 3: no bias correction); the weight norm in the trust ratio is clamped to 10.

    `adam` fixes the trust ratio at 1; `use_global_grad_norm` divides gradients by their joint norm where that exceeds
    1.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0,
        adam: bool = False,
        use_global_grad_norm: bool = False,
    ) -> None:
        _check_rate(lr)
        self.adam, self.use_global_grad_norm = adam, use_global_grad_norm
        self._divisor: Any = 1.0
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def _before_step(self) -> None:
        if self.use_global_grad_norm:
            norms = [torch.linalg.vector_norm(p.grad.float()) for p, _ in self._with_gradients()]
            self._divisor = max(1.0, float(torch.linalg.vector_norm(torch.stack(norms)))) if norms else 1.0

    def _gradient(self, parameter: Any) -> Any:
        return parameter.grad / self._divisor if self._divisor != 1.0 else parameter.grad

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        mean, square = _moments(parameter, gradient, state, *group["betas"])
        step = mean / (square.sqrt() + group["eps"])
        if group["weight_decay"]:
            step = step + group["weight_decay"] * parameter
        weight_norm, step_norm = parameter.norm().clamp(0, 10), step.norm()
        ratio = 1.0 if self.adam or weight_norm == 0 or step_norm == 0 else float(weight_norm / step_norm)
        parameter.add_(step, alpha=-group["lr"] * ratio)


class NpuFusedAdamP(NpuFusedOptimizerBase):
    """AdamP (arXiv 2006.08217): Adam whose step has no part along the weights of scale-invariant layers."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        delta: float = 0.1,
        wd_ratio: float = 0.1,
        nesterov: bool = False,
    ) -> None:
        _check_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "delta": delta,
                "wd_ratio": wd_ratio,
                "nesterov": nesterov,
            },
        )

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, square = _moments(parameter, gradient, state, beta1, beta2)
        correction1, correction2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
        denominator = square.sqrt() / math.sqrt(correction2) + group["eps"]
        step = (beta1 * mean + (1 - beta1) * gradient if group["nesterov"] else mean) / denominator
        ratio = 1.0
        if parameter.dim() > 1:
            step, ratio = _project(parameter, gradient, step, group)
        if group["weight_decay"] > 0:
            parameter.mul_(1 - group["lr"] * group["weight_decay"] * ratio)
        parameter.add_(step, alpha=-group["lr"] / correction1)


def _project(parameter: Any, gradient: Any, step: Any, group: dict[str, Any]) -> tuple[Any, float]:
    """The step without its part along the weights, per channel or per layer, where gradient and weights are
    orthogonal."""
    eps = group["eps"]
    for rows in (len(parameter), 1):
        w, g, s = (t.reshape(rows, -1) for t in (parameter, gradient, step))
        cosine = (g * w).sum(1).abs() / (g.norm(dim=1) + eps) / (w.norm(dim=1) + eps)
        if cosine.max() < group["delta"] / math.sqrt(w.shape[1]):
            unit = w / (w.norm(dim=1, keepdim=True) + eps)
            return (s - unit * (unit * s).sum(1, keepdim=True)).reshape(step.shape), group["wd_ratio"]
    return step, 1.0


def _cosine(x: float, warmup: float) -> float:
    return x / warmup if x < warmup else 0.5 * (1 + math.cos(math.pi * x))


def _constant(x: float, warmup: float) -> float:
    return x / warmup if x < warmup else 1.0


def _linear(x: float, warmup: float) -> float:
    return x / warmup if x < warmup else max((x - 1) / (warmup - 1), 0.0)


def _poly(x: float, warmup: float) -> float:
    return x / warmup if x < warmup else (1 - x) ** 0.5


_SCHEDULES = {"warmup_cosine": _cosine, "warmup_constant": _constant, "warmup_linear": _linear, "warmup_poly": _poly}


class NpuFusedBertAdam(NpuFusedOptimizerBase):
    """Adam without bias correction, decoupled weight decay and a built-in schedule, as BERT was trained.

    `t_total` -1: a constant rate. `max_grad_norm` <= 0: no clipping; gradients are clipped jointly per group and dtype.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = None,
        warmup: float = -1,
        t_total: int = -1,
        schedule: str = "warmup_linear",
        b1: float = 0.9,
        b2: float = 0.999,
        e: float = 1e-6,
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
    ) -> None:
        _check_rate(lr)
        if schedule not in _SCHEDULES:
            raise ValueError(f"[emulated npu] schedule is one of {', '.join(_SCHEDULES)}, not {schedule!r}")
        if not (warmup == -1 or 0 <= warmup < 1):
            raise ValueError(f"[emulated npu] warmup is -1 or lies in [0, 1), not at {warmup}")
        self.max_grad_norm = max_grad_norm
        super().__init__(
            params,
            {
                "lr": lr,
                "schedule": schedule,
                "warmup": warmup,
                "t_total": t_total,
                "b1": b1,
                "b2": b2,
                "e": e,
                "weight_decay": weight_decay,
                "max_grad_norm": max_grad_norm,
            },
        )

    def _before_step(self) -> None:
        if self.max_grad_norm <= 0:
            return
        for group in self.param_groups:
            for dtype in (torch.float32, torch.float16):
                grads = [p.grad for p in group["params"] if p.grad is not None and p.dtype == dtype]
                if grads:
                    total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in grads]))
                    factor = float(self.max_grad_norm / (total + 1e-6))
                    if factor < 1:
                        for grad in grads:
                            grad.mul_(factor)

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        mean, square = _moments(parameter, gradient, state, group["b1"], group["b2"])
        update = mean / (square.sqrt() + group["e"])
        if group["weight_decay"] > 0:
            update = update + group["weight_decay"] * parameter
        rate = group["lr"]
        if group["t_total"] != -1:
            rate *= _SCHEDULES[group["schedule"]]((state["step"] - 1) / group["t_total"], group["warmup"])
        parameter.add_(update, alpha=-rate)


class NpuFusedRMSpropTF(NpuFusedOptimizerBase):
    """RMSprop as TensorFlow computes it: the mean square starts at 1, epsilon stands inside the root, and with
    `lr_in_momentum` the rate is part of the momentum buffer."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.9,
        eps: float = 1e-10,
        weight_decay: float = 0,
        momentum: float = 0.0,
        centered: bool = False,
        decoupled_decay: bool = False,
        lr_in_momentum: bool = True,
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
                "decoupled_decay": decoupled_decay,
                "lr_in_momentum": lr_in_momentum,
            },
        )

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["square_avg"] = torch.ones_like(parameter)
            state["momentum_buffer"], state["grad_avg"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        keep = 1 - group["alpha"]
        if group["weight_decay"]:
            if group["decoupled_decay"]:
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
            else:
                gradient = gradient + group["weight_decay"] * parameter
        square = state["square_avg"]
        square.add_(gradient.square() - square, alpha=keep)
        centre = square
        if group["centered"]:
            mean = state["grad_avg"]
            mean.add_(gradient - mean, alpha=keep)
            centre = square - mean.square()
        step = gradient / (centre + group["eps"]).sqrt()
        if not group["momentum"]:
            parameter.add_(step, alpha=-group["lr"])
            return
        buffer = state["momentum_buffer"].mul_(group["momentum"])
        buffer.add_(step, alpha=group["lr"] if group["lr_in_momentum"] else 1.0)
        parameter.add_(buffer, alpha=-1.0 if group["lr_in_momentum"] else -group["lr"])
