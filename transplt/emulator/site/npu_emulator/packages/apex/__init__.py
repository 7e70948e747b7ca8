"""What Ascend's adaptation of apex documents, computed plainly: amp with O0 to O3, NpuFused optimizers.

Sources: the README of Ascend apex (parameters of `amp.initialize`, the optimizers) and the documentation of NVIDIA
apex (amp, checkpointing, advanced use). Speed is no aim: tensors are not packed, but what packing forbids is forbidden.
"""

from . import amp, normalization, optimizers, parallel

__all__ = ["amp", "normalization", "optimizers", "parallel"]
