"""Triton kernels compiled by the compiler of the card itself, triton-ascend and bishengir-compile, without a card.

`place` says where that compiler lies, `child` runs in its Python, `compiling` asks it and keeps its answers, `answers`
reads them, and `launches` is what a run or a file says of the kernels that it launches.
"""
