"""Fourier transforms that CANN has of its own (acl, not aclnn); torch_npu leaves the others to the CPU."""

from __future__ import annotations

from typing import Any

import torch

from . import operator

#: Normalisation by number (FftRfftKernelNpuOpApi.cpp).
_NORMS = {1: "backward", 2: "forward", 3: "ortho"}


@operator("aclRfft1D")
def _rfft(self: Any, length: int, dim: int, norm: int) -> Any:
    """Real and imaginary part stand in a last dimension."""
    return torch.view_as_real(torch.fft.rfft(self, length, dim, _NORMS[norm]))


@operator("aclStft")
def _stft(
    self: Any, window: Any, fft: int, hop: int, length: int, normalized: bool, onesided: bool, return_complex: bool
) -> Any:
    """The signal comes padded; without a window its tensor is empty."""
    if window is not None and not window.numel():
        window = None
    found = torch.stft(
        self, fft, hop, length, window, center=False, normalized=normalized, onesided=onesided, return_complex=True
    )
    return found if return_complex else torch.view_as_real(found)
