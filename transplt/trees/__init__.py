"""LibCST: transforms of the small tree of one site. The only room that imports it."""
