"""Optional pointers in conditions that are only known when a kernel runs: both sides are compiled, also for None.

Source: fla-org/flash-linear-attention, .agents/skills/fla-ascend-performance/references/TRAPS.md (a flag of constexpr
beside a run-time check); triton-ascend 3.2, compiler/code_generator.py (`visit_BoolOp` computes both operands).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in, nodes_in
from transplt.syntax.nodes import of_kind, plain_name

fixer = Fixer(__name__, code="NPU569", edits=False, needs=(b"triton",), words=("triton",))


@fixer.on(ast.Module)
def conditions(work: Work, tree: ast.Module) -> Finds:
    """Report an `and` or `or` of whether a pointer is there and something that only the running kernel knows."""
    for kernel in kernels_in(work.file):
        flags = _flags(kernel)
        # something else than constexprs: pointers, and what the kernel gives a value
        changing = {each.id for each in of_kind(ast.Name, nodes_in(kernel)) if isinstance(each.ctx, ast.Store)}
        changing.update(_pointers(kernel))
        for node in nodes_in(kernel):
            if not isinstance(node, ast.If) or not isinstance(node.test, ast.BoolOp):
                continue
            optional = {name for each in node.test.values for name in _pointers_in_question(kernel, each, flags)}
            rest = [each for each in node.test.values if not _pointers_in_question(kernel, each, flags)]
            running = [each for each in rest if any(plain_name(part) in changing for part in ast.walk(each))]
            inner = (each for part in (*node.body, *node.orelse) for each in ast.walk(part))
            read = {each.id for each in of_kind(ast.Name, inner)}
            for name in sorted(optional & read) if running else ():
                yield work.note(
                    node.test, fixer.code, f"{kernel.name} tests in one condition whether {name} is None and a value "
                    "known only at run time: the code that reads the pointer is compiled even if it is None",
                    api=name, blocks="first step",
                    help="test the pointer in a separate if around the other one: triton-ascend 3.2 computes both "
                         "sides of `and` and `or`",
                )  # fmt: skip


def _flags(kernel: Kernel) -> dict[str, str]:
    """The constexprs that say whether a pointer is given, with the pointer: by `triton.heuristics`."""
    found: dict[str, str] = {}
    for flag, value in kernel.heuristics.items():
        if not isinstance(value, ast.Lambda):
            continue
        for each in ast.walk(value.body):
            match each:
                case ast.Compare(
                    left=ast.Subscript(slice=ast.Constant(value=str() as name)),
                    ops=[ast.IsNot() | ast.Is(), *_],
                    comparators=[ast.Constant(), *_],
                ) if name:
                    found[flag] = name
    return found


def _pointers_in_question(kernel: Kernel, node: ast.expr, flags: dict[str, str]) -> set[str]:
    """The pointers that a part of a condition asks for, and nothing else."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _pointers_in_question(kernel, operand, flags)
        case ast.Name(id=name) if name in flags:
            return {flags[name]}
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot(), *_], comparators=[ast.Constant(value=None), *_]
        ) if name in _pointers(kernel):
            return {name}
    return set()


def _pointers(kernel: Kernel) -> Iterator[str]:
    return (each.name for each in kernel.parameters if not each.constexpr)
