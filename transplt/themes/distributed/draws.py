"""Names of what draws at random, and of what seeds it."""

from __future__ import annotations

#: Draws of torch; the ranks draw apart from the training loop on.
DRAWS = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like multinomial bernoulli normal poisson".split()
)
SEEDS = frozenset(
    {"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.random.manual_seed"}
)
