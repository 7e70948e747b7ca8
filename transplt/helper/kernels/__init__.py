"""Operators that projects compile for CUDA, in torch, under the signatures by which they call the compiled modules."""
