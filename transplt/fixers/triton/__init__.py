"""Kernels in Triton: what reads them (`reader`), what every migration changes in them, and their tunings."""
