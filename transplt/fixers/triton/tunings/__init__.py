"""Tunings of kernels in Triton: loops over the cores, and over parts of blocks."""
