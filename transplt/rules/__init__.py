"""Everything that is read from `rules/`."""
