"""Which parameters of a kernel are pointers, and which constexprs are whole numbers."""

from __future__ import annotations

import ast

from transplt.fixers.triton.reader.kernels import Kernel, nodes_in, operation
from transplt.fixers.triton.reader.operations import ATOMICS
from transplt.syntax.nodes import argument_at, arguments_of, inner_nodes

#: Operations that take a pointer first, and the name of that parameter.
_THROUGH = {
    **dict.fromkeys(("load", "store", *ATOMICS), "pointer"),
    **dict.fromkeys(("make_block_ptr", "make_tensor_descriptor"), "base"),
}
#: Operations that give what they are given first.
_HAND_ON = frozenset({"multiple_of", "max_contiguous", "max_constancy", "advance", "cast", "to"})


def pointer_parameters(kernel: Kernel) -> set[str]:
    """The names of parameters at which a pointer starts that the kernel itself reads or writes through."""
    names = {each.name for each in kernel.parameters if not each.constexpr}
    stores = _stores(kernel)
    found: set[str] = set()
    seen: set[str] = set()
    calls = ((each, operation(kernel.file, each.func)) for each in nodes_in(kernel) if isinstance(each, ast.Call))
    starts = [argument_at(call, 0, _THROUGH[name]) for call, name in calls if name in _THROUGH]
    for each in nodes_in(kernel):
        match each:  # a pointer says of which type its elements are: `x.dtype.element_ty`
            case ast.Attribute(value=ast.Attribute(value=pointer), attr="element_ty"):
                starts.append(pointer)
    while starts:
        node = starts.pop()
        name = "" if node is None else _first(kernel, node)
        if not name or name in seen:
            continue
        seen.add(name)
        if name in names:
            found.add(name)
        starts += stores.get(name, ())
    return found


#: Operations whose arguments are whole numbers.
_COUNTING = frozenset(
    "arange zeros full range static_range cdiv make_block_ptr advance reshape view broadcast_to".split()
)


def whole_constexprs(kernel: Kernel) -> set[str]:
    """The names of constexprs that count: those in shapes and ranges, and those that are given whole numbers."""
    names = kernel.constexprs
    found = {
        each.name
        for each in kernel.parameters
        if isinstance(each.default, ast.Constant) and type(each.default.value) is int
    }
    given = ((name, value) for config in kernel.configs for name, value in config.values.items())
    found |= {name for name, value in given if isinstance(value, ast.Constant) and type(value.value) is int}
    for node in nodes_in(kernel):
        holders: list[ast.expr] = []
        match node:
            case ast.Call():
                if operation(kernel.file, node.func) in _COUNTING or getattr(node.func, "id", "") == "range":
                    holders = arguments_of(node)
            case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
                holders = [node.left, node.right]
        for holder in holders:
            found |= {each.id for each in inner_nodes(holder, ast.Name)}
    return found & names


def _first(kernel: Kernel, node: ast.expr) -> str:
    """The variable that a sum starts with: pointers are written first in all of Triton's own texts."""
    while True:
        match node:
            case ast.BinOp(left=first, op=ast.Add() | ast.Sub()) | ast.Subscript(value=first) | ast.IfExp(body=first):
                node = first
            case ast.Call(func=func, args=[first, *_]) if operation(kernel.file, func) in _HAND_ON:
                node = first
            case ast.Call(func=ast.Attribute(value=first, attr=name)) if name in _HAND_ON:
                node = first
            case _:
                return node.id if isinstance(node, ast.Name) else ""


def _stores(kernel: Kernel) -> dict[str, list[ast.expr]]:
    """What variables are given, by their names."""
    found: dict[str, list[ast.expr]] = {}
    assigns = (node for node in nodes_in(kernel) if isinstance(node, ast.Assign))
    for whole, given in ((target, node.value) for node in assigns for target in node.targets):
        pairs = [(whole, given)]
        if isinstance(whole, ast.Tuple) and isinstance(given, ast.Tuple):
            pairs = list(zip(whole.elts, given.elts, strict=False))
        for target, value in pairs:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
    return found
