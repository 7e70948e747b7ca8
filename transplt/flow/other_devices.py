"""Devices that belong to another library: `device` of `WhisperModel(size, device=device)`, and of nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from transplt.flow.callees import FOREIGN, OTHER_DEVICES, PROSE_CALLS
from transplt.flow.libraries import is_library
from transplt.flow.only_shown import only_shown
from transplt.flow.slots import Slots
from transplt.syntax.modules import modules_of
from transplt.syntax.names import SELF
from transplt.syntax.nodes import last_name, parameter_of
from transplt.syntax.scan import FUNCTIONS, Scan, parent

_LIBRARIES = FOREIGN | OTHER_DEVICES
#: How compilers call what they compile for: `compile_model(graph, target=device)`.
_TARGET = "target"
#: Arguments that are no device, whatever the tuple held in which they came here: `args = (dtype, device)`.
_NO_DEVICE = ("dtype", "name", "shape")
#: The library whose call takes an argument, "" for any other call.
_Taker = Callable[[Slots, ast.Call, ast.AST], str]


class Taken(NamedTuple):
    """The library that is given a device, whether nothing else is, and where the variable is read that holds it."""

    library: str
    alone: bool
    reads: tuple[ast.expr, ...]


def libraries_of(scan: Scan) -> frozenset[str]:
    """The packages with devices of their own that a file imports."""
    return _LIBRARIES.intersection(name.partition(".")[0] for node in scan.imports for name in modules_of(node))


def handed_to(slots: Slots, value: ast.expr) -> str:
    """The library that alone is handed the variable in which a string lands, or with which it is compared; empty where
    anything else may have it. A file says so by itself, whatever its project is.
    """
    if slots.libraries is None:
        slots.libraries = libraries_of(slots.scan)
    if not slots.libraries:
        return ""
    node: ast.AST = value
    while isinstance(above := parent(node), (ast.IfExp, ast.BoolOp, ast.Dict)):
        if isinstance(above, ast.IfExp) and node is above.test:
            return ""
        node = above
    if isinstance(node, ast.Dict) and isinstance(above, (ast.Call, ast.keyword)):
        return next(iter(_takers(slots, node, _library)), "")
    found = {taker for use in _uses(slots, node) for taker in _takers(slots, use, _library)}
    return found.pop() if len(found) == 1 else ""


def target_of(slots: Slots, value: ast.expr) -> Taken | None:
    """The compiler that gets a variable as its target, where a collection with the string limits that, whoever else
    gets it: `assert device in ["cpu", "cuda"]`. So it is for the default of such a parameter, and of one that nobody
    else gets.
    """
    above = parent(value)
    if not isinstance(above, ast.arguments) and not _limits(above):
        return None
    uses = _uses(slots, value)
    reads = tuple(each for use in uses for each in _kept(slots, use))
    library = next((found for each in reads if (found := _taken_as_target(slots, each))), "")
    if not library:
        return None
    alone = {taker for use in uses for taker in _takers(slots, use, library_given)} == {library}
    limited = any(_limits(each) for use in uses for each in getattr(parent(use), "comparators", ()))
    return Taken(library, alone, reads) if alone or limited else None


def _limits(holder: ast.AST) -> bool:
    """True for a collection in which a value is looked for."""
    match holder, parent(holder):
        case ast.Tuple() | ast.List() | ast.Set(), ast.Compare(ops=[ast.In() | ast.NotIn(), *_]):
            return True
    return False


def library_given(slots: Slots, call: ast.Call, argument: ast.AST) -> str:
    """The library with devices of its own whose call is given an argument, empty for any other call. A package that is
    neither torch nor the project's own is one where the argument is a target.
    """
    name = getattr(argument, "arg", "")
    if (root := _library(slots, call, argument)) or name != _TARGET:
        return "" if name in _NO_DEVICE else root
    full = slots.names.qualified(call.func) or ""
    root, dot, _ = full.partition(".")
    own = not dot or root.startswith("torch") or is_library(full) or slots.own.project_name(full) is not None
    return "" if own else root


def takes_a_target(call: ast.Call) -> bool:
    """True for a call that is given a target by that name."""
    return any(keyword.arg == _TARGET for keyword in call.keywords)


def _library(slots: Slots, call: ast.Call, argument: ast.AST) -> str:
    root = (slots.names.qualified(call.func) or "").partition(".")[0]
    return root if root in _LIBRARIES else ""


def _uses(slots: Slots, node: ast.AST) -> list[ast.Name]:
    """Where the variable is read that a value is given to, or is compared with; a parameter by its default."""
    above = parent(node)
    if isinstance(above, ast.arguments):
        return _uses_of_parameter(slots, above, node)
    if isinstance(above, (ast.Tuple, ast.List, ast.Set)):
        node, above = above, parent(above)
    target: ast.AST | None = None
    match above:
        case ast.Compare(left=left, comparators=[right]):
            target = right if node is left else left
        case ast.Assign(targets=[stored]) | ast.AnnAssign(target=stored):
            target = stored
    if not isinstance(target, ast.Name) or target is node:
        return []
    return [use for use in slots.names.uses(target) if isinstance(use.ctx, ast.Load)]


def _uses_of_parameter(slots: Slots, arguments: ast.arguments, default: ast.AST) -> list[ast.Name]:
    """Where the parameter is read that has a default."""
    function = parent(arguments)
    if not isinstance(function, FUNCTIONS):
        return []
    found = slots.names.uses_in(slots.scan.scopes[function], parameter_of(arguments, default).arg)
    return [use for use in found if isinstance(use.ctx, ast.Load)]


def _kept(slots: Slots, use: ast.Name) -> Iterator[ast.expr]:
    """Where a variable is read, and the attribute of an object in which it is kept there."""
    yield use
    match parent(use):
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=kept), *_]) if owner in SELF:
            yield from (each for each in slots.scan.attributes.get(kept, ()) if isinstance(each.ctx, ast.Load))


def _taken_as_target(slots: Slots, use: ast.expr) -> str:
    """The library whose call takes a value, itself or in an f-string, as its target."""
    option = parent(use)
    while isinstance(option, (ast.JoinedStr, ast.FormattedValue)):
        option = parent(option)
    call = parent(option) if isinstance(option, ast.keyword) and option.arg == _TARGET else None
    return library_given(slots, call, option) if isinstance(call, ast.Call) else ""


def _takers(slots: Slots, use: ast.expr, taker: _Taker) -> set[str]:
    """The library whose call takes a value, "" for anything else, and nothing where it is only shown or tested."""
    node: ast.AST = use
    while isinstance(above := parent(node), (ast.keyword, ast.JoinedStr, ast.FormattedValue)):
        node = above
    if isinstance(above, ast.Compare) or (isinstance(above, (ast.If, ast.IfExp)) and node is above.test):
        return set()
    found = taker(slots, above, node) if isinstance(above, ast.Call) and node is not above.func else ""
    shown = isinstance(above, ast.Call) and last_name(above.func) in PROSE_CALLS
    return {found} if found or not (shown or only_shown(use)) else set()
