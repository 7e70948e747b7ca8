"""Which functions of a file are kernels in Triton, with their parameters and the configurations of the autotuner."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.syntax.files import File
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import argument_at, callee_of, inner_nodes, keyword_of, string_of
from transplt.syntax.scan import statement

JIT = frozenset({"triton.jit", "triton.runtime.jit.jit", "triton.runtime.jit"})
AUTOTUNE = frozenset({"triton.autotune", "triton.runtime.autotuner.autotune"})
HEURISTICS = frozenset({"triton.heuristics", "triton.runtime.autotuner.heuristics"})
CONFIG = frozenset({"triton.Config", "triton.runtime.autotuner.Config"})
#: The module that kernels take their operations from.
LANGUAGE = "triton.language."


@dataclass(slots=True, frozen=True)
class Parameter:
    """A parameter of a kernel; `constexpr` are those whose value is known when it is compiled."""

    node: ast.arg
    constexpr: bool
    default: ast.expr | None = None

    @property
    def name(self) -> str:
        return self.node.arg


@dataclass(slots=True, frozen=True, eq=False)
class Config:
    """One call of `triton.Config`: the values of constexprs, and the options beside them (`num_warps`)."""

    call: ast.Call
    values: dict[str, ast.expr]
    options: dict[str, ast.keyword]


@dataclass(slots=True, eq=False)
class Kernel:
    """A function under `triton.jit`, or one that a call of it wraps.

    `autotuner` is the call that chooses among `configs`; `heuristics` are the expressions that give constexprs their
    values, by name.
    """

    file: File
    node: ast.FunctionDef
    parameters: list[Parameter]
    autotuner: ast.Call | None = None
    configs: list[Config] = field(default_factory=list)
    heuristics: dict[str, ast.expr] = field(default_factory=dict)
    _names: dict[str, list[ast.Name]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def constexprs(self) -> frozenset[str]:
        """The names of the parameters that are known when the kernel is compiled."""
        return frozenset(each.name for each in self.parameters if each.constexpr)

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """The calls in its body of the language, by place: `load` for `tl.load(...)`."""
        return iter(self.file.once(_calls_of, self))

    def every_call(self) -> list[ast.Call]:
        """All calls in its body, of whatever."""
        return self.file.once(_every_call, self)

    def names(self, name: str) -> list[ast.Name]:
        """Where its body reads and writes a name, by place."""
        if not self._names:
            for node in (inner for line in self.node.body for inner in below(line)):
                if isinstance(node, ast.Name):
                    self._names.setdefault(node.id, []).append(node)
        return sorted(self._names.get(name, ()), key=lambda node: (node.lineno, node.col_offset))

    def holds(self, node: ast.expr | ast.stmt) -> bool:
        """True for a node of its body."""
        first, last = self.node.body[0].lineno, self.node.body[-1].end_lineno or 0
        return first <= node.lineno <= last


def _calls_of(file: File, kernel: Kernel) -> list[tuple[ast.Call, str]]:
    named = ((call, operation(file, call.func)) for call in kernel.every_call())
    return [(call, name) for call, name in named if name]


def _every_call(file: File, kernel: Kernel) -> list[ast.Call]:
    lines, indices = file.once(_call_lines)
    first, last = kernel.node.body[0].lineno, kernel.node.body[-1].end_lineno or 0
    calls = file.scan.calls
    return [calls[at] for at in sorted(indices[bisect_left(lines, first) : bisect_right(lines, last)])]


def _call_lines(file: File) -> tuple[list[int], list[int]]:
    """The lines of all calls of a file, sorted, and where each stands in the list of them."""
    calls = file.scan.calls
    indices = sorted(range(len(calls)), key=lambda at: calls[at].lineno)
    return [calls[at].lineno for at in indices], indices


def nodes_in(kernel: Kernel) -> list[ast.AST]:
    """All nodes of a kernel but contexts and operators, worked out once."""
    return kernel.file.once(_nodes_in, kernel)


def _nodes_in(_file: File, kernel: Kernel) -> list[ast.AST]:
    return below(kernel.node)


#: The fields of a kind of nodes in which nodes may stand that are more than a word.
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
_WORDS = frozenset("ctx op ops id attr kind type_comment".split())


def below(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes below it, in the order of `ast.walk`, but for contexts and operators: in half the time."""
    found = [node]
    for each in found:  # grows
        kind = type(each)
        fields = _FIELDS.get(kind)
        if fields is None:
            fields = _FIELDS[kind] = tuple(name for name in each._fields if name not in _WORDS)
        for name in fields:
            value = getattr(each, name, None)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def operation(file: File, func: ast.AST) -> str:
    """The operation of Triton's language that a callee is (`load`, `math.exp`), empty for anything else."""
    full = file.names.qualified(func) or ""
    return full.removeprefix(LANGUAGE) if full.startswith(LANGUAGE) else ""


def kernels_in(file: File) -> list[Kernel]:
    """The kernels of a file, by place, those that other kernels call among them. Worked out once for a file."""
    return file.once(_kernels_in)


def kernel_at(file: File, node: ast.AST | None) -> Kernel | None:
    """The kernel whose function a node is."""
    return file.once(_by_node).get(id(node))


def _by_node(file: File) -> dict[int, Kernel]:
    return {id(each.node): each for each in kernels_in(file)}


def kernel_named(file: File, name: str) -> Kernel | None:
    """The first kernel of a name."""
    return file.once(_by_name).get(name)


def _by_name(file: File) -> dict[str, Kernel]:
    return {each.name: each for each in reversed(kernels_in(file))}


def _kernels_in(file: File) -> list[Kernel]:
    if b"triton" not in file.source.utf8:
        return []
    wrapped = {
        call.args[0].id: call
        for call in file.scan.calls
        if call.args and isinstance(call.args[0], ast.Name) and file.names.qualified(call.func) in JIT
    }
    found = []
    for node in file.scan.functions:
        if not isinstance(node, ast.FunctionDef):
            continue
        full = [file.names.qualified(callee_of(each)) for each in node.decorator_list]
        if any(each in JIT for each in full) or node.name in wrapped:
            found.append(_kernel(file, node))
    return sorted(found, key=lambda kernel: kernel.node.lineno)


def _kernel(file: File, node: ast.FunctionDef) -> Kernel:
    kernel = Kernel(file, node, _parameters(file, node))
    for each in node.decorator_list:
        full = file.names.qualified(callee_of(each))
        if not isinstance(each, ast.Call):
            continue
        given = keyword_of(each, "configs")
        if full in AUTOTUNE and each.args:
            given = each.args[0]
        configs = [*_configs(file, given)]
        if full in AUTOTUNE or configs:  # a project's own autotuner, around that of Triton, takes the same
            kernel.autotuner, kernel.configs = each, configs
        if full in HEURISTICS:
            values = argument_at(each, 0, "values")
            values = behind(file, values) if values is not None else None
            if isinstance(values, ast.Dict):
                kernel.heuristics |= dict(_items_by_name(values))
    return kernel


def _parameters(file: File, node: ast.FunctionDef) -> list[Parameter]:
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(node.args.defaults)), *node.args.defaults]
    pairs = [*zip(plain, defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [Parameter(each, _is_constexpr(file, each.annotation), default) for each, default in pairs]


def _is_constexpr(file: File, annotation: ast.expr | None) -> bool:
    text = string_of(annotation)
    if text is not None:
        return text.rpartition(".")[2] == "constexpr"
    return annotation is not None and (file.names.qualified(annotation) or "").endswith(".constexpr")


def _configs(file: File, given: ast.expr | None) -> Iterator[Config]:
    """The calls of `Config` in what an autotuner is given: a list, a comprehension, a name or a function of them."""
    if given is None:
        return
    value = behind(file, given)
    holders: list[ast.AST] = [value]
    if isinstance(value, ast.Call):
        made = function_behind(file, value.func)
        holders = [value if made is None else made]
    elif isinstance(value, ast.Name):  # a list to which more is added
        holders = [statement(binding.node) for binding in file.names.bindings_of(value)]
    for holder in holders:
        for call in inner_nodes(holder, ast.Call):
            if file.names.qualified(call.func) in CONFIG:
                values = argument_at(call, 0, "kwargs")
                known = dict(_items_by_name(values)) if isinstance(values, ast.Dict) else {}
                options = {each.arg: each for each in call.keywords if each.arg not in (None, "kwargs")}
                yield Config(call, known, {name: each for name, each in options.items() if name is not None})


def behind(file: File, node: ast.expr) -> ast.expr:
    """What a name is given in the only place that gives it a value; any other expression itself."""
    seen: set[str] = set()
    while isinstance(node, ast.Name) and node.id not in seen:
        seen.add(node.id)
        bindings = file.names.bindings_of(node)
        value = assigned_value(bindings[0].node) if len(bindings) == 1 else None
        if value is None:
            return node
        node = value
    return node


def function_behind(file: File, func: ast.expr) -> ast.FunctionDef | None:
    """The function of the file that a name is, where it is but one."""
    bindings = file.names.bindings_of(func)
    made = bindings[0].node if len(bindings) == 1 else None
    return made if isinstance(made, ast.FunctionDef) else None


def _items_by_name(display: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(display.keys, display.values, strict=True):
        name = string_of(key)
        if name is not None:
            yield name, value
