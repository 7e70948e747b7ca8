"""Programs run on the emulated card: `transplt run` (`launch/`), and `transplt prove`, which holds a migrated
program against its original (`prove/`), or its Triton kernels alone (`kernels/`).
"""
