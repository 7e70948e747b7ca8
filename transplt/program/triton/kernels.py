"""Which functions of a file are kernels in Triton, with their parameters and the configurations of the autotuner."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.syntax.asks import keyword_of, string_of
from transplt.syntax.files import File
from transplt.syntax.names import assigned_value
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
        for call in self.file.scan.calls:
            if self.holds(call):
                name = operation(self.file, call.func)
                if name:
                    yield call, name

    def names(self, name: str) -> list[ast.Name]:
        """Where its body reads and writes a name, by place."""
        if not self._names:
            for node in (inner for line in self.node.body for inner in ast.walk(line)):
                if isinstance(node, ast.Name):
                    self._names.setdefault(node.id, []).append(node)
        return sorted(self._names.get(name, ()), key=lambda node: (node.lineno, node.col_offset))

    def holds(self, node: ast.expr | ast.stmt) -> bool:
        """True for a node of its body."""
        first, last = self.node.body[0].lineno, self.node.body[-1].end_lineno or 0
        return first <= node.lineno <= last


def nodes_in(kernel: Kernel) -> list[ast.AST]:
    """All nodes of a kernel, worked out once."""
    return kernel.file.once(_nodes_in, kernel)


def _nodes_in(_file: File, kernel: Kernel) -> list[ast.AST]:
    return [*ast.walk(kernel.node)]


def operation(file: File, func: ast.AST) -> str:
    """The operation of Triton's language that a callee is (`load`, `math.exp`), empty for anything else."""
    full = file.names.qualified(func) or ""
    return full.removeprefix(LANGUAGE) if full.startswith(LANGUAGE) else ""


def kernels_in(file: File) -> list[Kernel]:
    """The kernels of a file, by place, those that other kernels call among them. Worked out once for a file."""
    return file.once(_kernels_in)


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
        full = [file.names.qualified(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list]
        if any(each in JIT for each in full) or node.name in wrapped:
            found.append(_kernel(file, node))
    return sorted(found, key=lambda kernel: kernel.node.lineno)


def _kernel(file: File, node: ast.FunctionDef) -> Kernel:
    kernel = Kernel(file, node, _parameters(file, node))
    for each in node.decorator_list:
        full = file.names.qualified(each.func if isinstance(each, ast.Call) else each)
        if not isinstance(each, ast.Call):
            continue
        given = keyword_of(each, "configs")
        if full in AUTOTUNE and each.args:
            given = each.args[0]
        configs = [*_configs(file, given)]
        if full in AUTOTUNE or configs:  # a project's own autotuner, around that of Triton, takes the same
            kernel.autotuner, kernel.configs = each, configs
        if full in HEURISTICS:
            values = each.args[0] if each.args else keyword_of(each, "values")
            values = behind(file, values) if values is not None else None
            if isinstance(values, ast.Dict):
                kernel.heuristics |= dict(_named(values))
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
        found = file.names.lookup(value.id, file.scan.scope_of(value))
        holders = [statement(binding.node) for binding in (found[1] if found is not None else ())]
    for holder in holders:
        for call in ast.walk(holder):
            if isinstance(call, ast.Call) and file.names.qualified(call.func) in CONFIG:
                values = call.args[0] if call.args else keyword_of(call, "kwargs")
                known = dict(_named(values)) if isinstance(values, ast.Dict) else {}
                options = {each.arg: each for each in call.keywords if each.arg not in (None, "kwargs")}
                yield Config(call, known, {name: each for name, each in options.items() if name is not None})


def behind(file: File, node: ast.expr) -> ast.expr:
    """What a name is given in the only place that gives it a value; any other expression itself."""
    seen: set[str] = set()
    while isinstance(node, ast.Name) and node.id not in seen:
        seen.add(node.id)
        found = file.names.lookup(node.id, file.scan.scope_of(node))
        value = assigned_value(found[1][0].node) if found is not None and len(found[1]) == 1 else None
        if value is None:
            return node
        node = value
    return node


def function_behind(file: File, func: ast.expr) -> ast.FunctionDef | None:
    """The function of the file that a name is, where it is but one."""
    if not isinstance(func, ast.Name):
        return None
    found = file.names.lookup(func.id, file.scan.scope_of(func))
    made = found[1][0].node if found is not None and len(found[1]) == 1 else None
    return made if isinstance(made, ast.FunctionDef) else None


def _named(display: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(display.keys, display.values, strict=True):
        name = string_of(key)
        if name is not None:
            yield name, value
