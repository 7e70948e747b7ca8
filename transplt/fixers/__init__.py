"""What is rewritten: `codemods` and `triton` in every migration; `adaptors`, `amp`, `distributed` and `tunings` when
they are asked for.
"""
