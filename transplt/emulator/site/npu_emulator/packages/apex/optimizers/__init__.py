"""The NpuFused optimizers of Ascend apex: those of torch_npu.optim, which run only after `amp.initialize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_npu.optim import _adaptive, _layerwise


class _WithAmp:
    """Refuses to step before `amp.initialize` has seen the optimizer."""

    is_npu_fused_optimizer = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if not hasattr(self, "_amp_stash"):
            raise RuntimeError(f"[emulated apex] apex.optimizers.{type(self).__name__} is used with amp.initialize")
        return super().step(closure)  # type: ignore[misc]

    def _pack(self) -> None:
        """amp holds the gradients: it puts them aside and brings them back around every backward pass."""
        for group in self.param_groups:  # type: ignore[attr-defined]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._check(parameter)  # type: ignore[attr-defined]


class NpuFusedSGD(_WithAmp, _adaptive.NpuFusedSGD):
    """torch.optim.SGD."""


class NpuFusedAdam(_WithAmp, _adaptive.NpuFusedAdam):
    """torch.optim.Adam."""


class NpuFusedAdamW(_WithAmp, _adaptive.NpuFusedAdamW):
    """torch.optim.AdamW."""


class NpuFusedAdadelta(_WithAmp, _adaptive.NpuFusedAdadelta):
    """torch.optim.Adadelta."""


class NpuFusedRMSprop(_WithAmp, _adaptive.NpuFusedRMSprop):
    """torch.optim.RMSprop."""


class NpuFusedAdamP(_WithAmp, _layerwise.NpuFusedAdamP):
    """AdamP."""


class NpuFusedBertAdam(_WithAmp, _layerwise.NpuFusedBertAdam):
    """Adam with a warmup of its own."""


class NpuFusedLamb(_WithAmp, _layerwise.NpuFusedLamb):
    """LAMB."""


class NpuFusedRMSpropTF(_WithAmp, _layerwise.NpuFusedRMSpropTF):
    """RMSprop as in TensorFlow."""


_CUDA = ("FusedSGD", "FusedAdam", "FusedNovoGrad", "FusedLAMB", "FusedAdagrad")


def __getattr__(name: str) -> Any:
    if name in _CUDA:

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"[emulated apex] apex.optimizers.{name} needs CUDA kernels, which Ascend apex lacks")

        return missing
    raise AttributeError(f"module 'apex.optimizers' has no attribute {name!r}")
