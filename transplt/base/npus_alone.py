"""What of the themes the portable style does not write, and why: on CUDA it would not do what the program did."""

from __future__ import annotations

_CALLS = "it calls torch_npu, which CUDA has not"
_A_RUN = "it changes what the program does on CUDA too: ask for it in the style npu"
#: The reasons by theme. What is not here is the same on CUDA, or stands behind a question for the NPU.
FOR_NPUS_ALONE = {
    "amp:apex": "it is Ascend's build of apex",
    "adapt:frameworks": "on CUDA apex's optimizer would go as well",
    "adapt:kernels": "on CUDA the compiled module would go as well; choose between both by DEVICE_TYPE",
    "adapt:ray": "no host of CUDA has a resource NPU",
    "adapt:rope": "on CUDA it would be computed in parts as well, and rounded otherwise",
    **{
        f"tune:{name}": _CALLS for name in (
            "fused-optimizer", "fused-clip", "fusion-attention", "rms-norm", "rotary", "swiglu", "window-roll",
        )
    },
    "tune:hf32": "it takes the setting of TF32 from CUDA",
    "tune:drop-last": "samples would be left out on CUDA too",
    "tune:extensions": "the extension is built for CUDA as before",
    "tune:finite-masks": "on CUDA a row without any number would be another one",
    "tune:channel-shuffle": "on CUDA a view costs nothing",
    "tune:triton": "on CUDA a program for each block is what is fast",
    "tune:float32": "on CUDA it would have fewer digits as well",
    "tune:jit-script": "on CUDA the compiled code is what is fast",
    **{f"tune:{name}": _A_RUN for name in ("max-steps", "step-time", "profiler")},
}  # fmt: skip
