"""How many programs a launch asks for: as an expression inside of the kernel, or as one beside the launch."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from math import prod

from transplt.fixers.triton.reader.kernels import Kernel
from transplt.fixers.triton.reader.launches import Grid, Launch
from transplt.syntax.nodes import inner_nodes, last_name, string_of
from transplt.syntax.scan import chain, parent, statement

#: Calls that give the same number each time, and do nothing else.
_PURE = frozenset("cdiv len min max int numel size stride ceil next_power_of_2 dim element_size".split())
#: What a number of programs is called that is the number of cores already.
_CORES = ("multi_processor_count", "num_vectorcore", "num_aicore", "vector_core", "cube_core", "core_count", "core_num",
          "num_cores", "num_core", "sm_count", "num_sms", "num_sm", "gpu_eu_count")  # fmt: skip


_CDIV = ("triton.cdiv", "triton.language.cdiv")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the grid of a kernel: its size `inside` of the kernel, or at each of its launches."""

    inside: str
    at_launches: tuple[str, ...] = ()


def dimensions_of(kernel: Kernel, launches: list[Launch]) -> list[Dimension] | str:
    """The dimensions of the grid that all launches of a kernel have; a reason where they are not known."""
    grids = [launch.grid for launch in launches]
    sizes = [grid.dimensions if grid is not None else None for grid in grids]
    if any(each is None for each in sizes) or len({len(each) for each in sizes if each is not None}) != 1:
        return "the grid of a launch was not found"
    found = []
    for axis, every in enumerate(zip(*[each for each in sizes if each is not None], strict=True)):
        pairs = [*zip(launches, every, strict=True)]
        made = [_translated(kernel, launch, launch.grid, node) for launch, node in pairs if launch.grid is not None]
        inside = {"" if each is None else ast.unparse(ast.fix_missing_locations(each)) for each in made}
        if len(inside) == 1 and (text := inside.pop()):
            found.append(Dimension(text))
            continue
        outside = [_at_launch(launch, node, axis) for launch, node in pairs]
        if not all(outside):
            return "neither the kernel nor its launch shows the size of its grid"
        found.append(Dimension("", tuple(outside)))
    return found


def fills_the_cores(launch: Launch) -> bool:
    """True for a launch of as many programs as there are cores, or of so few that a loop gains nothing."""
    sizes = launch.grid.dimensions if launch.grid is not None else None
    if sizes is None:
        return False
    numbers = [each.value for each in sizes if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    if len(numbers) == len(sizes):
        return prod(numbers) <= 20
    names = " ".join(_words(launch, node) for node in sizes).lower()
    return any(word in names for word in _CORES)


def _words(launch: Launch, node: ast.expr) -> str:
    """The text of a size, with what its names are given."""
    found = [ast.unparse(node)]
    for name in inner_nodes(node, ast.Name):
        bound = launch.file.names.lookup(name.id, launch.file.scan.scope_of(name))
        for each in bound[1] if bound is not None and bound[0].kind == "function" else ():
            if isinstance(each.node, ast.Name) and not isinstance(statement(each.node), (ast.For, ast.With)):
                found.append(ast.unparse(statement(each.node)))
    return " ".join(found)


# --- inside of the kernel --------------------------------------------------------------------------------------------


def _translated(kernel: Kernel, launch: Launch, grid: Grid, node: ast.expr) -> ast.expr | None:
    """A size in the words of the kernel: what it is given, constexprs, and arithmetic of whole numbers.

    A number that stands in the launch stays there, unless it is what one constexpr is given.

    `tl.cdiv` is written out: triton-ascend's page of it has numbers up to 16777216.
    """
    if isinstance(node, ast.Constant):
        if type(node.value) is not int:
            return None
        same = [name for name in _parameters_given(launch, node) if name in kernel.constexprs]
        return ast.Name(same[0]) if len(same) == 1 else node if node.value == 1 else None
    key = meta_key(grid, node)
    if key:
        return ast.Name(key) if key in kernel.constexprs else None
    given = _parameters_given(launch, node)
    if given and _is_steady(launch, grid, node):
        return ast.Name(given[0])
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv()):
            left, right = (_translated(kernel, launch, grid, each) for each in (node.left, node.right))
            return None if left is None or right is None else ast.BinOp(left, node.op, right)
        case ast.Call(args=[size, block], keywords=[]) if launch.file.names.qualified(node.func) in _CDIV:
            one, other = (_translated(kernel, launch, grid, each) for each in (size, block))
            if one is not None and other is not None:
                more = ast.BinOp(ast.BinOp(one, ast.Add(), other), ast.Sub(), ast.Constant(1))
                return ast.BinOp(more, ast.FloorDiv(), other)
    return None


def _parameters_given(launch: Launch, node: ast.expr) -> list[str]:
    """The parameters that a launch gives an expression."""
    text = ast.dump(node)
    return [name for name, value in launch.arguments.items() if ast.dump(value) == text]


def meta_key(grid: Grid, node: ast.expr) -> str:
    """The constexpr that a grid reads at a place, `meta["BLOCK"]`; empty for anything else."""
    if grid.meta and isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return (string_of(node.slice) or "") if node.value.id == grid.meta else ""
    return ""


def _is_steady(launch: Launch, grid: Grid, node: ast.expr) -> bool:
    """True where the names of a size hold at the launch what they held where the grid was made."""
    made = statement(node)
    if made is statement(launch.call):
        return True
    lookup, file = launch.file.names.lookup, launch.file.scan
    for name in inner_nodes(node, ast.Name):
        there, here = lookup(name.id, file.scope_of(name)), lookup(name.id, file.scope_of(launch.call))
        if there is None or here is None or there[0] is not here[0]:
            return there is here
    if grid.meta:
        return True
    between = range(made.lineno, launch.call.lineno + 1)
    attributes = {each.attr for each in inner_nodes(node, ast.Attribute)}
    if any(each.attr in attributes and each.lineno in between for each in file.stores):
        return False
    loops = [each for each in chain(launch.call) if isinstance(each, (ast.For, ast.While)) and each not in chain(made)]
    for name in inner_nodes(node, ast.Name):
        _, stores = lookup(name.id, file.scope_of(name)) or (None, ())
        if len(stores) > 1 and (loops or any(getattr(each.node, "lineno", 0) >= made.lineno for each in stores)):
            return False
    return True


# --- beside the launch -----------------------------------------------------------------------------------------------


def _at_launch(launch: Launch, node: ast.expr, axis: int) -> str:
    """The text of a size among the arguments of a launch; empty where it may be another number there."""
    grid = launch.grid
    assert grid is not None
    if not grid.meta and isinstance(grid.node, ast.Name):
        return f"{grid.node.id}[{axis}]" if isinstance(parent(node), (ast.Tuple, ast.List)) else grid.node.id
    made = _resolved(launch, grid, copy.deepcopy(node))
    if made is None or not _is_pure(made) or not _is_steady(launch, grid, node):
        return ""
    text = launch.file.source.slice(*launch.file.source.extent(node))
    return ast.unparse(made) if grid.meta or "\n" in text else text


def _resolved(launch: Launch, grid: Grid, node: ast.expr) -> ast.expr | None:
    """A size with what the launch gives each constexpr in place of `meta["BLOCK"]`."""

    class Given(ast.NodeTransformer):
        lost = False

        def visit_Subscript(self, inner: ast.Subscript) -> ast.AST:
            key = meta_key(grid, inner)
            if not key:
                return self.generic_visit(inner)
            value = launch.arguments.get(key)
            if value is None and launch.complete:
                value = next((each.default for each in launch.kernel.parameters if each.name == key), None)
            self.lost = self.lost or value is None
            return inner if value is None else copy.deepcopy(value)

    transformer = Given()
    made = transformer.visit(node)
    lost = transformer.lost or any(name.id == grid.meta for name in inner_nodes(made, ast.Name))
    return None if lost or not isinstance(made, ast.expr) else made


def _is_pure(node: ast.expr) -> bool:
    if any(isinstance(each, (ast.Await, ast.Yield, ast.NamedExpr, ast.Lambda)) for each in ast.walk(node)):
        return False
    return all(last_name(call.func) in _PURE for call in inner_nodes(node, ast.Call))
