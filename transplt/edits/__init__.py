"""One kind of edit; the current file; sites, lines, imports, ignores; LibCST, which writes an edit (`trees/`)."""
