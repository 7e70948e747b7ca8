"""Diagnostic codes of what a run finds: those of the static check, so that one page explains both."""

from __future__ import annotations

CUDA_API = "NPU101"  # a live use of torch.cuda, or of a .cuda() method
CUDA_DEVICE = "NPU201"  # something is placed on a "cuda" device
CUDA_SILENT = "NPU202"  # accepted and silently disabled on an NPU host
CUDA_PROBE = "NPU203"  # answers "no" on an NPU host: the CUDA branch is skipped
CUDA_ENVIRONMENT = "NPU204"  # an environment variable that only CUDA reads
NCCL = "NPU301"  # the nccl backend
NO_KERNEL = "NPU501"  # the chosen torch_npu has no kernel for the operator
NO_NAME = "NPU502"  # the chosen torch_npu does not have the name
