"""`transplt prove`: the original on a stand-in for CUDA against the migrated program on the emulated NPU.

`runs` starts both, `training` reads what they recorded, and the other modules are pure: each compares trainings and
yields what it found. `proof` gathers it under one of five words.
"""
