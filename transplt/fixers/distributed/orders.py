"""Samplers that go over all of the data once: what a loader does by itself with `shuffle=True` and `shuffle=False`."""

from __future__ import annotations

import ast

from transplt.program.program import File, Program
from transplt.program.training import Loader
from transplt.program.values import uses
from transplt.rules.torch_callables import full_names
from transplt.syntax.asks import hides_arguments, is_dotted, keyword_of

#: Full names of these samplers, and whether they shuffle.
ORDERS = {name: name in full_names("shuffles") for name in full_names("orders")}
#: Arguments with the value that they have by default.
_DEFAULTS = {"replacement": False, "num_samples": None, "generator": None}


def sampler_of(call: ast.Call, name: str = "sampler", index: int = 3) -> ast.expr | None:
    """What a loader is given as its sampler; None also for the None that is written out."""
    value = keyword_of(call, name) or (call.args[index] if len(call.args) > index else None)
    return None if isinstance(value, ast.Constant) and value.value is None else value


def plain_sampler(program: Program, loader: Loader) -> tuple[ast.Call, ast.expr, bool] | None:
    """The call that makes the sampler of a loader, the data that it is given, and whether it shuffles; None for those
    that are more than an order of the data, or that anything else may read.
    """
    value = sampler_of(loader.call)
    made = _only_value(program, loader.file, value) if isinstance(value, ast.Name) else value
    if not isinstance(made, ast.Call) or hides_arguments(made):
        return None
    shuffles = ORDERS.get(loader.file.names.qualified(made.func) or "")
    given = {keyword.arg or "": keyword.value for keyword in made.keywords}
    data = [*made.args, *([given.pop("data_source")] if "data_source" in given else [])]
    if shuffles is None or len(data) != 1 or not is_dotted(data[0]):
        return None
    if any(not isinstance(value, ast.Constant) or value.value is not _DEFAULTS[name] for name, value in given.items()):
        return None
    return made, data[0], shuffles


def _only_value(program: Program, file: File, name: ast.Name) -> ast.expr | None:
    """What a variable is given, where that happens in one place of the same file and nothing else reads it."""
    slot = program.slot(file, name)
    found = file.names.lookup(name.id, file.scan.scope_of(name))
    if slot is None or found is None or [binding.kind for binding in found[1]] != ["assign"]:
        return None
    values = program.values.get(slot, ())
    if len(values) != 1 or values[0].file is not file or values[0].index is not None:
        return None
    return values[0].node if [node for _, node in uses(program, {slot})] == [name] else None
