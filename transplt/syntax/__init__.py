"""One walk over the `ast` of a file, and what names mean in it. Decides nothing."""
