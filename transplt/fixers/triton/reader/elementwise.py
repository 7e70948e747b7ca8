"""Kernels that compute each element by itself, over one block of them in one dimension."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.fixers.triton.reader.bodies import stored_in
from transplt.fixers.triton.reader.kernels import Kernel, operation
from transplt.fixers.triton.reader.program_order import Reach

#: Operations that give an element from the same element of what they are given.
_EACH = frozenset(
    "abs add cast cdiv ceil clamp cos div_rn erf exp exp2 expm1 fdiv floor fma log log1p log2 maximum minimum mul rand "
    "randint randn rsqrt sigmoid sin sqrt sqrt_rn sub tanh umulhi where".split()
)
#: Operations that read or write, or say something of a number.
_OTHERS = frozenset(
    "assume load max_constancy max_contiguous multiple_of num_programs program_id static_assert store".split()
)
#: Methods of tensors that work on each element.
_METHODS = frozenset("abs cast ceil cos erf exp exp2 floor log log2 rsqrt sigmoid sin sqrt sqrt_rn to".split())


@dataclass(frozen=True, slots=True)
class Block:
    """The places where a kernel counts its elements (`tl.arange(0, size)`), and the statements from the first on."""

    ranges: list[ast.Call]
    size: str
    statements: list[ast.stmt]


def block_of_elements(kernel: Kernel, reach: Reach) -> Block | str:
    """The one block of elements of a kernel; a reason where it computes anything across them."""
    ranges = []
    for holder, call, name in reach.calls():
        last = name.removeprefix("math.").rpartition(".")[2] if name.startswith(("math.", "extra.")) else name
        if name == "arange" and holder is kernel:
            ranges.append(call)
        elif last not in _EACH and (name not in _OTHERS or holder is not kernel):
            return f"tl.{name} needs the whole block at once"
    for holder in reach.kernels:
        for node in (inner for line in holder.node.body for inner in ast.walk(line)):
            match node:
                case ast.For() | ast.While():
                    return "it has a loop"
                case ast.Return() if holder is kernel:
                    return "it returns early"
                case ast.Subscript() | ast.Lambda():
                    return "it changes the shape of its block"
                case ast.Call(func=ast.Attribute(attr=name) as func) if name not in _METHODS:
                    if not operation(holder.file, func) and holder.file.names.qualified(func) is None:
                        return f"{name} may need the whole block at once"
    return _block(kernel, ranges)


def _block(kernel: Kernel, ranges: list[ast.Call]) -> Block | str:
    sizes, calls = set[str](), set[ast.AST](ranges)
    for call in ranges:
        match call:
            case ast.Call(args=[ast.Constant(value=0), ast.Name(id=name)], keywords=[]) if name in kernel.constexprs:
                sizes.add(name)
            case _:
                return "it has several blocks"
    if len(sizes) != 1:
        return "it has several blocks"
    body = kernel.node.body
    first = next(at for at, line in enumerate(body) if not calls.isdisjoint(ast.walk(line)))
    statements = body[first:]
    if any(isinstance(line, (ast.If, ast.With)) and not calls.isdisjoint(ast.walk(line)) for line in body):
        return "its block depends on a condition"
    above = {name for line in body[:first] for name in stored_in(line)} | {each.name for each in kernel.parameters}
    again = above & {name for line in statements for name in stored_in(line)}
    if again:
        return f"{min(again)} is changed while it goes through the block"
    of_block = _counted(statements, ranges)
    for call, name in kernel.calls():
        if name == "store" and not (call.args and _reads(call.args[0], of_block, ranges)):
            return "it stores something other than its block"
    return Block(ranges, sizes.pop(), statements)


def _counted(statements: list[ast.stmt], ranges: list[ast.Call]) -> set[str]:
    """The names that hold something of each element."""
    found: set[str] = set()
    for _ in range(len(statements)):
        before = len(found)
        for line in statements:
            if _reads(line, found, ranges):
                found |= stored_in(line)
        if len(found) == before:
            break
    return found


def _reads(node: ast.AST, names: set[str], ranges: list[ast.Call]) -> bool:
    return any(
        each in ranges or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id in names)
        for each in ast.walk(node)
    )
