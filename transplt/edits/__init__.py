"""One kind of edit; the file on the bench; sites, lines, imports, ignores."""
