"""Names of what draws at random, and of what seeds it."""

from __future__ import annotations

from transplt.program.program import Program

#: Draws of torch; the ranks draw apart from the training loop on.
DRAWS = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like multinomial bernoulli normal poisson".split()
)
SEEDS = frozenset(
    {"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.random.manual_seed"}
)


def seeded(program: Program, names: frozenset[str] = SEEDS) -> bool:
    """True when a program calls one of some functions that seed."""
    return any(file.names.qualified(call.func) in names for file in program.files for call in file.scan.calls)
