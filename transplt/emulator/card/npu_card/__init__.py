"""The card under the vendor's own torch_npu: CANN's libraries, of which the operators are computed on the CPU.

`libraries.load` goes before `import torch`; the operators are imported when the first is called. Only processes on the
emulated NPU have this package on their path.
"""
