"""Which slots of a file share a value, and which are marked: what its statements and calls say.

Assignments, calls, returns and comparisons link slots; uses mark them (`x.to(s)` marks s as a device). A CUDA string
that reaches several slots links them too. Everything is flow-insensitive: a string becomes an NPU string together with
all that shares its slot, or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.flow.attributes import unify_attributes
from transplt.flow.callees import ABSL_CALLS, OBJECTS, PARSER_CALLS
from transplt.flow.destinations import places
from transplt.flow.device_arguments import marked_arguments
from transplt.flow.device_or_backend import holds_by_form
from transplt.flow.device_strings import strings_of
from transplt.flow.facts import ProjectFacts
from transplt.flow.marks import BACKEND, DEVICE, DEVICE_NAME, marks_by_name
from transplt.flow.own_names import OwnNames, class_fields
from transplt.flow.reached_place import Path
from transplt.flow.slot_stores import store_slots
from transplt.flow.slots import Slots
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.nodes import index_in, last_name, starred_at, string_of
from transplt.syntax.scan import Scan, parent

#: Calls that keep a value under a name: flags, namespaces, fields.
_HOLDERS = PARSER_CALLS | ABSL_CALLS | OBJECTS | {"Option", "parametrize", "append", "extend", "setdefault"}
_READS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.NamedExpr)


def linked_slots(scan: Scan, names: Names, project: ProjectFacts, *, alone: bool = True) -> Slots:
    """The slots of one file. `alone`: without its project the file alone says which attributes are one."""
    slots = unlinked_slots(scan, names, project)
    for scope in scan.scopes.values():
        for bindings in scope.bindings.values():
            for binding in bindings:
                if binding.kind == "assign" and isinstance(binding.node, ast.expr):
                    _store(slots, binding.node)
    for target in scan.stores:
        _store(slots, target)
    for call in scan.calls:
        _call(slots, call)
    for statement in scan.returns:
        _return(slots, statement)
    for compare in scan.compares:
        _compare(slots, compare)
    for function in scan.functions:
        for default in (*function.args.defaults, *function.args.kw_defaults):
            if default is not None and not isinstance(default, ast.Constant):
                _link_reached(slots, default)
    for node in scan.classes:
        _fields(slots, node)
    for literal in strings_of(scan):
        _literal(slots, literal)
    if alone and not project.known:
        every = [*slots.components.above, *slots.members, *slots.marks, *slots.held]
        for a, b in unify_attributes(every, slots.own.bases()):
            slots.link(a, b)
    slots.complete = True
    return slots


def unlinked_slots(scan: Scan, names: Names, project: ProjectFacts) -> Slots:
    """The slots of one file, each for itself."""
    return Slots(scan, names, project, OwnNames(scan, names, project, module_name(scan.path)))


def _literal(slots: Slots, node: ast.expr) -> None:
    """Tie together the slots that one string reaches; a certain place marks them."""
    first: str | None = None
    certain: set[str] = set()
    for place in places(slots, node):
        slot: str | None = None
        if place.kind == "slot":
            slot = place.detail
        elif place.kind == "compare" and place.other is not None:
            slot = slots.of(place.other)
            certain |= {mark for mark in (DEVICE, BACKEND) if holds_by_form(slots, place.other, mark)}
        elif place.kind in (DEVICE, BACKEND):
            certain.add(place.kind)
        elif place.kind == "named":
            certain |= marks_by_name(f".{place.detail}")
        if slot is not None:
            slots.held.add(slot)
            if first is not None:
                slots.link(first, slot)
            first = first or slot
    if first is not None:
        for mark in certain:
            slots.mark(first, mark)


def _store(slots: Slots, target: ast.expr) -> None:
    """A name or an attribute that is assigned to."""
    above = parent(target)
    if isinstance(above, (ast.Tuple, ast.List)):
        _destructured(slots, target, above)
    elif isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        if above.value is not None:
            _link_value(slots, target, above.value)
    elif isinstance(above, (ast.For, ast.comprehension)) and above.target is target and isinstance(target, ast.Name):
        match above.iter:
            case ast.Call(
                func=ast.Name(id="list" | "tuple" | "set" | "sorted" | "reversed" | "iter"), args=[inner, *_]
            ) | inner:
                _link_value(slots, target, inner)


def _destructured(slots: Slots, node: ast.expr, target: ast.Tuple | ast.List) -> None:
    """`a, b = value`: element by element, where both sides show which is which."""
    above = parent(target)
    index = index_in(target, "elts", node)
    if index > starred_at(target):
        return
    if isinstance(above, ast.Assign):
        match above.value:
            case ast.Tuple(elts=values) | ast.List(elts=values):
                if len(values) == len(target.elts):
                    _link_value(slots, node, values[index])
            case ast.Call() as call if (read := slots.of(call)) is not None and read.startswith("r:"):
                _link_store(slots, node, f"{read}<{index}>")
    elif isinstance(above, (ast.For, ast.comprehension)) and above.target is target:
        match above.iter:
            case ast.Call(func=ast.Name(id="zip" | "product"), args=args):
                if index < len(args):
                    _link_value(slots, node, args[index])
            case ast.Call(func=ast.Name(id="enumerate"), args=[over, *_]) if index == 1:
                _link_value(slots, node, over)
            case ast.Name() | ast.Attribute() as value if (read := slots.of(value)) is not None:
                _link_store(slots, node, f"{read}<{index}>")


def _link_value(slots: Slots, target: ast.expr, value: ast.expr) -> None:
    """Link what is assigned to with what the value is made of; the parts of displays land under their keys."""
    stack: list[tuple[ast.expr, Path]] = [(value, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, ast.Constant):
            continue
        if isinstance(node, ast.Dict):
            for key, item in zip(map(string_of, node.keys), node.values, strict=True):
                stack.append((item, (None if key is None or DEVICE_NAME.fullmatch(key) else key, *path)))
            continue
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            whole = isinstance(node, ast.Tuple)
            stack += [(item, (i if whole else None, *path)) for i, item in enumerate(node.elts)]
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            stack += [(keyword.value, (keyword.arg, *path)) for keyword in node.keywords]
        stores: list[str] | None = None
        for read, _ in slots_read(slots, node):
            if stores is None:
                stores = store_slots(slots, target, path)
            for slot in stores:
                slots.link(slot, read)


def _link_store(slots: Slots, target: ast.expr, read: str) -> None:
    for slot in store_slots(slots, target, ())[:1]:
        slots.link(slot, read)


def _call(slots: Slots, call: ast.Call) -> None:
    """Mark the devices and backends that a call is given; its other arguments share the slots they land in."""
    last = last_name(call.func)
    marked, closed = marked_arguments(slots.names, call, last)
    for value, mark in marked:
        for slot, _ in slots_read(slots, value):
            slots.mark(slot, mark)
    if not closed:
        _link_arguments(slots, call, last)


def _link_arguments(slots: Slots, call: ast.Call, last: str) -> None:
    """Arguments of the project's own functions share the slots of the parameters they land in."""
    target = None
    if last not in _HOLDERS:
        target = slots.own.definition(call.func) if call.args or call.keywords else None
        if target is None:
            return
    given: list[tuple[int, str | None, ast.expr]] = [
        (index, None, arg) for index, arg in enumerate(call.args) if not isinstance(arg, (ast.Constant, ast.Starred))
    ]
    for named in call.keywords:
        if named.arg is not None and not isinstance(named.value, ast.Constant):
            given.append((-1, named.arg, named.value))
    if target is None:
        for _, _, value in given:
            _link_reached(slots, value)
        return
    for index, keyword, value in given:
        parameter: str | None = None
        for read, _ in slots_read(slots, value):
            parameter = parameter or slots.parameter(target, keyword, index)
            slots.link(parameter, read)


def _link_reached(slots: Slots, value: ast.expr) -> None:
    """A value shares the slots that it reaches."""
    for read, source in slots_read(slots, value):
        for place in places(slots, source):
            if place.kind == "slot":
                slots.link(place.detail, read)


def _return(slots: Slots, statement: ast.Return) -> None:
    value = statement.value
    scope = slots.scan.scope_of(statement)
    if value is None or isinstance(value, ast.Constant) or scope.kind != "function":
        return
    returned = ""
    elements = enumerate(value.elts) if isinstance(value, ast.Tuple) else [(-1, value)]
    for index, element in elements:
        for read, _ in slots_read(slots, element):
            returned = returned or slots.returned(scope)
            slots.link(f"{returned}<{index}>" if index >= 0 else returned, read)


def _compare(slots: Slots, compare: ast.Compare) -> None:
    """`a == b` between two slots makes them hold the same kind of thing."""
    if len(compare.comparators) != 1 or not isinstance(compare.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return
    left, right = compare.left, compare.comparators[0]
    if isinstance(left, ast.Constant) or isinstance(right, (ast.Constant, ast.Tuple, ast.List, ast.Set)):
        return
    a, b = slots.of(left), slots.of(right)
    if a is not None and b is not None:
        slots.link(a, b)
    for here, other in ((a, right), (b, left)):
        if here is not None and holds_by_form(slots, other, DEVICE):
            slots.mark(here, DEVICE)


def _fields(slots: Slots, node: ast.ClassDef) -> None:
    """Annotated fields of a class without `__init__` are the parameters of its constructor."""
    key = ""
    for name in class_fields(node) or ():
        if name.islower() or "_" in name:
            key = key or slots.own.full_name(slots.scan.scopes[node])
            slots.link(f"p:{key}.__init__.{name}", f"s:{key}.{name}")


def slots_read(slots: Slots, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """The slots from which an expression may take its value, each with the expression that reads it."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) or (  # most are
        isinstance(value, ast.Call) and last_name(value.func) != "format"
    ):
        slot = slots.of(value)
        return [] if slot is None else [(slot, value)]
    return [
        (slot, source)
        for source in sources(value)
        if isinstance(source, _READS) and (slot := slots.of(source)) is not None
    ]


def sources(value: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose value an expression may take, or that a device string built by it begins with."""
    stack = [value]
    while stack:
        match node := stack.pop():
            case ast.Name() | ast.Attribute():  # most are
                yield node
            case ast.IfExp():
                stack += [node.body, node.orelse]
            case ast.BoolOp():
                stack += node.values
            case ast.Tuple() | ast.List() | ast.Set():
                stack += node.elts
            case ast.Starred():
                stack.append(node.value)
            case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_]) | ast.BinOp(left=first, op=ast.Add()):
                stack.append(first)
            case ast.BinOp(left=ast.Constant() as pattern, op=ast.Mod(), right=right):
                _formatted(pattern, right.elts if isinstance(right, ast.Tuple) else [right], stack)
            case ast.JoinedStr() | ast.BinOp():
                pass
            case ast.NamedExpr():
                stack.append(node.value)
                yield node
            case ast.Call(func=ast.Attribute(value=pattern, attr="format")):
                _formatted(pattern, node.args, stack)
                yield node
            case _:
                yield node


def _formatted(pattern: ast.expr, values: list[ast.expr], stack: list[ast.expr]) -> None:
    """The value that a formatted text begins with."""
    if isinstance(pattern, ast.Constant) and str(pattern.value).startswith(("%s", "{}", "{0}")) and values:
        stack.append(values[0])
