"""The NpuFused optimizers of Ascend apex, which are those of torch_npu.optim: they run only after `amp.initialize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_npu import optim


class _WithAmp:
    """Refuses to step before `amp.initialize` has seen the optimizer."""

    is_npu_fused_optimizer = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: The gradients that torch_npu packed at the first step, and reads from then on.
        self._packed: dict[Any, Any] = {}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if not hasattr(self, "_amp_stash"):
            raise RuntimeError(f"[emulated apex] apex.optimizers.{type(self).__name__} is used with amp.initialize")
        # amp puts gradients aside, and each backward pass makes new ones.
        for parameter, packed in self._packed.items():
            if parameter.grad is not packed:
                packed.zero_() if parameter.grad is None else packed.copy_(parameter.grad)
                parameter.grad = packed
        result = super().step(closure)  # type: ignore[misc]
        if not self._packed:
            every = [each for group in self.param_groups for each in group["params"]]  # type: ignore[attr-defined]
            self._packed = {each: each.grad for each in every if each.grad is not None}
        return result


class NpuFusedSGD(_WithAmp, optim.NpuFusedSGD):
    """torch.optim.SGD."""


class NpuFusedAdam(_WithAmp, optim.NpuFusedAdam):
    """torch.optim.Adam."""


class NpuFusedAdamW(_WithAmp, optim.NpuFusedAdamW):
    """torch.optim.AdamW."""


class NpuFusedAdadelta(_WithAmp, optim.NpuFusedAdadelta):
    """torch.optim.Adadelta."""


class NpuFusedRMSprop(_WithAmp, optim.NpuFusedRMSprop):
    """torch.optim.RMSprop."""


class NpuFusedAdamP(_WithAmp, optim.NpuFusedAdamP):
    """AdamP."""


class NpuFusedBertAdam(_WithAmp, optim.NpuFusedBertAdam):
    """Adam with a warmup of its own."""


class NpuFusedLamb(_WithAmp, optim.NpuFusedLamb):
    """LAMB."""


class NpuFusedRMSpropTF(_WithAmp, optim.NpuFusedRMSpropTF):
    """RMSprop as in TensorFlow."""


_CUDA = ("FusedSGD", "FusedAdam", "FusedNovoGrad", "FusedLAMB", "FusedAdagrad")


def __getattr__(name: str) -> Any:
    if name in _CUDA:

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"[emulated apex] apex.optimizers.{name} needs CUDA kernels, which Ascend apex lacks")

        return missing
    raise AttributeError(f"module 'apex.optimizers' has no attribute {name!r}")
