"""What stand-ins of `--stubs` import of the emulator, on a machine that has a card in its place."""
