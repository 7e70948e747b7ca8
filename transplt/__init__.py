"""transplt: PyTorch training projects for CUDA GPUs, rewritten for Ascend NPUs."""

__version__ = "0.1.0"
