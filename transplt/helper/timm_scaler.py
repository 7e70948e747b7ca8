"""The loss scaler of timm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from transplt.helper.ranks import card_kind

__all__ = ["NativeScaler"]


class NativeScaler:
    """timm.utils.NativeScaler with the scaler of the card: the same call, and the same states in checkpoints.

    Source: timm 1.0, timm/utils/cuda.py, whose scaler is that of "cuda" where no device is given.
    """

    state_dict_key = "amp_scaler"

    def __init__(self, device: str = "") -> None:
        self._scaler = torch.amp.GradScaler(device if device not in ("", "cuda") else card_kind())

    def __call__(
        self,
        loss: torch.Tensor,
        optimizer: torch.optim.Optimizer,
        clip_grad: float | None = None,
        clip_mode: str = "norm",
        parameters: Iterable[torch.Tensor] | None = None,
        create_graph: bool = False,
        need_update: bool = True,
    ) -> None:
        """The backward pass of the scaled loss; where an update is due, gradients are clipped and a step is made."""
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if not need_update:
            return
        if clip_grad is not None:
            if parameters is None:
                raise ValueError("parameters are needed for clip_grad")
            self._scaler.unscale_(optimizer)
            _clip(parameters, clip_grad, clip_mode)
        self._scaler.step(optimizer)
        self._scaler.update()

    def state_dict(self) -> dict[str, Any]:
        """The state of the scaler."""
        return dict(self._scaler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the state of a scaler."""
        self._scaler.load_state_dict(state_dict)


def _clip(parameters: Iterable[torch.Tensor], value: float, mode: str) -> None:
    if mode == "norm":
        torch.nn.utils.clip_grad_norm_(parameters, value)
    elif mode == "value":
        torch.nn.utils.clip_grad_value_(parameters, value)
    else:
        # The project has timm: it had this class from it.
        from timm.utils.agc import adaptive_clip_grad  # type: ignore[import-not-found]

        if mode != "agc":
            raise ValueError(f"unknown clip mode ({mode})")
        adaptive_clip_grad(parameters, value)
