"""Rules that rewrite and are not run, and why."""

from __future__ import annotations

from tests.executed.snippet import TORCH, Rule
from transplt.base.settings import TORCH_VERSIONS
from transplt.rules.versions import spans

_GRAPHS = "graphs of captured kernels are on neither host: there is nothing to capture where all runs at once"
_ADDRESSES = "memory given by address, or by an allocator of one's own in C++, is on neither host"
_GONE = f"torch {TORCH}, which the tests run, has not the old name any more"
_PROCESS_GROUP = "process groups are those of gloo on both hosts: the class of NCCL or HCCL itself is on neither"
_OFFSETS = "generators of both hosts are the CPU's, which count no offset"
_SHARED = "events are not shared between processes on either host"


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
    "a checker of launched kernels: no kernels are launched on either host": (
        "torch.cuda._sanitizer.enable_cuda_sanitizer",
    ),
    "the original asks NVIDIA's NVML, which needs a driver": ("torch.cuda.utilization",),
    "the plans of cuFFT: neither host has an FFT library that keeps plans": ("torch.backends.cuda.cufft_plan_cache",),
    "the two differ in their first steps, as the rule says: NpuFusedLamb corrects no bias": (
        "apex.optimizers.FusedLAMB", "apex.optimizers.fused_lamb.FusedLAMB",
    ),
    "Python 3 does not read the original: `async` is a keyword": ("NPU155",),
    "the original raises with every torch that torch_npu is there for": ("NPU159",),
    "a second file, npu_port.py: written and run in tests/test_helper_output.py; what calls it is NPU135": ("NPU156",),
    "asked for by --check-ranks, and gives no result: run with two ranks in tests/helper/test_checks.py": ("NPU357",),
    "for torch 2.6 and older: later ones pin for the accelerator that is there": ("NPU124",),
    "kernels of Triton: run in its interpreter, before and after, in tests/tunings/test_triton_runs.py": (
        "NPU774", "NPU775",
    ),
    "kernels of Triton: run in its interpreter, before and after, in tests/prove/test_triton_edits.py": (
        "NPU561", "NPU562", "NPU563", "NPU566",
    ),
    _not_installed("timm"): ("NPU149",),
    "for torch 2.2 and older: later ones take a number as a device of the accelerator": ("NPU247",),
}  # fmt: skip
_NO_PYTHON = "NPU8"
_PACKAGES = ("accelerate", "transformers", "mmcv", "mmengine")

REASONS = {name: reason for reason, names in _NAMES.items() for name in names}


def reason_of(rule: Rule) -> str:
    """Why a rule is not run; empty where nothing is said against it."""
    if TORCH not in rule.versions:
        return f"for torch {spans(list(rule.versions))} only; the tests run {TORCH}"
    if rule.name.startswith(_NO_PYTHON):
        return "it edits files that are not Python: pairs in tests/files"
    package = rule.name.partition(".")[0]
    return REASONS.get(rule.name) or (_not_installed(package) if package in _PACKAGES else "")


assert TORCH in TORCH_VERSIONS
