"""Gradient scaling on the npu. `dynamic` stands before `enabled`, unlike in CUDA's signature."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler("npu") with torch_npu's `dynamic`: False keeps the scale as it is."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "npu",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self._dynamic = dynamic

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if self._enabled and getattr(optimizer, "_step_supports_amp_scaling", False):
            return optimizer.step(*args, **kwargs, grad_scaler=self)  # torch's own raise a TypeError then
        return super().step(optimizer, *args, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "dynamic": self._dynamic} if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        if self._enabled:
            self._dynamic = state_dict["dynamic"]

    def update(self, new_scale: Any = None) -> None:
        if not self._dynamic and new_scale is None and self._enabled:
            new_scale = self.get_scale()
        super().update(new_scale)
