"""What the emulated NPU does inside a process besides being a device: guarding, recording, standing in.

Nothing here imports transplt, and torch is imported only after the script did: the package runs in whatever
interpreter the script needs, and in every process the script starts.
"""

#: The type of the device that this process emulates; the stand-in for CUDA (`site_cuda`) sets its own.
DEVICE = "npu"
