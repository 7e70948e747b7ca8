"""Rules that rewrite and are not run, and why: rules of tables by name.

Of a code whose edits Python makes the page says it, under `not run` in its head.
"""

from __future__ import annotations

import sys

from tests.executed.snippet import TORCH, Rule
from transplt.base.settings import TORCH_VERSIONS
from transplt.rules.pages import load
from transplt.rules.versions import spans

_GRAPHS = "graphs of captured kernels are on neither host: there is nothing to capture where all runs at once"
_ADDRESSES = "memory given by address, or by an allocator of one's own in C++, is on neither host"
_GONE = f"torch {TORCH}, which the tests run, has not the old name any more"
_PROCESS_GROUP = "process groups are those of gloo on both hosts: the class of NCCL or HCCL itself is on neither"
_OFFSETS = "generators of both hosts are the CPU's, which count no offset"
_SHARED = "events are not shared between processes on either host"
_HANDLES = "neither host has memory of a card that a handle opens: tensors reach other processes in memory of the CPU"


def _not_installed(package: str) -> str:
    return f"{package} is not installed where the tests run"


_NAMES: dict[str, tuple[str, ...]] = {
    _GRAPHS: (
        "torch.cuda.CUDAGraph", "torch.cuda.CUDAGraph.register_generator_state", "torch.cuda.graph",
        "torch.cuda.graph.default_capture_stream", "torch.cuda.graphs.CUDAGraph", "torch.cuda.graphs.graph",
        "torch.cuda.graphs.make_graphed_callables", "torch.cuda.make_graphed_callables",
    ),
    _ADDRESSES: (
        "torch.cuda.caching_allocator_alloc", "torch.cuda.caching_allocator_delete",
        "torch.cuda.change_current_allocator", "torch.cuda.memory.caching_allocator_alloc",
        "torch.cuda.memory.caching_allocator_delete", "torch.cuda.memory.change_current_allocator",
    ),
    _GONE: (
        "torch._six.container_abcs", "torch._six.inf", "torch._six.nan", "torch.hub._download_url_to_file",
        "torch.is_deterministic", "torch.set_deterministic",
        "torch.cuda.amp.grad_scaler._refresh_per_optimizer_state",
    ),
    _PROCESS_GROUP: (
        "torch._C._distributed_c10d.ProcessGroupNCCL", "torch.distributed.ProcessGroupNCCL",
        "torch.distributed.distributed_c10d.ProcessGroupNCCL",
    ),
    _OFFSETS: ("torch.cuda._get_rng_state_offset", "torch.cuda._set_rng_state_offset"),
    _SHARED: ("torch.cuda.Event.from_ipc_handle", "torch.cuda.Event.ipc_handle"),
    _HANDLES: ("torch.multiprocessing.reductions.rebuild_cuda_tensor",),
    "a checker of launched kernels: no kernels are launched on either host": (
        "torch.cuda._sanitizer.enable_cuda_sanitizer",
    ),
    "the original asks NVIDIA's NVML, which needs a driver": ("torch.cuda.utilization",),
    "the plans of cuFFT: neither host has an FFT library that keeps plans": ("torch.backends.cuda.cufft_plan_cache",),
    "the two differ in their first steps, as the rule says: NpuFusedLamb corrects no bias": (
        "apex.optimizers.FusedLAMB", "apex.optimizers.fused_lamb.FusedLAMB",
    ),
}  # fmt: skip
_NO_PYTHON = "NPU8"

REASONS = {name: reason for reason, names in _NAMES.items() for name in names}


def reason_of(rule: Rule) -> str:
    """Why a rule is not run, where somebody says so; empty where nothing is said against it."""
    if TORCH not in rule.versions:
        return f"for torch {spans(list(rule.versions))} only; the tests run {TORCH}"
    if rule.name.startswith(_NO_PYTHON):
        return "it edits files that are not Python: pairs in tests/files"
    return REASONS.get(rule.name) or ("" if rule.new else load(rule.code).not_run)


def missing_package(rule: Rule) -> str:
    """Why a name of a package other than torch, for which nobody wrote a snippet, is not run."""
    package = rule.name.partition(".")[0]
    if package in sys.stdlib_module_names:
        return "no Python that the tests run has the old name any more"
    return _not_installed(package) if rule.new and package != "torch" else ""


assert TORCH in TORCH_VERSIONS
