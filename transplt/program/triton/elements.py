"""Of which types the elements are that the pointers of a kernel point to, by the tensors that launches give it."""

from __future__ import annotations

import ast

from transplt.flow.facts import ProjectFacts
from transplt.program.program import program_of
from transplt.program.tensor_types import TensorTypes
from transplt.program.tensors import Tensor
from transplt.program.triton.kernels import Kernel
from transplt.program.triton.launches import Asked, Launch, launches_in
from transplt.syntax.files import File


def launches_of(kernel: Kernel, project: ProjectFacts) -> list[Launch]:
    """The launches of a kernel in its own file."""
    return [each for each in launches_in(kernel.file, project) if each.kernel is kernel]


def element_types(kernel: Kernel, project: ProjectFacts) -> dict[str, str]:
    """By parameter, the type of the tensors that all launches give it; empty where they differ or are not known."""
    found: dict[str, set[str]] = {}
    for launch in launches_of(kernel, project):
        for name, node in launch.arguments.items():
            held = tensor_given(launch.file, node, project)
            if held is not None:
                found.setdefault(name, set()).update(held.types if len(held.types) == 1 else {""})
            elif not isinstance(node, ast.Constant):
                found.setdefault(name, set()).add("")
    return {name: next(iter(types)) for name, types in found.items() if len(types) == 1 and types != {""}}


def tensor_given(file: File, node: ast.expr, project: ProjectFacts) -> Tensor | None:
    """What is known of the tensor that an expression is; None for what may be none."""
    return file.once(_types, Asked(project)).tensor(file, node)


def _types(file: File, asked: Asked) -> TensorTypes:
    project = asked.project
    return TensorTypes(program_of([file], project), default_double=project.default_is_double)
