"""Rewrites of kernels in Triton, and of what starts them, that every migration makes."""
