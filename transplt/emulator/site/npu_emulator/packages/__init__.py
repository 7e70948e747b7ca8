"""Packages that a run of the emulator finds when the environment has none of that name."""
