"""torch_npu's run-time patch that makes CUDA names mean the npu. Not emulated: what is tried is migrated source."""

from npu_emulator.names import NotEmulated

raise NotEmulated(
    "torch_npu.contrib.transfer_to_npu is not emulated: what is tried here is migrated source, without CUDA names"
)
