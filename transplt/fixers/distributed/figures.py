"""Figures of a batch that are no losses, such as an accuracy: what is shown and kept of them is that of all ranks."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.program.losses import loss_readers, taken_out
from transplt.fixers.distributed.program.outputs import happens_once
from transplt.program.program import text_of
from transplt.syntax.nodes import by_place, inner_nodes, last_name, of_kind
from transplt.syntax.scan import chain, statement

_ONE = "{0} is that of one rank's batch, and rank 0's is shown here"
_HELP = "reduce it over the ranks at a place that all of them reach: npu_port.mean_over_ranks({0}), or sum_over_ranks"


def write_figures(bench: Bench, effects: Effects) -> set[int]:
    """All ranks take the mean of a figure where its number is taken out; one is told that is no mean, and is shown.

    The ids of what is a mean of all ranks then, losses too.
    """
    means = {id(node) for _, names in loss_readers(bench.training, bench.file) for node in names}
    for node, file in bench.verdict.gathered.items():
        if file is bench.file:
            means.add(id(node))
            _put_mean(bench, effects, node)
    for node in by_place(taken_out(bench.file)):
        inside = {id(each) for each in (node, *inner_nodes(node, ast.Name), *chain(node))}
        own = means.isdisjoint(inside) and bench.training.in_region(bench.file, node) and bench.varies(node)
        if own and (_shows(bench, node) is not None or _is_shown_later(bench, node)):
            text = text_of(bench.file, node)
            bench.remark(node, "NPU346", _ONE.format(text), _HELP.format(text))
    return means


def _shows(bench: Bench, node: ast.AST) -> ast.Call | None:
    """The call around an expression that shows or writes it, once for all ranks."""
    return next((call for call in of_kind(ast.Call, chain(node)) if happens_once(bench.file, call)), None)


def _put_mean(bench: Bench, effects: Effects, node: ast.expr) -> None:
    """The mean in its place, or in front of what only rank 0 does."""
    place, why, function = statement(node), "its mean over the ranks", bench.call("mean_over_ranks")
    if _shows(bench, node) is None or not bench.fits(place):
        bench.put_around(node, "NPU345", why, function)
        return
    names = [name for each in ast.walk(node) if (name := last_name(each)) not in ("", "mean")]
    mean = bench.new_name(f"mean_{names[0] if names else 'figure'}")
    text = " ".join(line.strip() for line in text_of(bench.file, node).splitlines())
    bench.before(place, [f"{mean} = {function}({text})"], "NPU345", why)
    bench.change(node, "NPU345", why, mean)
    effects.averaged.add(id(place))


def _is_shown_later(bench: Bench, node: ast.expr) -> bool:
    """True for a figure that gets a name, which something shows or writes."""
    match statement(node):
        case ast.Assign(targets=[ast.Name() as name]):
            slot = bench.program.slot(bench.file, name)
            reads = (each for each in bench.file.scan.names.get(name.id, ()) if isinstance(each.ctx, ast.Load))
            return any(_shows(bench, each) for each in reads if bench.program.slot(bench.file, each) == slot)
    return False
