"""Names that each process would choose for itself, after the clock or at random: all ranks take that of rank 0.

Rank 0 alone writes under it. Into a temporary folder each rank writes for itself, as it reads from it alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.process_paths import names_written_to


def write_names(bench: Bench, after_start: Callable[[ast.AST], bool]) -> None:
    """A name after the clock, or a random one, under which the program writes: all ranks take that of rank 0."""
    for node in names_written_to(bench.program, bench.file):
        if after_start(node) and bench.alike(node):
            name = bench.call("of_first")
            bench.put_around(node.value, "NPU343", "all ranks write to and read from what rank 0 names so", name)
        else:
            why = "each process chooses this name for itself, and rank 0 alone writes under its own"
            help_ = "choose it behind npu_port.start(), on all ranks: name = npu_port.of_first(name)"
            bench.left(node, why, help_, code="NPU344")
