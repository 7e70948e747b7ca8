"""Whether the mixed precision of an output holds: what it names is made before, and every scaled loss gets its step.

`unsound` reads the output alone, and knows nothing of how it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from transplt.base.text.source import UnreadableSource
from transplt.fixers.amp.unbound import unbound_amp
from transplt.program.loops import lifted
from transplt.program.program import enclosing_function
from transplt.syntax.files import File
from transplt.syntax.nodes import begins, block_of, by_place, ends, inner_nodes
from transplt.syntax.scan import FUNCTIONS, chain, statement

_METHODS = ("scale", "unscale_", "step", "update")


@dataclass(slots=True)
class _Scaler:
    """One scaler by its spelling: where it is made, and the calls of its methods, by place."""

    made: list[ast.stmt] = field(default_factory=list)
    calls: list[tuple[str, ast.Call]] = field(default_factory=list)


def unsound(path: str, data: bytes, unbound: Collection[str] = ()) -> str:
    """Why the mixed precision of an output does not hold, empty when it does. `unbound` are the names that its source
    reads without a value.
    """
    try:
        file = File.of(path, data)
    except UnreadableSource:
        return ""
    for text, scaler in sorted(_scalers(file).items()):
        missing = [name for name in ("scale", "step", "update") if name not in dict(scaler.calls)]
        unpaired = f"{text} is created and has no {missing[0]}()" if missing else ""
        why = unpaired or _unbound(file, text, scaler) or _twice(text, scaler)
        if why:
            return why
    return _amp(file, unbound)


def _scalers(file: File) -> dict[str, _Scaler]:
    found: dict[str, _Scaler] = {}
    for call in by_place(file.scan.calls):
        stored = statement(call)
        made = (file.names.qualified(call.func) or "").endswith((".GradScaler", ".grad_scaler"))
        if made and isinstance(stored, ast.Assign) and stored.value is call:
            found.setdefault(ast.unparse(stored.targets[0]), _Scaler()).made.append(stored)
    for call in by_place(file.scan.calls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _METHODS and ast.unparse(func.value) in found:
            found[ast.unparse(func.value)].calls.append((func.attr, call))
    return found


def _unbound(file: File, text: str, scaler: _Scaler) -> str:
    """A place that a scaler may be used at before it is made; attributes are those of the same object."""
    if not text.isidentifier():
        return ""
    for _, call in scaler.calls:
        function = enclosing_function(call)
        if function is not None and any(arg.arg == text for arg in inner_nodes(function.args, ast.arg)):
            continue
        local = [made for made in scaler.made if enclosing_function(made) is function]
        if local:
            if not any(begins(made) < begins(call) and lifted(call, block_of(made)) is not None for made in local):
                return f"line {call.lineno}: {text} may not exist yet"
            continue
        holders = [None, *(at for at in chain(call) if isinstance(at, FUNCTIONS))]
        outer = [made for made in scaler.made if enclosing_function(made) in holders]
        if not outer:
            return f"line {call.lineno}: {text} is created in another function"
        if all(_reached_before(file, made, function) for made in outer):
            return f"line {call.lineno}: {text} may not exist yet where {getattr(function, 'name', '')} is called"
    return ""


def _reached_before(file: File, made: ast.stmt, function: ast.AST | None) -> bool:
    """True when code above a statement, in its own scope, names a function that leads to `function`."""
    names = {getattr(function, "name", "")}
    grown = True
    while grown:
        grown = False
        for other in file.scan.functions:
            if other.name not in names and any(_name(at) in names for at in ast.walk(other)):
                names.add(other.name)
                grown = True
    scope = enclosing_function(made)
    body = file.scan.tree.body if scope is None else scope.body
    return any(_name(at) in names and begins(at) < begins(made) for item in body for at in _outside_functions(item))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
        return
    yield node
    for below in ast.iter_child_nodes(node):
        yield from _outside_functions(below)


def _twice(text: str, scaler: _Scaler) -> str:
    """Gradients that are unscaled twice, or after their step, with no update between: GradScaler raises then."""
    for index, (name, call) in enumerate(scaler.calls):
        if name not in ("unscale_", "step") or not call.args:
            continue
        given = ast.unparse(call.args[0])
        for after, other in scaler.calls[index + 1 :]:
            if enclosing_function(other) is not enclosing_function(call):
                continue
            if after == "update" and lifted(call, block_of(statement(other))) is not None:
                break
            again = after == name or (after, name) == ("unscale_", "step")
            same = bool(other.args) and ast.unparse(other.args[0]) == given
            if again and same and lifted(other, block_of(statement(call))) is not None:
                return f"line {other.lineno}: {text}.{after}({given}) comes twice before {text}.update()"
    return ""


def _amp(file: File, unbound: Collection[str]) -> str:
    """amp of apex is imported above its uses, and amp.initialize has run in front of scaled losses of its block."""
    for node in unbound_amp(file):
        name = ast.unparse(node.value)
        if name not in unbound:
            return f"line {node.lineno}: {name} is not imported"
    made = [statement(node) for node in file.scan.attributes.get("initialize", ()) if _is_amp(node)]
    for node in file.scan.attributes.get("scale_loss", ()):
        here = [item for item in made if enclosing_function(item) is enclosing_function(node)]
        if _is_amp(node) and here and not any(ends(item) <= begins(node) for item in here):
            return f"line {node.lineno}: the loss is scaled before amp.initialize has run"
    return ""


def _is_amp(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id.endswith("amp")
