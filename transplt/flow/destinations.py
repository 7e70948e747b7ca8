"""The places that the value of an expression reaches, as far as its own file shows them: from a value up.

Each step is a function of the slots of the file, the node above, the node whose value it is and the containers around
that value; it yields places, and `Up` where the value goes on as that of the node above.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.flow.arguments import reached_by_argument
from transplt.flow.callees import FOREIGN
from transplt.flow.marks import DEVICE, DEVICE_NAME, names_a_mark
from transplt.flow.other_devices import handed_to
from transplt.flow.reached_place import Path, Reached, ReachedPlace, Up
from transplt.flow.slot_stores import inside, is_map_location, store_slots, stored
from transplt.flow.slots import Slots
from transplt.syntax.nodes import index_in, last_name, last_starred_at, starred_at, string_of
from transplt.syntax.scan import outermost, parent

#: Methods of strings whose answer is still the device that the string was.
_STRING_METHODS = frozenset({"format", "lower", "upper", "strip", "rstrip", "lstrip", "encode", "casefold"})


def places(slots: Slots, node: ast.expr) -> list[ReachedPlace]:
    """All places that the value of an expression reaches directly: not through a slot to those who read that."""
    known = slots.places.get(id(node))
    if known is None:
        known = slots.places[id(node)] = _places(slots, node)
    return known


def _places(slots: Slots, node: ast.expr) -> list[ReachedPlace]:
    if isinstance(node, (ast.Constant, ast.JoinedStr)) and (library := handed_to(slots, node)):
        return [ReachedPlace("foreign" if library in FOREIGN else "simulator", library)]
    found: list[ReachedPlace] = []
    stack = [Up(node, ())]
    while stack:
        current, path = stack.pop()
        current = outermost(current, _carries, "_carried")
        above = parent(current)
        step = _STEPS.get(type(above))
        if step is None:
            found.append(ReachedPlace("other", type(above).__name__.lower()))
            continue
        for way in step(slots, above, current, path):
            if isinstance(way, Up):
                stack.append(way)
            else:
                found.append(way)
    return found


def _carries(above: ast.AST, node: ast.AST) -> bool:
    """True where the value of a sum, or of a conditional expression, may be that of a node in it."""
    if isinstance(above, ast.BinOp):
        return isinstance(above.op, (ast.Add, ast.Mod, ast.BitOr))
    return isinstance(above, ast.IfExp) and node is not above.test


def _up(slots: Slots, above: ast.AST, current: ast.AST, path: Path) -> Reached:
    yield Up(above, path)


def _operator(slots: Slots, above: ast.BinOp, current: ast.AST, path: Path) -> Reached:
    if isinstance(above.op, (ast.Add, ast.Mod, ast.BitOr)):
        yield Up(above, path)
    elif isinstance(above.op, ast.Div):
        yield ReachedPlace("path")  # no other `/` takes a string
    else:
        yield ReachedPlace("other", "operand")


def _sequence(slots: Slots, above: ast.expr, current: ast.AST, path: Path) -> Reached:
    yield Up(above, (*path, _index(above, current) if isinstance(above, ast.Tuple) else None))


def _index(above: ast.Tuple, current: ast.AST) -> int | None:
    """The place in a tuple; behind a `*some` that is assigned it counts from the end, elsewhere it is not known."""
    index = index_in(above, "elts", current)
    if starred_at(above) >= index:
        return index
    assigned = isinstance(parent(above), ast.Assign) and last_starred_at(above) < index
    return index - len(above.elts) if assigned else None


def _dict(slots: Slots, above: ast.Dict, current: ast.AST, path: Path) -> Reached:
    if index_in(above, "keys", current) >= 0:
        yield ReachedPlace("row", other=above)
        return
    name = string_of(above.keys[index_in(above, "values", current)])
    if is_map_location(above):
        yield ReachedPlace(DEVICE)
    elif name and names_a_mark(name):
        yield ReachedPlace("named", name)
    else:
        by_device = name is not None and DEVICE_NAME.fullmatch(name)
        yield Up(above, (*path, None if by_device else name))


def _attribute(slots: Slots, above: ast.Attribute, current: ast.AST, path: Path) -> Reached:
    call = parent(above)
    if isinstance(call, ast.Call) and call.func is above and above.attr in _STRING_METHODS:
        yield Up(call, path)
    else:
        yield ReachedPlace("other", f".{above.attr}")


def _annotated(slots: Slots, above: ast.AnnAssign | ast.AugAssign, current: ast.AST, path: Path) -> Reached:
    if isinstance(above, ast.AnnAssign) and current is above.annotation:
        annotated = store_slots(slots, above.target, path)
        yield _in_annotation(current, annotated[0] if annotated else None)
    else:
        yield from stored(slots, above.target, path)


def _in_annotation(annotation: ast.AST, slot: str | None) -> ReachedPlace:
    """A word in `Literal[...]` is a value of what it annotates; any other string in an annotation is code."""
    literal = any(last_name(node) == "Literal" for node in ast.walk(annotation))
    return ReachedPlace("slot", slot) if literal and slot else ReachedPlace("annotation")


def _default(slots: Slots, above: ast.arguments, current: ast.AST, path: Path) -> Reached:
    """The default of a parameter."""
    index = index_in(above, "defaults", current)
    if index < 0:
        arg = above.kwonlyargs[index_in(above, "kw_defaults", current)]
    else:
        behind = len(above.defaults) - index  # defaults belong to the last of the parameters
        at = len(above.args) - behind
        arg = above.args[at] if at >= 0 else above.posonlyargs[at]
    name = arg.arg
    scope = slots.scan.scopes[parent(above)]
    yield ReachedPlace("slot", inside(slots.variable(name, scope) or f"p:{name}", path))


def _return(slots: Slots, above: ast.AST, current: ast.AST, path: Path) -> Reached:
    scope = slots.scan.scope_of(above)
    while scope.kind not in ("function", "lambda", "module") and scope.parent is not None:
        scope = scope.parent
    slot = slots.returned(scope)
    if path and isinstance(path[-1], int):
        slot, path = f"{slot}<{path[-1]}>", path[:-1]
    yield ReachedPlace("slot", inside(slot, path))


def _lambda(slots: Slots, above: ast.Lambda, current: ast.AST, path: Path) -> Reached:
    holder = parent(above)
    if isinstance(holder, ast.keyword) and holder.arg in ("default_factory", "factory"):
        yield Up(above, path)
    else:
        yield ReachedPlace("other", "lambda")


def _function(slots: Slots, above: ast.FunctionDef | ast.AsyncFunctionDef, current: ast.AST, path: Path) -> Reached:
    if current is above.returns:
        yield _in_annotation(current, inside(slots.returned(slots.scan.scopes[above]), path))
    else:
        yield ReachedPlace("other", "decorator")


def _comparison(slots: Slots, above: ast.Compare, current: ast.AST, path: Path) -> Reached:
    membership = isinstance(above.ops[0], (ast.In, ast.NotIn))
    if membership and not path and current is above.left and _is_key_of(slots, current, above.comparators[0]):
        yield ReachedPlace("key", other=above.comparators[0])
        return
    for other in _operands(above):
        if other is current:
            continue
        if isinstance(other, (ast.Tuple, ast.List)) and path and isinstance(path[-1], int) and not membership:
            if path[-1] < len(other.elts):
                yield ReachedPlace("compare", "", other.elts[path[-1]])
        elif isinstance(other, ast.Tuple) and path and membership:
            for index, element in enumerate(other.elts):
                if index == path[0] or len(path) == 1:
                    yield ReachedPlace("compare", "in", element)
        else:
            yield ReachedPlace("compare", "in" if path else "", other)


def _operands(comparison: ast.Compare) -> list[ast.expr]:
    """The operands of a comparison; of equal constants two, of which each of 8,000 operands has another one."""
    if len(comparison.comparators) < 3:
        return [comparison.left, *comparison.comparators]
    known: list[ast.expr] | None = comparison.__dict__.get("_operands")
    if known is None:
        seen: dict[tuple[object, object], int] = {}
        known = comparison.__dict__["_operands"] = []
        for each in (comparison.left, *comparison.comparators):
            if isinstance(each, ast.Constant):
                key = type(each.value), each.value
                seen[key] = seen.get(key, 0) + 1
                if seen[key] > 2:
                    continue
            known.append(each)
    return known


def _is_key_of(slots: Slots, word: ast.AST, mapping: ast.expr) -> bool:
    """True for a word that the file takes as a key of the mapping: `state["cuda"]` beside `"cuda" in state`."""
    name = last_name(mapping)
    return bool(name) and any(
        last_name(each.value) == name and string_of(each.slice) == string_of(word) for each in slots.scan.subscripts
    )


def _iterator(slots: Slots, above: ast.For | ast.AsyncFor | ast.comprehension, current: ast.AST, path: Path) -> Reached:
    if current is above.iter:
        yield from stored(slots, above.target, path[:-1])
    else:
        yield ReachedPlace("other", "condition")


def _subscript(slots: Slots, above: ast.Subscript, current: ast.AST, path: Path) -> Reached:
    if current is not above.slice:
        yield Up(above, path[:-1])
    elif last_name(above.value) in ("Literal", "Optional", "Union", "Annotated"):
        yield Up(above, ())
    elif isinstance(current, ast.Subscript) and last_name(current.value) == "Literal":
        yield Up(above, (*path, None))
    else:
        yield ReachedPlace("key", other=above.value)


def _case(slots: Slots, above: ast.MatchValue, current: ast.AST, path: Path) -> Reached:
    """A value in a `case` pattern is compared with the subject, or with the part of it that the pattern takes."""
    node: ast.AST = above
    steps: list[int | str] = []
    while not isinstance(node, ast.Match):
        holder = parent(node)
        if isinstance(holder, ast.MatchSequence):
            steps.append(index_in(holder, "patterns", node))
        elif isinstance(holder, ast.MatchMapping):
            index = index_in(holder, "patterns", node)
            key = holder.keys[index] if index >= 0 else None
            if not isinstance(key, ast.Constant):
                yield ReachedPlace("key")
                return
            steps.append(str(key.value))
        elif isinstance(holder, ast.MatchClass):
            index = index_in(holder, "kwd_patterns", node)
            steps.append(holder.kwd_attrs[index] if index >= 0 else -1)
        node = holder
    subject: ast.expr = node.subject
    for step in reversed(steps):
        if isinstance(step, str):
            yield ReachedPlace("named", step)
            return
        if not isinstance(subject, ast.Tuple) or not 0 <= step < len(subject.elts):
            yield ReachedPlace("other", "pattern")
            return
        subject = subject.elts[step]
    yield ReachedPlace("compare", "case", subject)


def _prose(slots: Slots, above: ast.AST, current: ast.AST, path: Path) -> Reached:
    yield ReachedPlace("prose")


def _keyword(slots: Slots, above: ast.keyword, current: ast.AST, path: Path) -> Reached:
    call = parent(above)
    name = above.arg
    if name is None and path and isinstance(path[-1], str):
        name, path = path[-1], path[:-1]
    if isinstance(call, ast.Call):
        yield from reached_by_argument(slots, call, current, name, path)
    else:
        yield ReachedPlace("named", name or "")


#: By the kind of the node above; what is not here keeps the value to itself.
_STEPS: dict[type[ast.AST], Callable[..., Reached]] = {
    ast.IfExp: lambda _, above, current, path: [
        ReachedPlace("other", "condition") if current is above.test else Up(above, path)
    ],
    ast.BoolOp: _up,
    ast.JoinedStr: _up,
    ast.FormattedValue: _up,
    ast.Starred: _up,
    ast.Await: _up,
    ast.BinOp: _operator,
    ast.NamedExpr: lambda slots, above, _, path: [*stored(slots, above.target, path), Up(above, path)],
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.ListComp: _sequence,
    ast.SetComp: _sequence,
    ast.GeneratorExp: _sequence,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Call: lambda slots, above, current, path: reached_by_argument(slots, above, current, None, path),
    ast.keyword: _keyword,
    ast.Assign: lambda slots, above, _, path: [way for each in above.targets for way in stored(slots, each, path)],
    ast.AnnAssign: _annotated,
    ast.AugAssign: _annotated,
    ast.arguments: _default,
    ast.arg: lambda slots, above, current, _: [
        _in_annotation(current, slots.variable(above.arg, slots.scan.scope_of(above)))
    ],
    ast.Return: _return,
    ast.Yield: _return,
    ast.YieldFrom: _return,
    ast.Lambda: _lambda,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Compare: _comparison,
    ast.For: _iterator,
    ast.AsyncFor: _iterator,
    ast.comprehension: _iterator,
    ast.Subscript: _subscript,
    ast.Slice: lambda slots, above, current, path: [
        ReachedPlace("compare", "slice", each.value) for each in [parent(above)] if isinstance(each, ast.Subscript)
    ],
    ast.MatchValue: _case,
    ast.Raise: _prose,
    ast.Assert: _prose,
    ast.Expr: _prose,
}
