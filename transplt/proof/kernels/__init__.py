"""`transplt prove --kernels`: Triton kernels alone, the migrated ones on the emulated NPU against the original ones.

`calls` is what a run of the original left of its kernels' calls, `runs` makes them again with both programs, `judged`
says of each kernel what came of it, and `report` writes that down.
"""
