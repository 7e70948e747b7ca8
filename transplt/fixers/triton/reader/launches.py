"""The calls that launch kernels, `kernel[grid](...)`: of which kernel, over which grid, with which arguments."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.fixers.triton.reader.kernels import Kernel, behind, function_behind, kernel_at, kernel_named
from transplt.flow.facts import ProjectFacts
from transplt.program.programs import programs_of
from transplt.syntax.files import File
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import block_of, inner_nodes, keyword_of, last_name
from transplt.syntax.scan import chain, statement

#: What a launch takes beside the parameters of its kernel (triton.runtime.jit).
OPTIONS = frozenset(
    "num_warps num_stages num_ctas maxnreg num_buffers_warp_spec num_consumer_groups reg_dec_producer "
    "reg_inc_consumer enable_warp_specialization warmup stream grid device_type".split()
)
#: Functions that give one number.
_NUMBERS = frozenset({"cdiv", "ceil", "int", "len", "min", "max", "numel", "next_power_of_2"})
#: Wrappers of a kernel that are launched like itself.
_WRAPPERS = frozenset({"torch.library.wrap_triton", "torch._library.wrap_triton", "torch._library.triton.wrap_triton"})


@dataclass(slots=True, frozen=True)
class Grid:
    """The grid of a launch. `dimensions` are its expressions, None where they are not known.

    `meta` is the parameter by which they read constexprs (`lambda meta: (n // meta["BLOCK"],)`); empty for a tuple.
    """

    node: ast.expr
    dimensions: tuple[ast.expr, ...] | None
    meta: str = ""


@dataclass(slots=True, eq=False)
class Launch:
    """One launch. `arguments` are what parameters are given, by name; `options` those of the launch.

    `complete` is False where `*args` or `**kwargs` hide some.
    """

    file: File
    call: ast.Call
    kernel: Kernel
    grid: Grid | None
    arguments: dict[str, ast.expr]
    options: dict[str, ast.keyword]
    complete: bool


def launches_in(file: File, project: ProjectFacts) -> list[Launch]:
    """The launches in a file of kernels that are known, by place; the kernels may be those of other files."""
    return file.once(_launches_in, Asked(project))


@dataclass(frozen=True, slots=True)
class Asked:
    """A project as a key: the same object is the same project."""

    project: ProjectFacts

    def __hash__(self) -> int:
        return id(self.project)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asked) and other.project is self.project


def _launches_in(file: File, asked: Asked) -> list[Launch]:
    found = []
    for call in file.scan.calls:
        held = _launched(file, call)
        if held is None:
            continue
        kernel = kernel_behind(file, held[0], asked.project)
        if kernel is not None:
            found.append(_launch(file, call, kernel, held[1]))
    return sorted(found, key=lambda launch: (launch.call.lineno, launch.call.col_offset))


def _launched(file: File, call: ast.Call) -> tuple[ast.expr, ast.expr | None] | None:
    """What a call launches, and its grid: `kernel[grid](...)`, `held = kernel[grid]`, `kernel.run(grid=grid)`."""
    match behind(file, call.func):
        case ast.Subscript(value=kernel, slice=grid):
            return kernel, grid
        case ast.Attribute(value=kernel, attr="run" | "warmup") if (given := keyword_of(call, "grid")) is not None:
            return kernel, given
    return None


def kernel_behind(file: File, node: ast.expr, project: ProjectFacts) -> Kernel | None:
    """The kernel that an expression is: its name in this file, or that of another file of the project."""
    node = behind(file, node)
    if isinstance(node, ast.Call) and node.args and file.names.qualified(node.func) in _WRAPPERS:
        node = behind(file, node.args[0])
    if isinstance(node, ast.Call) and node.args:  # kernel = triton.jit(function), autotune(...)(function)
        node = behind(file, node.args[0])
    if isinstance(node, ast.Name):
        kernel = kernel_at(file, function_behind(file, node))
        if kernel is not None:
            return kernel
    other, name = behind_import(file.names.qualified(node) or "", project)
    if other is None or other.path == file.path:
        return None
    return kernel_named(other, name)


def function_of(full: str, project: ProjectFacts) -> ast.FunctionDef | None:
    """The function of a module of the project that a full name means."""
    file, name = behind_import(full, project)
    bound = file.scan.root.bindings.get(name, ()) if file is not None else ()
    return next((each.node for each in bound if isinstance(each.node, ast.FunctionDef)), None)


def behind_import(full: str, project: ProjectFacts) -> tuple[File | None, str]:
    """The file of the project that a full name belongs to, and its name there."""
    if not full or not project.known:
        return None, ""
    module, _, name = project.canonical(full).rpartition(".")
    path = project.path_of(module)
    return (programs_of(project).file(path) if path else None), name


def _launch(file: File, call: ast.Call, kernel: Kernel, grid: ast.expr | None) -> Launch:
    arguments: dict[str, ast.expr] = {}
    complete = True
    for parameter, value in zip(kernel.parameters, call.args, strict=False):
        if isinstance(value, ast.Starred):
            complete = False
            break
        arguments[parameter.name] = value
    names = {each.name for each in kernel.parameters}
    options: dict[str, ast.keyword] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            complete = False
        elif keyword.arg in names:
            arguments[keyword.arg] = keyword.value
        else:
            options[keyword.arg] = keyword
    return Launch(file, call, kernel, None if grid is None else grid_of(file, grid), arguments, options, complete)


def grid_of(file: File, node: ast.expr) -> Grid:
    """What a grid is: a tuple, a number, or a function that gives one of them from the constexprs."""
    value = behind(file, node)
    nearest = _nearest(file, value) if isinstance(value, ast.Name) else None
    made = nearest if isinstance(nearest, ast.FunctionDef) else function_behind(file, value)
    value = nearest if isinstance(nearest, ast.expr) else value
    if made is not None:
        returns = list(inner_nodes(made, ast.Return))
        given = returns[0].value if len(returns) == 1 else None
        meta = made.args.args[0].arg if made.args.args else ""
        return Grid(node, None if given is None else _dimensions(file, given), meta)
    if isinstance(value, ast.Lambda):
        meta = value.args.args[0].arg if value.args.args else ""
        return Grid(node, _dimensions(file, value.body), meta)
    return Grid(node, _dimensions(file, value))


def _nearest(file: File, name: ast.Name) -> ast.expr | ast.FunctionDef | None:
    """The value or function that a name has been given last where it is read, of several; None where that may differ.

    What gives it stands above in the text, nothing between, and runs whenever the name is read.
    """
    scope = file.scan.scope_of(name)
    every = [each.node for each in scope.bindings.get(name.id, ())]
    above = [node for node in every if getattr(node, "lineno", name.lineno) < name.lineno]
    if len(above) != len(every) and scope.kind == "module":
        return None
    last = max(above, key=lambda node: getattr(node, "lineno", 0), default=None)
    if last is None or isinstance(last, ast.arg):
        return None
    made = statement(last)
    around = chain(name)
    if all(line not in around for line in block_of(made)):
        return None
    loops = [each for each in around if isinstance(each, (ast.For, ast.While)) and each not in chain(made)]
    if any(loop in chain(node) for node in every for loop in loops):
        return None
    if isinstance(made, ast.FunctionDef):
        return made
    return assigned_value(last)


def _dimensions(file: File, node: ast.expr) -> tuple[ast.expr, ...] | None:
    match value := behind(file, node):
        case ast.Tuple(elts=sizes) | ast.List(elts=sizes):
            return None if any(isinstance(each, ast.Starred) for each in sizes) else tuple(sizes)
        case ast.Call():  # of another function it may be a tuple
            return (value,) if last_name(value.func) in _NUMBERS else None
        case ast.Name() | ast.IfExp():
            return None
        case ast.BinOp() | ast.Constant():
            return (value,)
    return (value,) if value is not node else None
