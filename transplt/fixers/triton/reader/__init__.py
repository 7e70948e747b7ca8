"""Kernels in Triton: what they compute, how they are launched, and what that takes of a card. Nothing is executed."""
