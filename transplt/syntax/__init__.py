"""The `ast` of one file: scan, scopes, names, and small questions (`nodes.py`)."""
