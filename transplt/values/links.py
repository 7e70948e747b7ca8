"""Where values go in one file: links between slots, and the marks that uses give them.

Assignments, calls, returns and comparisons link slots; uses mark them (`x.to(s)` marks s as a device). A CUDA string
that reaches several slots links them too. Everything is flow-insensitive: a string becomes an NPU string together with
all that shares its slot, or not at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.project.facts import ProjectFacts, unify_attributes
from transplt.project.name_hints import DEVICE_NAME
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan, Scope, parent
from transplt.values.kinds import certain_kind
from transplt.values.reached import places, store_slots
from transplt.values.slots import (
    BACKEND,
    BACKEND_WORD,
    DEVICE,
    DEVICE_WORD,
    SELF,
    Flow,
    class_fields,
    hint_of,
)
from transplt.values.sources import sources
from transplt.values.torch_positions import (
    ABSL_CALLS,
    BACKEND_POSITIONS,
    DEVICE_KEYWORDS,
    OBJECTS,
    PARSER_CALLS,
    TORCH_POSITIONS,
)

DEVICE_METHODS = {"to": (0,), "to_empty": (0,)}
_POSITION_NAMES = {name.rpartition(".")[2] for name in [*TORCH_POSITIONS, *BACKEND_POSITIONS]}
#: Strings that name a device or a backend: what the decisions of `codemods.strings` are about.
DEVICE_STRING = re.compile(r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?)?", re.I)
#: torch takes the names of backends in any case.
BACKEND_STRINGS = ("nccl", "NCCL")
BACKENDS_STRING = re.compile(r"(?:\w+:\w+,)+\w+:\w+|cuda:nccl")
#: Calls that keep a value under a name: flags, namespaces, fields.
_HOLDERS = PARSER_CALLS | ABSL_CALLS | OBJECTS | {"Option", "parametrize", "append", "extend", "setdefault"}
_PLAIN_READS = frozenset({ast.Name, ast.Attribute, ast.Subscript})
_READS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.NamedExpr)

__all__ = [
    "BACKEND", "BACKEND_WORD", "DEVICE", "DEVICE_WORD", "SELF", "Flow", "build_flow", "hint_of", "literals_of",
    "sources", "whole_value",
]


def build_flow(scan: Scan, names: Names, project: ProjectFacts, *, alone: bool = True) -> Flow:
    """The flow of one file. `alone`: without its project the file alone says which attributes are one."""
    flow = Flow(scan, names, project, module_name(scan.path))
    for scope in scan.scopes.values():
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                if binding.kind == "assign":
                    _assignment(flow, binding.node, scope, name)
    for store in scan.stores:
        _store_attribute(flow, store)
    for call in scan.calls:
        _call(flow, call)
    for statement in scan.returns:
        _return(flow, statement)
    for compare in scan.compares:
        _compare(flow, compare)
    for function in scan.functions:
        if function.args.defaults or function.args.kw_defaults:
            _defaults(flow, function)
    for node in scan.classes:
        _fields(flow, node)
    for literal, _ in literals_of(scan):
        _literal(flow, literal)
    if alone and not project.known:
        slots = [*flow.roots, *flow.members, *flow.marks, *flow.held]
        for a, b in unify_attributes(slots, bases_of(flow)):
            flow.link(a, b)
    flow.complete = True
    return flow


def literals_of(scan: Scan) -> Iterator[tuple[ast.expr, str]]:
    """The string expressions that spell a device or a backend, with their text, in no particular order."""
    for node in scan.strings:
        above = parent(node)
        if isinstance(above, ast.JoinedStr):
            value = whole_value(above)
            if DEVICE_STRING.fullmatch(value):
                yield above, value
        elif len(node.value) < 60:  # type: ignore[arg-type]
            value = node.value  # type: ignore[assignment]
            if DEVICE_STRING.fullmatch(value) or value in BACKEND_STRINGS or BACKENDS_STRING.fullmatch(value):
                yield node, value


def whole_value(node: ast.expr) -> str:
    """The text of a string expression; the fields of an f-string count as `{}`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _literal(flow: Flow, node: ast.expr) -> None:
    """Tie together the slots that one string reaches; a certain place marks them."""
    first: str | None = None
    certain: set[str] = set()
    for place in places(flow, node):
        slot: str | None = None
        if place.kind == "slot":
            slot = place.detail
        elif place.kind == "compare" and place.other is not None:
            slot = flow.slot(place.other)
            certain |= {mark for mark in (DEVICE, BACKEND) if certain_kind(flow, place.other, mark)}
        elif place.kind in (DEVICE, BACKEND):
            certain.add(place.kind)
        elif place.kind == "named":
            certain |= hint_of(f".{place.detail}")
        if slot is not None:
            flow.held.add(slot)
            if first is not None:
                flow.link(first, slot)
            first = first or slot
    if first is not None:
        for mark in certain:
            flow.mark(first, mark)


def _assignment(flow: Flow, node: ast.AST, scope: Scope, name: str) -> None:
    above = parent(node)
    value: ast.expr | None = None
    if isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        value = above.value
    elif isinstance(above, (ast.For, ast.comprehension)) and above.target is node:
        value = above.iter
        if isinstance(value, ast.Call):
            value = _iterated(value)
    elif isinstance(above, (ast.Tuple, ast.List)):
        _destructured(flow, node, above)
        return
    if value is None or isinstance(value, ast.Constant):
        return
    _link_value(flow, node, value)


def _iterated(call: ast.Call) -> ast.expr:
    """What a loop over `list(x)`, `sorted(x)`, ... runs through."""
    func = call.func
    if isinstance(func, ast.Name) and func.id in ("list", "tuple", "set", "sorted", "reversed", "iter") and call.args:
        return call.args[0]
    return call


def _destructured(flow: Flow, node: ast.AST, target: ast.Tuple | ast.List) -> None:
    """`a, b = value`: element by element, where both sides show which is which."""
    above = parent(target)
    index = next((i for i, element in enumerate(target.elts) if element is node), None)
    if index is None or any(isinstance(element, ast.Starred) for element in target.elts[:index]):
        return
    value: ast.expr | None = None
    if isinstance(above, ast.Assign):
        value = above.value
        if isinstance(value, (ast.Tuple, ast.List)):
            if len(value.elts) == len(target.elts):
                _link_value(flow, node, value.elts[index])
            return
        if isinstance(value, ast.Call) and (read := flow.slot(value)) is not None and read.startswith("r:"):
            _link_store(flow, node, f"{read}<{index}>")
        return
    if isinstance(above, (ast.For, ast.comprehension)) and above.target is target:
        value = above.iter
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("zip", "product"):
            if index < len(value.args):
                _link_value(flow, node, value.args[index])
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "enumerate":
            if index == 1 and value.args:
                _link_value(flow, node, value.args[0])
        elif isinstance(value, (ast.Name, ast.Attribute)) and (read := flow.slot(value)) is not None:
            _link_store(flow, node, f"{read}<{index}>")


def _link_value(flow: Flow, target: ast.AST, value: ast.expr) -> None:
    """Link what is assigned to with what the value is made of; the parts of displays land under their keys."""
    if type(value) in _PLAIN_READS:
        read = flow.slot(value)
        if read is not None and isinstance(target, ast.expr):
            for slot in store_slots(flow, target, ()):
                flow.link(slot, read)
        return
    stack: list[tuple[ast.expr, tuple[int | str | None, ...]]] = [(value, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, ast.Constant):
            continue
        if isinstance(node, ast.Dict):
            for key, item in zip(node.keys, node.values, strict=True):
                if not isinstance(item, ast.Constant):
                    stack.append((item, (_key(key), *path)))
            continue
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            whole = isinstance(node, ast.Tuple)
            stack += [(item, (i if whole else None, *path)) for i, item in enumerate(node.elts)]
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            stack += [(keyword.value, (keyword.arg, *path)) for keyword in node.keywords]
        slots: list[str] | None = None
        for source in sources(node):
            if isinstance(source, _READS) and (read := flow.slot(source)) is not None:
                if slots is None:
                    slots = store_slots(flow, target, path) if isinstance(target, ast.expr) else []
                for slot in slots:
                    flow.link(slot, read)


def _key(key: ast.expr | None) -> str | None:
    name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None if name is None or DEVICE_NAME.fullmatch(name) else name


def _link_store(flow: Flow, target: ast.AST, read: str) -> None:
    slot = _slot_of_store(flow, target)
    if slot is not None:
        flow.link(slot, read)


def _slot_of_store(flow: Flow, node: ast.AST) -> str | None:
    if isinstance(node, ast.expr):
        stores = store_slots(flow, node, ())
        return stores[0] if stores else None
    return None


def _store_attribute(flow: Flow, node: ast.Attribute) -> None:
    above = parent(node)
    if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is not None:
        _link_value(flow, node, above.value)
    elif isinstance(above, (ast.Tuple, ast.List)):
        _destructured(flow, node, above)


def _call(flow: Flow, call: ast.Call) -> None:
    func = call.func
    method = isinstance(func, ast.Attribute)
    last: str = func.attr if method else func.id if isinstance(func, ast.Name) else ""  # type: ignore[attr-defined]
    if call.args:
        positions = DEVICE_METHODS.get(last, ()) if method else ()
        if positions:
            _mark_argument(flow, call.args, positions, DEVICE)
            return
        if last in _POSITION_NAMES:
            full = flow.names.qualified(func) or ""
            _mark_argument(flow, call.args, TORCH_POSITIONS.get(full, ()), DEVICE)
            _mark_argument(flow, call.args, BACKEND_POSITIONS.get(full, ()), BACKEND)
    for keyword in call.keywords:
        if keyword.arg in DEVICE_KEYWORDS:
            _mark_value(flow, keyword.value, DEVICE)
        elif keyword.arg == "backend" and last in ("init_process_group", "new_group"):
            _mark_value(flow, keyword.value, BACKEND)
        elif keyword.arg == "type" and last == "device":
            _mark_value(flow, keyword.value, DEVICE)
    _link_arguments(flow, call)


def _link_arguments(flow: Flow, call: ast.Call) -> None:
    """Arguments of the project's own functions share the slots of the parameters they land in."""
    passed = [(i, None, arg) for i, arg in enumerate(call.args) if not isinstance(arg, (ast.Constant, ast.Starred))]
    named = [(-1, k.arg, k.value) for k in call.keywords if k.arg is not None and not isinstance(k.value, ast.Constant)]
    if not passed and not named:
        return
    func = call.func
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if last in _HOLDERS:
        for _, _, value in [*passed, *named]:
            _link_reached(flow, value)
        return
    target = flow.function_key(func)
    if target is None:
        return
    for index, keyword, value in [*passed, *named]:
        parameter: str | None = None
        for source in sources(value):
            if isinstance(source, _READS) and (read := flow.slot(source)) is not None:
                parameter = parameter or flow.parameter_slot(target, keyword, index)
                flow.link(parameter, read)


def _link_reached(flow: Flow, value: ast.expr) -> None:
    """A value shares the slots that it reaches."""
    for source in sources(value):
        if isinstance(source, _READS) and (read := flow.slot(source)) is not None:
            for place in places(flow, source):
                if place.kind == "slot":
                    flow.link(place.detail, read)


def _defaults(flow: Flow, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for default in (*function.args.defaults, *function.args.kw_defaults):
        if default is not None and not isinstance(default, ast.Constant):
            _link_reached(flow, default)


def _mark_argument(flow: Flow, args: list[ast.expr], positions: tuple[int, ...], mark: str) -> None:
    for index in positions:
        if index < len(args) and not any(isinstance(arg, ast.Starred) for arg in args[: index + 1]):
            _mark_value(flow, args[index], mark)


def _mark_value(flow: Flow, value: ast.expr, mark: str) -> None:
    for source in sources(value):
        if isinstance(source, _READS) and (slot := flow.slot(source)) is not None:
            flow.mark(slot, mark)


def _return(flow: Flow, statement: ast.Return) -> None:
    value = statement.value
    if value is None or isinstance(value, ast.Constant):
        return
    scope = flow.scan.scope_of(statement)
    if scope.kind != "function":
        return
    key = ""
    elements = enumerate(value.elts) if isinstance(value, ast.Tuple) else [(-1, value)]
    for index, element in elements:
        for source in sources(element):
            if isinstance(source, _READS) and (slot := flow.slot(source)) is not None:
                key = key or f"r:{flow.module}.{flow.scope_path(scope)}"
                flow.link(f"{key}<{index}>" if index >= 0 else key, slot)


def _compare(flow: Flow, compare: ast.Compare) -> None:
    """`a == b` between two slots makes them hold the same kind of thing."""
    if len(compare.comparators) != 1 or not isinstance(compare.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return
    left, right = compare.left, compare.comparators[0]
    if isinstance(left, ast.Constant) or isinstance(right, (ast.Constant, ast.Tuple, ast.List, ast.Set)):
        return
    a, b = flow.slot(left), flow.slot(right)
    if a is not None and b is not None:
        flow.link(a, b)
    for here, other in ((a, right), (b, left)):
        if here is not None and certain_kind(flow, other, DEVICE):
            flow.mark(here, DEVICE)


def _fields(flow: Flow, node: ast.ClassDef) -> None:
    """Annotated fields of a class without `__init__` are the parameters of its constructor."""
    key = ""
    for name in class_fields(node) or ():
        if name.islower() or "_" in name:
            key = key or f"{flow.module}.{flow.scope_path(flow.scan.scopes[node])}"
            flow.link(f"p:{key}.__init__.{name}", f"s:{key}.{name}")


def bases_of(flow: Flow) -> list[tuple[str, str]]:
    """(class, base) of the classes of this file whose bases may be the project's own."""
    found = []
    for node in flow.scan.classes:
        for base in node.bases:
            if isinstance(base, (ast.Name, ast.Attribute)) and (known := flow.function_key(base)) is not None:
                found.append((f"{flow.module}.{flow.scope_path(flow.scan.scopes[node])}", known))
    return found


def export(flow: Flow) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
    """Groups of slots that other files see, linked here or holding a CUDA string here, and their marks; both sorted."""
    groups: list[tuple[str, ...]] = []
    marks: list[tuple[str, str]] = []
    held = {flow.find(slot) for slot in flow.held}
    for root in {flow.find(slot) for slot in [*flow.roots, *flow.marks]} | held:
        members = flow.members.get(root, [root])
        shared = sorted({member for member in members if member[0] in "gprsnk" and not member.startswith("k:[")})
        if not shared or (len(shared) == 1 and root not in held and root not in flow.marks):
            continue
        found = flow.marks_of(root)
        if len(shared) > 1 or root in held:
            groups.append(tuple(shared))
        if found and (len(shared) > 1 or found - hint_of(shared[0])):
            marks += [(shared[0], mark) for mark in sorted(found)]
    return tuple(sorted(groups)), tuple(sorted(marks))
