"""Which operator of ATen a call of torch runs: rules/support/torch_calls.json (see scripts/build_torch_calls.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from transplt.rules.tables import read_table

_table = partial(read_table, "support/torch_calls.json")

TENSOR = "torch.Tensor."
_FUNCTIONAL = "torch.nn.functional."


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of an operator. `kind`: "" a tensor, "[]" a list of tensors, "#" a number, "~" anything else."""

    name: str
    kind: str
    optional: bool
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Overload:
    """An operator with its overload (`index.Tensor`), and what it takes, by place."""

    operator: str
    parameters: tuple[Parameter, ...]


@cache
def overloads_of(full: str) -> tuple[Overload, ...]:
    """The overloads of which a call of the full name (`torch.gather`, `torch.Tensor.gather`) runs one."""
    table = _table()
    if (row := table["named"].get(full)) is not None:
        parameters = tuple(Parameter(name, "", optional=index > 0) for index, name in enumerate(row[1].split()))
        return tuple(Overload(each, parameters) for each in row[0].split())
    prefix, _, name = full.rpartition(".")
    if prefix not in ("torch", "torch.Tensor") and not (full.startswith(_FUNCTIONAL) and name in table["functional"]):
        return ()
    found = table["operators"].get(name, {})
    return tuple(Overload(f"{name}.{each}" if each else name, tuple(_parameters(text))) for each, text in found.items())


@cache
def operators_by_last_name() -> dict[str, frozenset[str]]:
    """The operators of which a function, a method or (`index`) a subscript may run one, by its last name."""
    table = _table()
    found = {name: {f"{name}.{each}" if each else name for each in row} for name, row in table["operators"].items()}
    for full, row in table["named"].items():
        found.setdefault(full.rpartition(".")[2], set()).update(row[0].split())
    return {name: frozenset(operators) for name, operators in found.items()}


@cache
def real_only(operator: str) -> bool:
    """True for an operator that takes no complex numbers on CUDA either."""
    name = operator.partition(".")[0]
    real = frozenset(_table()["real_only"])
    return name in real or name.removesuffix("_") in real


def _parameters(text: str) -> Iterator[Parameter]:
    by_keyword = False
    for each in text.split():
        if each == "*":
            by_keyword = True
            continue
        plain = each.removesuffix("?")
        name = plain.rstrip("[]#~")
        yield Parameter(name, plain[len(name) :], plain != each, by_keyword)
