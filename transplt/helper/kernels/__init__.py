"""Operators that projects compile for CUDA, in torch, under the signatures of the compiled modules."""
