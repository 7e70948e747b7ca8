"""A training program: its files and functions, loaders and loops, models and optimizers."""
