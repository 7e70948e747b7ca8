"""What of the themes the portable style does not write, and why: on CUDA it would not do what the program did."""

from __future__ import annotations

_CALLS = "it calls torch_npu, which does not exist on CUDA"
_A_RUN = "it would also change the program on CUDA; use it with --style npu"
#: The reasons by theme. What is not here is the same on CUDA, or stands behind a question for the NPU.
FOR_NPUS_ALONE = {
    "amp:apex": "it is Ascend's build of apex",
    "adapt:frameworks": "it would also remove apex's optimizer on CUDA",
    "adapt:kernels": "it would also remove the compiled module on CUDA; choose between both by DEVICE_TYPE",
    "adapt:ray": "CUDA hosts have no resource NPU",
    "adapt:rope": "on CUDA it would also be computed in parts, and rounded differently",
    **{
        f"tune:{name}": _CALLS for name in (
            "fused-optimizer", "fused-clip", "fusion-attention", "rms-norm", "rotary", "swiglu", "window-roll",
        )
    },
    "tune:hf32": "it would remove the TF32 setting on CUDA",
    "tune:drop-last": "samples would be skipped on CUDA too",
    "tune:extensions": "the extension is built for CUDA as before",
    "tune:finite-masks": "on CUDA a fully masked row would have other values",
    "tune:channel-shuffle": "on CUDA a view costs nothing",
    "tune:triton": "on CUDA one program per block is faster",
    "tune:float32": "it would also be less precise on CUDA",
    "tune:jit-script": "on CUDA the compiled code is faster",
    **{f"tune:{name}": _A_RUN for name in ("max-steps", "step-time", "profiler")},
}  # fmt: skip
