"""Names of what seeds the generators that a program draws from."""

from __future__ import annotations

from transplt.program.program import Program
from transplt.rules.torch_callables import full_names

#: The functions that seed the generators of a package.
SEEDED_BY = {
    "torch": full_names("seeds"),
    "numpy": frozenset({"numpy.random.seed"}),
    "random": frozenset({"random.seed"}),
}


def seeded(program: Program, names: frozenset[str] = SEEDED_BY["torch"]) -> bool:
    """True when a program calls one of some functions that seed."""
    return any(file.names.qualified(call.func) in names for file in program.files for call in file.scan.calls)
