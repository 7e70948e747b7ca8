"""The way of a tree: options and settings, worker processes, what goes to the output."""
