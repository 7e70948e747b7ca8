"""FusedLayerNorm without a fused kernel: what Ascend apex falls back to."""

from __future__ import annotations

import torch


class FusedLayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm."""
