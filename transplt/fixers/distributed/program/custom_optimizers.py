"""Classes of a program whose `step` changes parameters: second-order optimizers, what only looks like an optimizer."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.program.gradient_reads import writes_gradient
from transplt.program.models import defines_optimizer
from transplt.program.program import Program
from transplt.syntax.nodes import inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS


def step_by_hooks(cls: ast.ClassDef) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The `step` of a class that writes gradients, where hooks of the class keep what passes through the modules:
    K-FAC (Martens and Grosse, arXiv 1503.05671) and its like, whose curvature is that of the batches they saw.
    """
    step = next((each for each in cls.body if isinstance(each, FUNCTIONS) and each.name == "step"), None)
    called = [last_name(node.func) for node in inner_nodes(cls, ast.Call)] if step is not None else []
    hooks = any(name.startswith("register_") and name.endswith("_hook") for name in called)
    writes = step is not None and any(map(writes_gradient, inner_nodes(step, ast.Attribute)))
    return step if hooks and writes else None


def has_groups(program: Program, cls: ast.ClassDef) -> bool:
    """True for a class with parameter groups: its own, or those of the optimizer that it derives from."""
    own = any(node.attr == "param_groups" for node in inner_nodes(cls, ast.Attribute))
    return own or defines_optimizer(program, cls)
