"""The stand-in for a CUDA host: tensors of type "cuda" in the host's memory, for a PyTorch built without CUDA.

An original program runs on it as on a GPU and answers as there: `torch.cuda.is_available()`, `tensor.device`,
`is_cuda`, autocast, generators, streams, memory figures, checkpoints, nccl (carried by gloo). It is the reference that
a migrated program is held against; nothing of it runs on a GPU.

How: PyTorch's CPU build knows the device type and the dispatch key of CUDA, but has no kernels for it. The engine
(`engine`) registers its own there, and the names of `torch._C` that a CUDA build has in addition are set before
`torch.cuda` is imported, whose Python is then PyTorch's own.

What it does not show: a GPU's numerics, speed and memory; races between streams; CUDA graphs, inductor, kernels and
extensions, NVML; several cards in one process draw and compute on the same host.
"""
