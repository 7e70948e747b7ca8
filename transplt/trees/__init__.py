"""LibCST: transforms of the small tree of one site."""
