"""`transplt show`: one operator of a dump, beside that of another one, and as a test of its own."""
