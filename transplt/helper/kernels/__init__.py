"""Operators that projects compile for CUDA, said in torch, under the names and arguments of the compiled modules."""
