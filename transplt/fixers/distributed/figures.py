"""Figures of a batch that are no losses, such as an accuracy: what is shown and kept of them is that of all ranks."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.counts import is_lifted, text_in_front
from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.program.losses import loss_readers
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import statement


def write_figures(bench: Bench, effects: Effects) -> set[int]:
    """All ranks take the mean of a figure where its number is taken out, or in front of what only rank 0 does.

    The ids of what is a mean of all ranks then, losses too.
    """
    means = {id(node) for _, names in loss_readers(bench.training, bench.file) for node in names}
    for node in (each for each, file in bench.verdict.gathered.items() if file is bench.file):
        means.add(id(node))
        place, why, function = statement(node), "its mean over the ranks", bench.call("mean_over_ranks")
        if not is_lifted(bench, node):
            bench.put_around(node, "NPU345", why, function)
            continue
        names = [name for each in ast.walk(node) if (name := last_name(each)) not in ("", "mean")]
        mean = bench.new_name(f"mean_{names[0] if names else 'figure'}")
        bench.before(place, [f"{mean} = {function}({text_in_front(bench, node)})"], "NPU345", why)
        bench.change(node, "NPU345", why, mean)
        effects.averaged.add(id(place))
    return means
