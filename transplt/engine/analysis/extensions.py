"""What falls with a compiled CUDA extension: a call graph over the project.

`facts_of` collects from one file who refers to whom, by full names; `fallen` walks the graph backwards from what cannot
be built for an NPU as it is: modules that setup.py builds with CUDAExtension, modules imported that look like one,
results of `load` and `load_inline`, and operators of `torch.ops` that no Python of the project registers. A class falls
with its constructor or its forward pass. Calls on objects are not followed, only names and `self`.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from transplt.flow.cuda_builds import BUILDERS
from transplt.flow.gates.code import Definition
from transplt.flow.gates.graph import Graph
from transplt.flow.support import Built, ExtensionFacts, Fallen, Operators, Referred
from transplt.rules.torch_callables import names_of
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.nodes import attribute_of, dotted, keyword_of, plain_name, string_of
from transplt.syntax.scan import FUNCTIONS, Scan, parent
from transplt.syntax.scopes import Scope

#: Last parts of modules that are compiled for CUDA, by the names that projects give them.
_COMPILED = re.compile(r"(?:^|\.)(?:_C|_ext|_C_cuda|(?!is_|to_|has_|use_|set_|get_)[a-z0-9]\w*_cuda(?:_kernels?)?)$")
#: The same outside of the project, where other names say nothing.
_FOREIGN = re.compile(r"(?!is_|to_|has_|use_|set_|get_)[a-z0-9]\w*_cuda(?:_kernels?)?")
_BUILDERS = frozenset({"CUDAExtension", "CppExtension"})
#: Methods with which a class falls.
_CARRIERS = frozenset({"__init__", "__new__", "__call__", "forward", "backward"})


def owner_of(scan: Scan, module: str, node: ast.AST, cache: dict[Scope, str]) -> str:
    """Full name of the function or class in whose body a node stands, the module's outside of all."""
    scope: Scope | None = scan.scope_of(node)
    assert scope is not None
    known = cache.get(scope)
    if known is not None:
        return known
    parts: list[str] = []
    each: Scope | None = scope
    while each is not None and each.parent is not None:
        if each.kind in ("function", "class"):
            parts.append(each.node.name)  # type: ignore[attr-defined]
        each = each.parent
    # A function inside of a function falls with the outer one.
    cache[scope] = found = ".".join([module, *reversed(parts)]).strip(".")
    return found


def facts_of(scan: Scan, names: Names) -> ExtensionFacts:
    """The references of one file."""
    module = module_name(scan.path)
    owners: dict[Scope, str] = {}
    edges: set[tuple[str, Referred]] = set()
    maybe: set[tuple[str, Referred]] = set()

    def refer(node: ast.AST, whom: Referred) -> None:
        edge = (owner_of(scan, module, node, owners), whom)
        if edge not in edges:
            (maybe if _conditional(node) else edges).add(edge)

    for node, whom in _references(scan, names, module, _loaded(scan, names)):
        refer(node, whom)
    for attribute in scan.attributes.get("ops", ()):
        above = parent(attribute)
        if not isinstance(above, ast.Attribute) or above.attr in names_of("torch.ops"):
            continue
        if names.qualified(attribute) == "torch.ops":
            refer(attribute, Operators(above.attr))
    for class_ in scan.classes:
        for node, full in _self_calls(scan, module, class_, owners):
            refer(node, Definition(full))
    defined = {f"{owner_of(scan, module, d, owners)}.{d.name}".strip(".") for d in [*scan.functions, *scan.classes]}
    assigned = {f"{module}.{name}" for name, found in scan.root.bindings.items() if found[0].kind == "assign"}
    registering = scan.calls_by_last_name(("Library", "custom_op", "triton_op", "define", "register_fake", "impl"))
    registered = (string_of(call.args[0]) for call in registering if call.args)
    return ExtensionFacts(
        tuple(sorted(name for call in scan.calls_by_last_name(_BUILDERS) if (name := _name_of(call)))),
        # Namespaces of operators that Python of this file registers.
        tuple(sorted(first.partition("::")[0] for first in registered if first is not None)),
        tuple(sorted(edges, key=_by_name)),
        tuple(sorted(maybe - edges, key=_by_name)),
        tuple(sorted(defined)),
        tuple(sorted(name for name in assigned if _COMPILED.search(name))),
    )


def _by_name(edge: tuple[str, Referred]) -> tuple[str, str, str]:
    who, whom = edge
    return who, type(whom).__name__, whom.name


def _conditional(node: ast.AST) -> bool:
    """True for what stands in a branch, or in a try statement, of the function it is in."""
    while type(node) not in _HOLDERS:
        above = parent(node)
        kind = type(above)
        if (kind is ast.If or kind is ast.IfExp) and node is not above.test:  # type: ignore[attr-defined]
            return True
        if kind is ast.Try and above.handlers:  # type: ignore[attr-defined]
            return True
        node = above
    return False


_HOLDERS = frozenset({ast.Module, ast.ClassDef, ast.Lambda, *FUNCTIONS})


def _references(scan: Scan, names: Names, module: str, loaded: dict[str, str]) -> Iterator[tuple[ast.AST, Referred]]:
    """Names of other modules and of this one's functions and classes, where they are used."""
    root = scan.root
    functions = [scope.bindings for scope in scan.scopes.values() if scope.kind == "function"]
    inside = {local for each in functions for local, bindings in each.items() if bindings[0].kind == "import"}
    for local, nodes in scan.names.items():
        extension = loaded.get(local)
        here = root.bindings.get(local)
        kinds = {binding.kind for binding in here} if here else set()
        target = names.resolve(local, root) if "import" in kinds else None
        foreign = target is not None and target.partition(".")[0] not in ("torch", "numpy", "os", "typing")
        inner = here is None and local in inside
        if not (extension or foreign or inner or kinds & {"def", "class"}):
            continue
        for node in nodes:
            if extension:
                yield node, Built(extension)
            elif whom := _definition(scan, names, node, module if kinds & {"def", "class"} else None):
                yield node, whom


def _definition(scan: Scan, names: Names, node: ast.Name, module: str | None) -> Definition | None:
    """What a name outside of torch stands for, with its members; `module` is that of a name which the file defines."""
    full = names.resolve(node.id, scan.scope_of(node))
    if full is None and module is not None:
        found = names.lookup(node.id, scan.scope_of(node))
        full = f"{module}.{node.id}".strip(".") if found is not None and found[0] is scan.root else None
    if full is None or full.startswith("torch."):
        return None
    return Definition(".".join([full, *(attribute_of(each) for each in dotted(node)[1:])]))


def _self_calls(
    scan: Scan, module: str, class_: ast.ClassDef, owners: dict[Scope, str]
) -> Iterator[tuple[ast.AST, str]]:
    members = scan.scopes[class_].bindings
    full = f"{owner_of(scan, module, class_, owners)}.{class_.name}".strip(".")
    for name, bindings in members.items():
        if bindings[0].kind != "def":
            continue
        for node in scan.attributes.get(name, ()):
            own = plain_name(node.value) in ("self", "cls")
            if own and owner_of(scan, module, node, owners).startswith(f"{full}."):
                yield node, f"{full}.{name}"


def _loaded(scan: Scan, names: Names) -> dict[str, str]:
    """Local names that hold the result of `load` or `load_inline`, and the name of what is built there."""
    found: dict[str, str] = {}
    for call in scan.calls_by_last_name(("load", "load_inline")):
        if names.qualified(call.func) not in BUILDERS:
            continue
        match parent(call):
            case ast.Assign(targets=[ast.Name(id=local), *_]):
                found[local] = _name_of(call) or local
    return found


def _name_of(call: ast.Call) -> str:
    return string_of(keyword_of(call, "name") or (call.args[0] if call.args else None)) or ""


# --- the project -----------------------------------------------------------------------------------------------------


def fallen(files: Collection[ExtensionFacts], graph: Graph, known: dict[str, str]) -> dict[str, Fallen]:
    """What falls, by full name. `known` are names of libraries that fall, with their extension."""
    judge = _Judge(
        graph,
        frozenset().union(*(item.builds for item in files)),
        frozenset().union(*(item.registers for item in files)),
        (graph.defined | graph.aliases.keys()).union(*(item.assigned for item in files)),
        known,
    )
    callers: dict[str, set[str]] = {}
    direct: list[tuple[str, Referred]] = []
    for edge in (edge for item in files for edge in item.edges):
        who, whom = edge
        if not judge.extension(whom):
            callers.setdefault(judge.definition(whom), set()).add(who)
        elif who in graph.defined:
            direct.append(edge)
    found: dict[str, Fallen] = {}
    for who, whom in sorted(direct, key=_by_name):
        found.setdefault(who, Fallen(judge.extension(whom)))
    queue = deque(found)
    while queue:
        name = queue.popleft()
        owner, _, last = name.rpartition(".")
        above = {owner} if last in _CARRIERS and owner in graph.defined else set()
        for who in sorted({*callers.get(name, ()), *above}):
            if who in graph.defined and who not in found:
                found[who] = Fallen(found[name].extension, (name, *found[name].way)[:4])
                queue.append(who)
    maybe = [edge for item in files for edge in item.maybe if edge[0] in graph.defined]
    for who, why in _perhaps(judge, sorted(maybe, key=_by_name), dict(found)):
        found.setdefault(who, why)
    return found


def _perhaps(
    judge: _Judge, maybe: Iterable[tuple[str, Referred]], certain: dict[str, Fallen]
) -> Iterator[tuple[str, Fallen]]:
    """What falls where a branch is taken, beside what falls for certain."""
    for who, whom in maybe:
        if who in certain:
            continue
        if extension := judge.extension(whom):
            yield who, Fallen(extension, certain=False)
        elif certain and (name := judge.definition(whom)) in certain:
            why = certain[name]
            yield who, Fallen(why.extension, (name, *why.way)[:4], certain=False)


@dataclass(frozen=True, slots=True)
class _Judge:
    """What a project has and builds, to tell what is compiled."""

    graph: Graph
    builds: frozenset[str]
    registered: frozenset[str]
    written: Collection[str]  # names that Python of the project has
    known: dict[str, str]

    def extension(self, whom: Referred) -> str:
        """The extension that something belongs to, empty when it belongs to none."""
        if isinstance(whom, Built):
            return whom.name
        if isinstance(whom, Operators):
            return "" if whom.name in self.registered else f"torch.ops.{whom.name}"
        full = self.graph.canonical(whom.name)
        if (
            not self.known
            and not self.builds
            and not _COMPILED.search(full)
            and "_cuda" not in full
            and "_C." not in full
        ):
            return ""
        head = ""
        for part in full.split("."):
            head = f"{head}.{part}".strip(".")
            if head in self.builds or head in self.known:
                return self.known.get(head, head)
            if head in self.graph.modules:
                continue
            if head in self.written:
                return ""
            if "." in head and head.rpartition(".")[0] in self.graph.modules and _COMPILED.search(head):
                return head
            if "." not in head and _FOREIGN.fullmatch(head):
                return head
            if "." in head:
                return ""
        return ""

    def definition(self, whom: Referred) -> str:
        """The function or class that something stands for; a member of a class falls with the class."""
        ways = list(self.graph.ways(whom.name))
        name = next((full for full in ways if full in self.graph.defined), ways[-1])
        while name and name not in self.graph.defined:
            name = name.rpartition(".")[0]
        return name
