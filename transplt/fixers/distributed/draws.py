"""Names of what draws at random, and of what seeds it."""

from __future__ import annotations

from transplt.program.program import Program
from transplt.rules.torch_callables import full_names

SEEDS = full_names("seeds")


def seeded(program: Program, names: frozenset[str] = SEEDS) -> bool:
    """True when a program calls one of some functions that seed."""
    return any(file.names.qualified(call.func) in names for file in program.files for call in file.scan.calls)
