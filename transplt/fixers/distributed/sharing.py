"""Which loaders are shared out, and why others are not."""

from __future__ import annotations

import ast
import re

from transplt.program.loaders import Shares, shares_out
from transplt.program.program import File, Program
from transplt.program.training import Loader, Training
from transplt.program.values import values_of
from transplt.syntax.asks import keyword_of, last_name

_LIVE = re.compile(r"recv|socket|urlopen|requests|subscribe|poll")
_STREAM = (
    "this loader's IterableDataset reads from outside, where each rank may be given another stream",
    "let __iter__ yield its share: itertools.islice(samples, npu_port.rank(), None, npu_port.world_size())",
)
_UNSEEN = (
    "whether this loader is for training, for evaluation or for both cannot be seen",
    "make a loader of its own for training, and share it out: loader = npu_port.shard(loader)",
)
DRAWN = (
    "what this loader goes over is drawn or chosen by each rank for itself",
    "choose it alike on all ranks, before training begins or by npu_port.of_first(chosen), and share the loader out",
)
FOLLOWING = (
    "a state is carried from batch to batch, in the order of the data",
    "give each rank sequences of its own (data[rank::world_size] of what stands on its own), or leave it",
)


def shares(training: Training) -> Shares:
    """The shares of the loaders that training reads; what may give each rank another stream is left whole."""
    return shares_out(training, lambda loader: _STREAM if _may_differ(training.program, loader) else None, _UNSEEN)


def _may_differ(program: Program, loader: Loader) -> bool:
    """True for a stream of samples that comes from outside: what one rank reads, another one does not."""
    found = _stream(program, loader)
    if found is None:
        return False
    owner, cls = found
    calls = [node for node in ast.walk(cls) if isinstance(node, ast.Call)]
    return any(_LIVE.search(owner.names.qualified(call.func) or last_name(call.func)) for call in calls)


def iterates(program: Program, loader: Loader) -> bool:
    """True for a loader over a stream of samples, which has no sampler that knows how many there are."""
    return _stream(program, loader) is not None


def _stream(program: Program, loader: Loader) -> tuple[File, ast.ClassDef] | None:
    """The IterableDataset of the program that a loader goes over."""
    dataset = dataset_of(loader.call)
    made = [dataset, *(value for _, value in values_of(program, loader.file, dataset))] if dataset is not None else []
    for each in made:
        cls = program.callee(loader.file, each) if isinstance(each, ast.Call) else None
        while isinstance(cls, ast.ClassDef):
            owner = program.owner[cls]
            if any((owner.names.qualified(base) or "").endswith("IterableDataset") for base in cls.bases):
                return owner, cls
            cls = next((found for base in cls.bases if (found := program.definition(owner, base))), None)
    return None


def shuffles(call: ast.Call) -> bool:
    """True for a loader that is told to shuffle, or may be."""
    value = keyword_of(call, "shuffle") or (call.args[2] if len(call.args) > 2 else None)
    stars = any(keyword.arg is None for keyword in call.keywords)
    own = any(sampler_of(call, name, index) is not None for name, index in (("sampler", 3), ("batch_sampler", 4)))
    return stars or own or (value is not None and not (isinstance(value, ast.Constant) and not value.value))


def sampler_of(call: ast.Call, name: str, index: int) -> ast.expr | None:
    """What a loader is given as its sampler or batch sampler; None also for the None that is written out."""
    value = keyword_of(call, name) or (call.args[index] if len(call.args) > index else None)
    return None if isinstance(value, ast.Constant) and value.value is None else value


def dataset_of(call: ast.Call) -> ast.expr | None:
    if call.args and not isinstance(call.args[0], ast.Starred):
        return call.args[0]
    return keyword_of(call, "dataset")
