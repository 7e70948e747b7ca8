"""What the fused optimizers share: their limits, and clipping of all gradients at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class NpuFusedOptimizerBase(torch.optim.Optimizer):
    """Parameters are float32 or float16 npu tensors with dense gradients; `zero_grad(set_to_none=True)` is refused.

    torch_npu packs parameters and gradients when it first needs them, and from then on reads what it packed. Here a
    gradient that is replaced after that, or that comes later, raises: there it would be left out without a word.
    """

    def __init__(self, params: Any, default: dict[str, Any]) -> None:
        super().__init__(params, default)
        self.is_fused_optimizer = True
        self._packed: dict[Any, Any] = {}

    def _update(self, parameter: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _with_gradients(self) -> Any:
        self._pack()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    yield parameter, group

    def _pack(self) -> None:
        every = [parameter for group in self.param_groups for parameter in group["params"]]
        for parameter in every:
            if parameter.grad is not None:
                self._check(parameter)
        if not self._packed:
            self._packed = {parameter: parameter.grad for parameter in every if parameter.grad is not None}
        for parameter in every:
            if parameter.grad is not self._packed.get(parameter):
                raise RuntimeError(
                    f"[emulated npu] {type(self).__name__} packed its gradients before, and one was replaced or set to "
                    "None since, or came later: torch_npu goes on with those that it packed"
                )

    def _check(self, parameter: Any) -> None:
        if parameter.grad.is_sparse:
            raise RuntimeError(f"[emulated npu] {type(self).__name__} does not take sparse gradients")
        if parameter.dtype not in (torch.float32, torch.float16):
            raise TypeError(
                f"[emulated npu] {type(self).__name__} takes float32 or float16 parameters, not {parameter.dtype}"
            )
        if parameter.device.type != "npu":
            raise RuntimeError(
                f"[emulated npu] {type(self).__name__} takes parameters on npu, not on {parameter.device}"
            )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            loss = closure()  # without gradients, as torch_npu runs it
        self._before_step()
        for parameter, group in self._with_gradients():
            self._update(parameter, self._gradient(parameter), self.state[parameter], group)
        return loss

    def _before_step(self) -> None:
        pass

    def _gradient(self, parameter: Any) -> Any:
        return parameter.grad

    def zero_grad(self, set_to_none: bool = False) -> None:
        if set_to_none:
            raise ValueError("[emulated npu] set_to_none is not supported in fused optimizers")
        super().zero_grad(set_to_none=False)

    @torch.no_grad()
    def clip_grad_norm_fused_(self, max_norm: float, norm_type: float = 2) -> Any:
        """Scale all gradients so that their joint norm is at most `max_norm`; returns the norm before."""
        gradients = [parameter.grad for parameter, _ in self._with_gradients()]
        if not gradients:
            return torch.tensor(0.0)
        norms = torch.stack([torch.linalg.vector_norm(g.float(), float(norm_type)) for g in gradients])
        total = torch.linalg.vector_norm(norms, float(norm_type))
        factor = float(max_norm) / (total + 1e-6)
        if factor < 1:
            for gradient in gradients:
                gradient.mul_(factor.to(gradient.dtype))
        return total
