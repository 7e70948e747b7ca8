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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from transplt.names import Names
from transplt.scan import Scan, Scope, module_name, parent

#: Last parts of modules that are compiled for CUDA, by the names that projects give them.
_COMPILED = re.compile(r"(?:^|\.)(?:_C|_ext|_C_cuda|\w*_cuda(?:_\w+)?|\w+_ext|\w*_cuda_kernels?)$")
_BUILDERS = frozenset({"CUDAExtension", "CppExtension"})
_LOADERS = frozenset({"torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline"})
#: Namespaces of operators that torch and torch_npu bring.
_OWN_OPERATORS = frozenset(
    "aten prims torch_npu npu c10d _c10d_functional c10d_functional higher_order quantized inductor profiler sparse image "
    "torchvision prim symm_mem mkldnn load_library loaded_libraries rngprims debugprims fsdp _quantized".split()
)
#: Methods with which a class falls.
_CARRIERS = frozenset({"__init__", "__new__", "__call__", "forward", "backward"})


@dataclass(frozen=True, slots=True)
class ExtensionFacts:
    """What one file says: modules it builds, operators it registers, and (who, whom) by full names.

    A reference to something compiled is (who, `ext:<name>`); `defined` are the functions and classes of the file.
    """

    builds: tuple[str, ...] = ()
    registers: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    defined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallen:
    """Why something falls: the extension it needs, and the full names on the way there."""

    extension: str
    way: tuple[str, ...] = ()


@dataclass(slots=True)
class _Graph:
    callers: dict[str, set[str]] = field(default_factory=dict)

    def add(self, who: str, whom: str) -> None:
        self.callers.setdefault(whom, set()).add(who)


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
    edges: set[tuple[str, str]] = set()
    loaded = _loaded(scan, names)
    for node, full in _references(scan, names, module, loaded):
        edges.add((owner_of(scan, module, node, owners), full))
    for attribute in scan.attributes.get("ops", ()):
        above = parent(attribute)
        if isinstance(above, ast.Attribute) and names.qualified(attribute) == "torch.ops":
            if above.attr not in _OWN_OPERATORS:
                edges.add((owner_of(scan, module, attribute, owners), f"ops:{above.attr}"))
    for class_ in scan.classes:
        edges |= _self_calls(scan, module, class_, owners)
    return ExtensionFacts(
        tuple(sorted(_builds(scan, names))),
        tuple(sorted(_registered(scan, names))),
        tuple(sorted(edges)),
        tuple(sorted({f"{owner_of(scan, module, d, owners)}.{d.name}".strip(".") for d in [*scan.functions, *scan.classes]})),
    )


def _references(
    scan: Scan, names: Names, module: str, loaded: dict[str, str]
) -> Iterator[tuple[ast.AST, str]]:
    """Names of other modules and of this one's functions and classes, where they are used."""
    root = scan.root
    for local, nodes in scan.names.items():
        extension = loaded.get(local)
        here = root.bindings.get(local)
        kinds = {binding.kind for binding in here} if here else set()
        target = names.resolve(local, root) if "import" in kinds else None
        foreign = target is not None and target.partition(".")[0] not in ("torch", "numpy", "os", "typing")
        inner = here is None and _imported_inside(scan, local)
        if not (extension or foreign or inner or kinds & {"def", "class"}):
            continue
        for node in nodes:
            if extension:
                yield node, f"ext:{extension}"
                continue
            full = names.resolve(local, scan.scope_of(node))
            if full is None and kinds & {"def", "class"}:
                found = names.lookup(local, scan.scope_of(node))
                full = f"{module}.{local}".strip(".") if found is not None and found[0] is root else None
            if full is None or full.startswith("torch."):
                continue
            top: ast.AST = node
            while isinstance(parent(top), ast.Attribute):
                top = parent(top)
                full = f"{full}.{top.attr}"  # type: ignore[attr-defined]
            yield node, full


def _imported_inside(scan: Scan, local: str) -> bool:
    return any(
        binding.kind == "import"
        for scope in scan.scopes.values()
        if scope.kind == "function"
        for binding in scope.bindings.get(local, ())
    )


def _self_calls(scan: Scan, module: str, class_: ast.ClassDef, owners: dict[Scope, str]) -> set[tuple[str, str]]:
    members = scan.scopes[class_].bindings
    full = f"{owner_of(scan, module, class_, owners)}.{class_.name}".strip(".")
    found = set()
    for name, bindings in members.items():
        if bindings[0].kind != "def":
            continue
        for node in scan.attributes.get(name, ()):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                owner = owner_of(scan, module, node, owners)
                if owner.startswith(f"{full}."):
                    found.add((owner, f"{full}.{name}"))
    return found


def _loaded(scan: Scan, names: Names) -> dict[str, str]:
    """Local names that hold the result of `load` or `load_inline`, and the name of what is built there."""
    found: dict[str, str] = {}
    for call in scan.calls:
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if last not in ("load", "load_inline") or names.qualified(call.func) not in _LOADERS:
            continue
        above = parent(call)
        if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
            found[above.targets[0].id] = _name_of(call) or above.targets[0].id
    return found


def _name_of(call: ast.Call) -> str:
    value: ast.expr | None = next((k.value for k in call.keywords if k.arg == "name"), None)
    if value is None and call.args:
        value = call.args[0]
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _builds(scan: Scan, names: Names) -> Iterator[str]:
    for call in scan.calls:
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if last in _BUILDERS and (name := _name_of(call)):
            yield name


def _registered(scan: Scan, names: Names) -> Iterator[str]:
    """Namespaces of operators that Python of this file registers."""
    for call in scan.calls:
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if last in ("Library", "custom_op", "triton_op", "define", "register_fake", "impl") and call.args:
            first = call.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value.partition("::")[0]


# --- the project -----------------------------------------------------------------------------------------------------


def fallen(
    files: Iterable[ExtensionFacts], modules: Iterable[str], exports: dict[str, str], known: dict[str, str]
) -> dict[str, Fallen]:
    """What falls, by full name. `known` are names of libraries that fall, with their extension."""
    every = list(files)
    have = frozenset(modules)
    builds = {name for item in every for name in item.builds}
    registered = {name for item in every for name in item.registers}
    packages = {module.partition(".")[0] for module in have}
    graph = _Graph()
    found: dict[str, Fallen] = {}
    queue: deque[str] = deque()
    defined = {name for item in every for name in item.defined}
    for who, whom in (edge for item in every for edge in item.edges):
        extension = _extension(whom, have, builds, registered, packages, exports, known)
        if extension:
            if who not in found and who in defined:
                found[who] = Fallen(extension)
                queue.append(who)
        else:
            graph.add(who, _settle(whom, exports, defined))
    while queue:
        name = queue.popleft()
        why = found[name]
        owner, _, last = name.rpartition(".")
        above = {owner} if last in _CARRIERS and owner in defined else set()
        for who in sorted({*graph.callers.get(name, ()), *above}):
            if who in defined and who not in found:
                found[who] = Fallen(why.extension, (name, *why.way)[:4])
                queue.append(who)
    return found


def _extension(
    whom: str, modules: frozenset[str], builds: set[str], registered: set[str], packages: set[str],
    exports: dict[str, str], known: dict[str, str],
) -> str:  # fmt: skip
    """The extension that a name belongs to, empty when it belongs to none."""
    if whom.startswith("ext:"):
        return whom[4:]
    if whom.startswith("ops:"):
        return "" if whom[4:] in registered else f"torch.ops.{whom[4:]}"
    head = whom
    while head:
        if head in modules:
            return ""
        if head in builds or head in known:
            return known.get(head, head)
        if _COMPILED.search(head) and head.partition(".")[0] in packages | {_last(build) for build in builds}:
            parent_name = head.rpartition(".")[0]
            if not parent_name or parent_name in modules:
                return head if head not in exports else ""
        head = head.rpartition(".")[0]
    if _COMPILED.search(whom.partition(".")[0]) and "." in whom and whom.partition(".")[0] not in modules:
        return whom.partition(".")[0]
    return ""


def _last(name: str) -> str:
    return name.partition(".")[0]


def _settle(name: str, exports: dict[str, str], defined: set[str]) -> str:
    """The definition that a name leads to, through re-exports; a member of a class falls with the class."""
    for _ in range(8):
        if name in defined:
            return name
        head, tail = name, ""
        while head and head not in exports:
            head, _, last = head.rpartition(".")
            tail = f".{last}{tail}"
        if not head:
            break
        name = f"{exports[head]}{tail}"
    while name and name not in defined:
        name = name.rpartition(".")[0]
    return name
