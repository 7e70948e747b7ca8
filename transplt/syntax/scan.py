"""One walk over a file's syntax tree: scopes, bindings, and the nodes that later stages look at.

The walk keeps its own stack (400-branch elif chains are real) and writes on each node what holds it and in which scope
its names are looked up. It decides nothing.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from transplt.base.text.source import Source
from transplt.syntax.modules import import_base
from transplt.syntax.scopes import Binding, Scope

#: A node yet to be walked, the node that holds it, and the scope in which its names are looked up.
Step = tuple[Any, ast.AST, Scope]
Push = Callable[[Step], None]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What a statement `global` begins with: `global_step` and `globals()` are in every other file.
_OUTWARD = re.compile(rb"\bglobal[ \t\f\\]")
#: Strings are kept as candidates when their lowered value holds one of these.
STRING_WORDS = ("cuda", "nccl", "cudnn", "cublas", "nvtx", "nvidia", "nvcc", "cupti")


@dataclass(slots=True)
class Scan:
    """What one walk found. Lists are in no particular order; sort by place before results depend on it."""

    source: Source
    path: str
    tree: ast.Module
    root: Scope
    names: dict[str, list[ast.Name]] = field(default_factory=lambda: defaultdict(list))
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=lambda: defaultdict(list))
    calls: list[ast.Call] = field(default_factory=list)
    strings: list[ast.Constant] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    classes: list[ast.ClassDef] = field(default_factory=list)
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=list)
    compares: list[ast.Compare] = field(default_factory=list)
    subscripts: list[ast.Subscript] = field(default_factory=list)
    returns: list[ast.Return] = field(default_factory=list)
    stores: list[ast.Attribute] = field(default_factory=list)  # attributes that are assigned to
    texts: list[ast.Constant] = field(default_factory=list)  # all strings
    ifs: list[ast.If | ast.IfExp] = field(default_factory=list)
    assigns: list[ast.Assign] = field(default_factory=list)
    dicts: list[ast.Dict] = field(default_factory=list)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)  # by the node that opens the scope
    declares_outward: bool = False  # the text may hold a statement `global` or `nonlocal`
    _bound: set[str] = field(default_factory=set)
    _by_last: dict[str, list[tuple[int, ast.Call]]] = field(default_factory=dict)

    def binds(self, name: str) -> bool:
        """True when any scope of the file binds a name."""
        if not self._bound:
            self._bound.update(*(scope.bindings for scope in self.scopes.values()))
        return name in self._bound

    def calls_by_last_name(self, names: Collection[str]) -> list[ast.Call]:
        """The calls of some last names (`c` of `a.b.c()`), in the order of `calls`."""
        if not self._by_last:
            for index, call in enumerate(self.calls):
                func = call.func
                last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
                self._by_last.setdefault(last, []).append((index, call))
        if len(names) == 1:
            (name,) = names
            return [call for _, call in self._by_last.get(name, ())]
        found = [item for name in names for item in self._by_last.get(name, ())]
        return [call for _, call in sorted(found, key=lambda item: item[0])]

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope in which a node's names are looked up."""
        return node._scope  # type: ignore[attr-defined, no-any-return]


def parent(node: ast.AST) -> ast.AST:
    """The node that holds `node`; the module is its own parent."""
    return node._parent  # type: ignore[attr-defined, no-any-return]


def _link(node: Any, above: ast.AST, scope: Scope) -> None:
    """Write on a node what `parent` and `Scan.scope_of` read: a dict beside the tree would make each of them slower."""
    node._parent = above
    node._scope = scope


def statement(node: ast.AST) -> ast.stmt:
    """The statement that holds an expression (or the statement itself)."""
    found = node if isinstance(node, ast.stmt) else ancestor(node, ast.stmt, "_statement")
    assert isinstance(found, ast.stmt)
    return found


#: So many nodes are gone up before somebody looks for what is known.
_NEAR = 32


def ancestor(node: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...], key: str) -> ast.AST:
    """The nearest node of some kinds above another one; the module where there is none. `key` stands for the kinds.

    A chain of 2,000 `elif` is as deep: what is far away is found once for all on the way.
    """
    passed: list[ast.AST] = []
    while not isinstance(node := parent(node), kinds) and not isinstance(node, ast.Module):
        if len(passed) >= _NEAR and (known := node.__dict__.get(key)) is not None:
            node = known
            break
        passed.append(node)
    if len(passed) >= _NEAR:
        for each in passed:
            each.__dict__[key] = node
    return node


def outermost(node: ast.AST, carries: Callable[[ast.AST, ast.AST], bool], key: str) -> ast.AST:
    """The last node on the way up as long as `carries` (the node above, the node) says so. `key` stands for it.

    What is far away is found once for all on the way, as in `ancestor`: `a + b + ...` is as deep as it is long.
    """
    passed: list[ast.AST] = []
    while carries(above := parent(node), node):
        if len(passed) >= _NEAR and (known := node.__dict__.get(key)) is not None:
            node = known
            break
        passed.append(node)
        node = above
    if len(passed) >= _NEAR:
        for each in passed:
            each.__dict__[key] = node
    return node


def chain(node: ast.AST) -> list[ast.AST]:
    """A node's ancestors, nearest first, the module last."""
    found = []
    while not isinstance(node, ast.Module):
        node = parent(node)
        found.append(node)
    return found


_CHILD_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    fields = tuple(
        name
        for name in kind._fields
        if not (
            name in ("ctx", "op", "ops", "type_comment", "kind", "id", "attr", "level", "module", "simple", "tag")
            or (name == "arg" and kind is ast.keyword)
            or (name == "arg" and kind is ast.arg)
            or (name == "name" and kind in (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.ExceptHandler))
            or (name == "names" and kind in (ast.Global, ast.Nonlocal))
            or (name == "conversion")
        )
    )
    _CHILD_FIELDS[kind] = fields
    return fields


def scan(source: Source, tree: ast.Module, path: str = "") -> Scan:
    """Walk a tree once."""
    root = Scope("module", tree, None)
    found = Scan(source, path, tree, root)
    found.scopes[tree] = root
    found.declares_outward = b"global" in source.utf8 and _OUTWARD.search(source.utf8) is not None
    found.declares_outward = found.declares_outward or b"nonlocal" in source.utf8
    _link(tree, tree, root)
    names, attributes, strings, texts = found.names, found.attributes, found.strings, found.texts
    listed: dict[type[ast.AST], list[Any]] = {
        ast.Call: found.calls, ast.If: found.ifs, ast.IfExp: found.ifs, ast.Assign: found.assigns,
        ast.Dict: found.dicts, ast.Compare: found.compares, ast.Subscript: found.subscripts,
    }  # fmt: skip
    # Scopes are opened as their headers are met, but a nested scope's bindings never need an outer one to be complete
    # except through global and nonlocal: those declarations are read when a function is entered.
    stack: list[Step] = [(child, tree, root) for child in reversed(tree.body)]
    pop, push = stack.pop, stack.append
    child_fields = _CHILD_FIELDS
    while stack:
        node, above, scope = pop()
        node._parent = above  # `_link`, without a call for each node
        node._scope = scope
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is ast.Load:
                names[node.id].append(node)
            else:
                target = scope.binder() if type(above) is ast.NamedExpr else scope
                target.bind(node.id, Binding("assign", node))
            continue
        if kind is ast.Constant:
            value = node.value
            if type(value) is str:
                texts.append(node)
                if len(value) > 3:
                    lowered = value.lower()
                    for word in STRING_WORDS:
                        if word in lowered:
                            strings.append(node)
                            break
            continue
        if kind is ast.Attribute:
            attributes[node.attr].append(node)
            if type(node.ctx) is ast.Store:
                found.stores.append(node)
            push((node.value, node, scope))
            continue
        if kind in listed:
            listed[kind].append(node)
        elif kind in _SPECIAL:
            _SPECIAL[kind](found, node, scope, push)
            continue
        fields = child_fields.get(kind) or _fields(kind)
        for name in reversed(fields):
            value = getattr(node, name, None)
            if value.__class__ is list:
                for child in reversed(value):
                    if isinstance(child, ast.AST):
                        push((child, node, scope))
            elif isinstance(value, ast.AST):
                push((value, node, scope))
    return found


def _function(found: Scan, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, push: Push) -> None:
    scope.bind(node.name, Binding("def", node))
    found.functions.append(node)
    inner = Scope("function", node, scope)
    found.scopes[node] = inner
    for statement_ in reversed(node.body):
        push((statement_, node, inner))
    if found.declares_outward:
        _declare_outward(node.body, inner)
    _arguments(node.args, node, scope, inner, push)
    if node.returns is not None:
        push((node.returns, node, scope))
    for decorator in reversed(node.decorator_list):
        push((decorator, node, scope))
    _type_parameters(node, scope, inner, push)


def _type_parameters(node: ast.AST, outer: Scope, inner: Scope, push: Push) -> None:
    """`def f[T: bound = default]` of Python 3.12 and 3.13."""
    for parameter in getattr(node, "type_params", ()):
        _link(parameter, node, outer)
        inner.bind(parameter.name, Binding("other", parameter))
        for name in ("bound", "default_value"):
            child = getattr(parameter, name, None)
            if child is not None:
                push((child, parameter, outer))


def _arguments(args: ast.arguments, owner: ast.AST, outer: Scope, inner: Scope, push: Push) -> None:
    _link(args, owner, outer)
    for default in [*args.kw_defaults, *args.defaults]:
        if default is not None:
            push((default, args, outer))
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    every += [extra for extra in (args.vararg, args.kwarg) if extra is not None]
    for arg in every:
        _link(arg, args, inner)
        inner.bind(arg.arg, Binding("param", arg))
        if arg.annotation is not None:
            push((arg.annotation, arg, outer))


def _declare_outward(body: list[ast.stmt], inner: Scope) -> None:
    """Read the global and nonlocal statements of a function, wherever in it they stand."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            how = "global" if isinstance(node, ast.Global) else "nonlocal"
            for name in node.names:
                inner.outward[name] = how
        elif isinstance(node, ast.stmt) and not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                stack.extend(getattr(node, name, ()))
        elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
            stack.extend(node.body)


def _lambda(found: Scan, node: ast.Lambda, scope: Scope, push: Push) -> None:
    inner = Scope("lambda", node, scope)
    found.scopes[node] = inner
    push((node.body, node, inner))
    _arguments(node.args, node, scope, inner, push)


def _class(found: Scan, node: ast.ClassDef, scope: Scope, push: Push) -> None:
    scope.bind(node.name, Binding("class", node))
    found.classes.append(node)
    inner = Scope("class", node, scope)
    found.scopes[node] = inner
    for statement_ in reversed(node.body):
        push((statement_, node, inner))
    for child in reversed([*node.decorator_list, *node.bases, *node.keywords]):
        push((child, node, scope))
    _type_parameters(node, scope, inner, push)


def _comprehension(
    found: Scan, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope, push: Push
) -> None:
    inner = Scope("comprehension", node, scope)
    found.scopes[node] = inner
    for index, generator in enumerate(node.generators):
        _link(generator, node, inner)
        for test in reversed(generator.ifs):
            push((test, generator, inner))
        push((generator.iter, generator, inner if index else scope))
        push((generator.target, generator, inner))
    for name in ("value", "key", "elt"):
        child = getattr(node, name, None)
        if child is not None:
            push((child, node, inner))


def _import(found: Scan, node: ast.Import, scope: Scope, push: Push) -> None:
    found.imports.append(node)
    for alias in node.names:
        _link(alias, node, scope)
        if alias.asname:
            scope.bind(alias.asname, Binding("import", node, alias.name))
        else:
            first = alias.name.split(".")[0]
            scope.bind(first, Binding("import", node, first))


def _import_from(found: Scan, node: ast.ImportFrom, scope: Scope, push: Push) -> None:
    found.imports.append(node)
    base = import_base(found.path, node)
    for alias in node.names:
        _link(alias, node, scope)
        if alias.name == "*":
            scope.stars.append(base)
        else:
            full = f"{base}.{alias.name}" if base else alias.name
            scope.bind(alias.asname or alias.name, Binding("import", node, full))


def _handler(found: Scan, node: ast.ExceptHandler, scope: Scope, push: Push) -> None:
    if node.name:
        scope.bind(node.name, Binding("other", node))
    for child in reversed(node.body):
        push((child, node, scope))
    if node.type is not None:
        push((node.type, node, scope))


def _capture(found: Scan, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, scope: Scope, push: Push) -> None:
    name = node.rest if isinstance(node, ast.MatchMapping) else node.name
    if name:
        scope.bind(name, Binding("other", node))
    for field_name in ("patterns", "keys", "pattern"):
        value = getattr(node, field_name, None)
        for child in reversed(value) if isinstance(value, list) else ([value] if value is not None else []):
            push((child, node, scope))


def _return(found: Scan, node: ast.Return, scope: Scope, push: Push) -> None:
    if node.value is not None:
        found.returns.append(node)
        push((node.value, node, scope))


def _outward(found: Scan, node: ast.Global | ast.Nonlocal, scope: Scope, push: Push) -> None:
    for name in node.names:
        scope.outward.setdefault(name, "global" if isinstance(node, ast.Global) else "nonlocal")


#: How the nodes are walked that open scopes, bind names, or are listed in `Scan`.
_SPECIAL: dict[type[ast.AST], Callable[..., None]] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.ExceptHandler: _handler,
    ast.MatchAs: _capture,
    ast.MatchStar: _capture,
    ast.MatchMapping: _capture,
    ast.Return: _return,
    ast.Global: _outward,
    ast.Nonlocal: _outward,
}
