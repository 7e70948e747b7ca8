"""The NpuFused optimizers of Ascend apex, with the formulas of those of torch_npu.optim: they run only after
`amp.initialize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npu_emulator.optimizers import adaptive, layerwise


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


class NpuFusedSGD(_WithAmp, adaptive.NpuFusedSGD):
    """torch.optim.SGD."""


class NpuFusedAdam(_WithAmp, adaptive.NpuFusedAdam):
    """torch.optim.Adam."""


class NpuFusedAdamW(_WithAmp, adaptive.NpuFusedAdamW):
    """torch.optim.AdamW."""


class NpuFusedAdadelta(_WithAmp, adaptive.NpuFusedAdadelta):
    """torch.optim.Adadelta."""


class NpuFusedRMSprop(_WithAmp, adaptive.NpuFusedRMSprop):
    """torch.optim.RMSprop."""


class NpuFusedAdamP(_WithAmp, layerwise.NpuFusedAdamP):
    """AdamP."""


class NpuFusedBertAdam(_WithAmp, layerwise.NpuFusedBertAdam):
    """Adam with a warmup of its own."""


class NpuFusedLamb(_WithAmp, layerwise.NpuFusedLamb):
    """LAMB."""


class NpuFusedRMSpropTF(_WithAmp, layerwise.NpuFusedRMSpropTF):
    """RMSprop as in TensorFlow."""


_CUDA = ("FusedSGD", "FusedAdam", "FusedNovoGrad", "FusedLAMB", "FusedAdagrad")


def __getattr__(name: str) -> Any:
    if name in _CUDA:

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"[emulated apex] apex.optimizers.{name} needs CUDA kernels, which Ascend apex lacks")

        return missing
    raise AttributeError(f"module 'apex.optimizers' has no attribute {name!r}")
