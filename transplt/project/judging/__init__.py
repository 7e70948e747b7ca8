"""Ports that others made, held against their originals (`transplt judge`): what they changed, and what is left."""
