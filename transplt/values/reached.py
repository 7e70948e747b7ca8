"""Where the value of an expression ends up, as far as its own file shows it."""

from __future__ import annotations

import ast
from typing import cast

from transplt.project.name_hints import DEVICE_NAME
from transplt.syntax.scan import parent
from transplt.values.call_steps import argument, destination
from transplt.values.place import Path, Place, Stack, deep, hinted, is_map_location, store, store_slots
from transplt.values.slots import DEVICE, Flow
from transplt.values.torch_positions import FOREIGN, PARSER_CALLS, PROSE_CALLS, STRING_METHODS

__all__ = [
    "FOREIGN", "PARSER_CALLS", "PROSE_CALLS", "Place", "destination", "is_map_location", "places", "store_slots",
]


def places(flow: Flow, node: ast.expr) -> list[Place]:
    """All places that the value of an expression reaches directly."""
    known = flow.places.get(id(node))
    if known is None:
        known = flow.places[id(node)] = list(_places(flow, node))
    return cast("list[Place]", known)


def _places(flow: Flow, node: ast.expr) -> list[Place]:
    found: list[Place] = []
    stack: Stack = [(node, ())]
    while stack:
        current, path = stack.pop()
        above = parent(current)
        step = _STEPS.get(type(above))
        if step is not None:
            step(flow, above, current, path, found, stack)
        else:
            found.append(Place("other", type(above).__name__.lower()))
    return found


def _up(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    stack.append((above, path))


def _if_expression(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if current is above.test:  # type: ignore[attr-defined]
        found.append(Place("other", "condition"))
    else:
        stack.append((above, path))


def _operator(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if isinstance(above.op, (ast.Add, ast.Mod, ast.BitOr)):  # type: ignore[attr-defined]
        stack.append((above, path))
    else:
        found.append(Place("other", "operand"))


def _walrus(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    store(flow, above.target, path, found)  # type: ignore[attr-defined]
    stack.append((above, path))


def _sequence(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if isinstance(above, ast.Tuple):
        index = next((i for i, element in enumerate(above.elts) if element is current), 0)
        stack.append((above, (*path, index)))
    else:
        stack.append((above, (*path, None)))


def _dict(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    assert isinstance(above, ast.Dict)
    if any(key is current for key in above.keys):
        found.append(Place("row", other=above))
        return
    for key, value in zip(above.keys, above.values, strict=True):
        if value is current:
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
            if is_map_location(above):
                found.append(Place(DEVICE))
            elif name and hinted(name):
                found.append(Place("named", name))
            else:
                by_device = name is not None and DEVICE_NAME.fullmatch(name)
                stack.append((above, (*path, None if by_device else name)))


def _attribute(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    call = parent(above)
    name: str = above.attr  # type: ignore[attr-defined]
    if isinstance(call, ast.Call) and call.func is above:
        if name in STRING_METHODS:
            stack.append((call, path))
            return
        if name == "__contains__" or name in ("items", "values"):
            found.append(Place("other", f".{name}"))
            return
    found.append(Place("other", f".{name}"))


def _assign(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    for target in above.targets:  # type: ignore[attr-defined]
        store(flow, target, path, found)


def _annotated(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    target: ast.expr = above.target  # type: ignore[attr-defined]
    if current is getattr(above, "annotation", None):
        _annotation(flow, current, store_slots(flow, target, ()), found)
    else:
        store(flow, target, path, found)


def _annotation(flow: Flow, annotation: ast.AST, slots: list[str], found: list[Place]) -> None:
    """A word in `Literal[...]` is a value of what it annotates; any other string in an annotation is code."""
    literal = any(
        isinstance(node, (ast.Name, ast.Attribute)) and getattr(node, "id", getattr(node, "attr", "")) == "Literal"
        for node in ast.walk(annotation)
    )
    found.append(Place("slot", slots[0]) if literal and slots else Place("annotation"))


def _parameter(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    slot = flow.variable(above.arg, flow.scan.scope_of(above))  # type: ignore[attr-defined]
    _annotation(flow, current, [slot] if slot else [], found)


def _default(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    """The default of a parameter."""
    assert isinstance(above, ast.arguments)
    positional = [*above.posonlyargs, *above.args]
    name = ""
    for arg, value in zip(reversed(positional), reversed(above.defaults), strict=False):
        if value is current:
            name = arg.arg
    for arg, keyword_default in zip(above.kwonlyargs, above.kw_defaults, strict=True):
        if keyword_default is current:
            name = arg.arg
    scope = flow.scan.scopes[parent(above)]
    found.append(Place("slot", deep(flow.variable(name, scope) or f"p:{name}", path)))


def _return(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    scope = flow.scan.scope_of(above)
    while scope.kind not in ("function", "lambda", "module") and scope.parent is not None:
        scope = scope.parent
    key = f"r:{flow.module}.{flow.scope_path(scope)}"
    if path and isinstance(path[-1], int):
        key, path = f"{key}<{path[-1]}>", path[:-1]
    found.append(Place("slot", deep(key, path)))


def _lambda(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    holder = parent(above)
    if isinstance(holder, ast.keyword) and holder.arg in ("default_factory", "factory"):
        stack.append((above, path))
    else:
        found.append(Place("other", "lambda"))


def _function(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if current is getattr(above, "returns", None):
        scope = flow.scan.scopes[above]
        _annotation(flow, current, [f"r:{flow.module}.{flow.scope_path(scope)}"], found)
    else:
        found.append(Place("other", "decorator"))


def _comparison(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    assert isinstance(above, ast.Compare)
    sides = [above.left, *above.comparators]
    for other in sides:
        if other is current:
            continue
        if isinstance(other, (ast.Tuple, ast.List)) and path and isinstance(path[-1], int) and not isinstance(
            above.ops[0], (ast.In, ast.NotIn)
        ):
            if path[-1] < len(other.elts):
                found.append(Place("compare", "", other.elts[path[-1]]))
            continue
        if isinstance(other, ast.Tuple) and isinstance(above.ops[0], (ast.In, ast.NotIn)) and path:
            index = path[0]
            found += [Place("compare", "in", e) for i, e in enumerate(other.elts) if i == index or len(path) == 1]
            continue
        found.append(Place("compare", "in" if path else "", other))


def _iterator(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if current is above.iter:  # type: ignore[attr-defined]
        store(flow, above.target, path[:-1], found)  # type: ignore[attr-defined]
    else:
        found.append(Place("other", "condition"))


def _subscript(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    value: ast.expr = above.value  # type: ignore[attr-defined]
    if current is above.slice:  # type: ignore[attr-defined]
        if getattr(value, "id", getattr(value, "attr", "")) in ("Literal", "Optional", "Union", "Annotated"):
            stack.append((above, ()))
        else:
            found.append(Place("key", other=value))
    else:
        stack.append((above, path[:-1]))


def _slice(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    holder = parent(above)
    if isinstance(holder, ast.Subscript):
        found.append(Place("compare", "slice", holder.value))


def _case(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    """A value in a `case` pattern is compared with the subject, or with the part of it that the pattern takes."""
    node: ast.AST = above
    steps: list[int | str] = []
    while not isinstance(node, ast.Match):
        holder = parent(node)
        if isinstance(holder, ast.MatchSequence):
            steps.append(next(i for i, item in enumerate(holder.patterns) if item is node))
        elif isinstance(holder, ast.MatchMapping):
            index = next((i for i, item in enumerate(holder.patterns) if item is node), None)
            key = holder.keys[index] if index is not None else None
            if not isinstance(key, ast.Constant):
                found.append(Place("key"))
                return
            steps.append(str(key.value))
        elif isinstance(holder, ast.MatchClass):
            index = next((i for i, item in enumerate(holder.kwd_patterns) if item is node), None)
            steps.append(holder.kwd_attrs[index] if index is not None else -1)
        node = holder
    subject: ast.expr = node.subject
    for step in reversed(steps):
        if isinstance(step, str):
            found.append(Place("named", step))
            return
        if not isinstance(subject, ast.Tuple) or not 0 <= step < len(subject.elts):
            found.append(Place("other", "pattern"))
            return
        subject = subject.elts[step]
    found.append(Place("compare", "case", subject))


def _prose(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    found.append(Place("prose"))


def _positional(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    argument(flow, cast(ast.Call, above), current, None, path, found, stack)


def _keyword(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    call = parent(above)
    name: str | None = above.arg  # type: ignore[attr-defined]
    if name is None and path and isinstance(path[-1], str):
        name, path = path[-1], path[:-1]
    if isinstance(call, ast.Call):
        argument(flow, call, current, name, path, found, stack)
    else:
        found.append(Place("named", name or ""))


_STEPS = {
    ast.IfExp: _if_expression,
    ast.BoolOp: _up,
    ast.JoinedStr: _up,
    ast.FormattedValue: _up,
    ast.Starred: _up,
    ast.Await: _up,
    ast.BinOp: _operator,
    ast.NamedExpr: _walrus,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.ListComp: _sequence,
    ast.SetComp: _sequence,
    ast.GeneratorExp: _sequence,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Call: _positional,
    ast.keyword: _keyword,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _annotated,
    ast.arguments: _default,
    ast.arg: _parameter,
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
    ast.Slice: _slice,
    ast.MatchValue: _case,
    ast.Raise: _prose,
    ast.Assert: _prose,
    ast.Expr: _prose,
}
