"""A tree on a disk: what of it is read, how it is copied, published and known again, and what was done."""
