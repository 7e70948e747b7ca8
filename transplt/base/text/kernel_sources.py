"""Sources of compiled modules that are asked which version of a kernel they hold, by the names of their files."""

from __future__ import annotations

#: Those of the rows with `variants` in rules/support/kernel_functions/.
_NAMES = frozenset({
    "nms.cu", "nms_kernel.cu",
    "roiaware_pool3d.cpp", "roiaware_pool3d_kernel.cu", "roipoint_pool3d_kernel.cu", "voxel_query_gpu.cu",
    "voxelization_cuda.cu",
})  # fmt: skip


def is_kernel_source(path: str) -> bool:
    """True for a file that may say which version of a kernel it holds."""
    return path.rpartition("/")[2] in _NAMES
