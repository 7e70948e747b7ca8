"""Which loaders are shared out, and why others are not."""

from __future__ import annotations

import ast
import re

from transplt.fixers.distributed.program.datasets import stream_of
from transplt.program.loaders import Shares, shares_out
from transplt.program.program import Program
from transplt.program.training import Loader, Training
from transplt.syntax.nodes import inner_nodes, last_name

_LIVE = re.compile(r"recv|socket|urlopen|requests|subscribe|poll")
_STREAM = (
    "this loader's IterableDataset reads an outside source, which may give each rank a different stream",
    "let __iter__ yield the rank's share: itertools.islice(samples, npu_port.rank(), None, npu_port.world_size())",
)
_UNSEEN = (
    "it is unknown whether this loader is for training, evaluation or both",
    "create a separate loader for training, and divide it among the ranks: loader = npu_port.shard(loader)",
)
DRAWN = (
    "each rank draws or chooses the data of this loader independently",
    "choose the same data on all ranks, before training begins or by npu_port.of_first(chosen), and divide the loader",
)
FOLLOWING = (
    "state is carried from batch to batch, in the order of the data",
    "give each rank its own sequences (data[rank::world_size] of independent ones), or change nothing",
)


def shares(training: Training) -> Shares:
    """The shares of the loaders that training reads; what may give each rank another stream is left whole."""
    return shares_out(training, lambda loader: _STREAM if _may_differ(training.program, loader) else None, _UNSEEN)


def _may_differ(program: Program, loader: Loader) -> bool:
    """True for a stream of samples that comes from outside: what one rank reads, another one does not."""
    if (found := stream_of(program, loader)) is None:
        return False
    calls = inner_nodes(found[1], ast.Call)
    return any(_LIVE.search(found[0].names.qualified(call.func) or last_name(call.func)) for call in calls)
