"""`transplt run`: a migrated script on an emulated NPU, so that a port can be tried before anyone has the hardware.

This package starts and judges a run; it never imports torch. What happens inside the script's processes lies below
`site/`, which is put on their PYTHONPATH behind the vendor's torch_npu: `site/npu_emulator` watches.
"""
