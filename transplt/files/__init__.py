"""What is not Python: which kind of file it is, and the CUDA tokens in it."""
