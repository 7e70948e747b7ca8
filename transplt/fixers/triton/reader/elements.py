"""Of which types the elements are that the pointers of a kernel point to, by the tensors that launches give it."""

from __future__ import annotations

import ast

from transplt.base.grouped import grouped
from transplt.fixers.triton.reader.kernels import Kernel
from transplt.fixers.triton.reader.launches import Asked, Launch, launches_in
from transplt.flow.facts import ProjectFacts
from transplt.flow.last_value import last_value
from transplt.program.program import program_of
from transplt.program.tensor_types import TensorTypes
from transplt.program.tensors import DTYPES, Tensor
from transplt.syntax.files import File
from transplt.syntax.scan import chain, parent, statement

#: Types that Triton has under a name of its own.
_OF_TRITON = {"float8_e4m3fn": "float8e4nv", "float8_e4m3fnuz": "float8e4b8", "float8_e5m2": "float8e5",
              "float8_e5m2fnuz": "float8e5b16"}  # fmt: skip


def launches_of(kernel: Kernel, project: ProjectFacts) -> list[Launch]:
    """The launches of a kernel in its own file."""
    return kernel.file.once(_by_kernel, Asked(project)).get(kernel, [])


def _by_kernel(file: File, asked: Asked) -> dict[Kernel, list[Launch]]:
    return grouped((launch.kernel, launch) for launch in launches_in(file, asked.project))


def element_types(kernel: Kernel, project: ProjectFacts) -> dict[str, str]:
    """By parameter, the type of the tensors that all launches give it; empty where they differ or are not known."""
    found: dict[str, set[str]] = {}
    for launch in launches_of(kernel, project):
        for name, dtype in types_given(launch, project).items():
            found.setdefault(name, set()).add(dtype)
    return {name: next(iter(types)) for name, types in found.items() if len(types) == 1 and types != {""}}


def types_given(launch: Launch, project: ProjectFacts) -> dict[str, str]:
    """By parameter, the type of the tensor that a launch gives it, by Triton's name; empty where that is not known."""
    found = {}
    for name, node in launch.arguments.items():
        if name not in launch.kernel.constexprs and not isinstance(node, ast.Constant):
            held = tensor_given(launch.file, node, project)
            (dtype,) = held.types if held is not None and len(held.types) == 1 else ("",)
            found[name] = _OF_TRITON.get(dtype, dtype)
    return found


def tensor_given(file: File, node: ast.expr, project: ProjectFacts) -> Tensor | None:
    """What is known of the tensor that an expression is; None for what may be none."""
    # What a variable is given in the last statement before that sets it, if that is always run before.
    value = last_value(file.scan, node) if isinstance(node, ast.Name) else None
    node = value if value is not None and parent(statement(value)) in chain(node) else node
    cast = _cast(file, node)
    return Tensor(frozenset({cast})) if cast else file.once(_types, Asked(project)).tensor(file, node)


def _cast(file: File, node: ast.expr) -> str:
    """The type that a tensor is cast to: `x.double()`, `x.to(torch.float64)`; empty for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    if file.names.qualified(node.func) is not None:
        return ""  # torch.float(...) is no cast
    name = node.func.attr
    if name in ("contiguous", "clone", "detach") and not node.args:
        return _cast(file, node.func.value)
    if name in ("to", "type"):
        given = [*node.args, *(each.value for each in node.keywords if each.arg == "dtype")]
        named = [file.names.qualified(each) or "" for each in given]
        types = [DTYPES[each.removeprefix("torch.")] for each in named if each.removeprefix("torch.") in DTYPES]
        return types[0] if types else ""
    return DTYPES.get(name, "") if not node.args and not node.keywords else ""


def _types(file: File, asked: Asked) -> TensorTypes:
    project = asked.project
    return TensorTypes(program_of([file], project), default_double=project.default_is_double)
