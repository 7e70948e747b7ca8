"""A training program: files and who imports whom, functions and calls, values, models, wrappers, optimizers, loops,
backward passes, checkpoints, frameworks.
"""
