"""The command line, one module a command, and the functions that other programs call."""
