"""What a loader is given: its dataset, its sampler, the order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.program import File, Program
from transplt.program.training import Loader
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import callee_of, is_false, is_none, keyword_of, last_name

_SAMPLERS = (("sampler", 3), ("batch_sampler", 4))


def iterates(program: Program, loader: Loader) -> bool:
    """True for a loader over a stream of samples, which has no sampler that knows how many there are."""
    return stream_of(program, loader) is not None


def stream_of(program: Program, loader: Loader) -> tuple[File, ast.ClassDef] | None:
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
    return draws_order(call) or any(keyword.arg is None for keyword in call.keywords)


def draws_order(call: ast.Call) -> bool:
    """True for a loader that is told to shuffle, or is given a sampler that may draw."""
    value = keyword_of(call, "shuffle") or (call.args[2] if len(call.args) > 2 else None)
    drawn = any(last_name(callee_of(each)) != "SequentialSampler" for _, each in samplers_of(call))
    return (value is not None and not is_false(value)) or drawn


def has_own_sampler(call: ast.Call) -> bool:
    """True for a loader that is given a sampler or a batch sampler."""
    return any(name for name, _ in samplers_of(call))


def samplers_of(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a loader is given as `sampler` and `batch_sampler`, but for a None that is written out."""
    for name, at in _SAMPLERS:
        value = keyword_of(call, name) or next(iter(call.args[at:]), None)
        if value is not None and not is_none(value):
            yield name, value


def dataset_of(call: ast.Call) -> ast.expr | None:
    if call.args and not isinstance(call.args[0], ast.Starred):
        return call.args[0]
    return keyword_of(call, "dataset")
