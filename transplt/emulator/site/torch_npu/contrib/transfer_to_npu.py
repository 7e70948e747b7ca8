"""torch_npu's run-time patch that makes CUDA names mean the npu. Not emulated: what is verified is migrated source."""

from npu_emulator.names import NotEmulated

raise NotEmulated(
    "torch_npu.contrib.transfer_to_npu is not emulated: what is verified here is migrated source, without CUDA names"
)
