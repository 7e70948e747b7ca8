"""Jupyter notebooks: their cells, the Python and the shell in them, and the way of an edit back into the JSON."""
