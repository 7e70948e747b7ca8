"""Where the values of a file go: slots, the places that a value reaches, what a slot holds."""
