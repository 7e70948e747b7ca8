"""Programs run on the emulated card, and are held against their originals."""
