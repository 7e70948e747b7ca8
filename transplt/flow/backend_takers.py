"""Who takes a string that may name a backend of torch.distributed: another package may look it up among its own names.

`backend="nccl"` is torch's where the callee is known to hand it on (transplt/flow/device_arguments.py), and in what is
the project's own: its functions, its displays and defaults. vLLM takes names of a registry of its own; what a class or
a function of any other package makes of it, nobody knows.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from transplt.base.text.cuda_words import mentions_cuda
from transplt.flow.callees import FIELD_CALLS, FOREIGN, OBJECTS, OTHER_DEVICES, PARSER_CALLS
from transplt.flow.device_arguments import mark_of_argument
from transplt.flow.marks import BACKEND, BACKEND_WORD, owner
from transplt.flow.option_defaults import destination
from transplt.flow.reached_place import ReachedPlace, Taker
from transplt.flow.slots import Slots
from transplt.rules.communication_backends import own_names, own_names_below, without_own_names
from transplt.syntax.names import SELF
from transplt.syntax.nodes import index_in, last_name, parameter_of, string_of
from transplt.syntax.scan import ancestor, parent
from transplt.syntax.scopes import Binding

#: Calls that call their first argument with the keywords that they are given.
_CALLS_IT = frozenset({"partial", "partialmethod", "submit"})
#: Classes of packages that are mappings: what they are given is an entry, as in a dict.
_MAPPINGS = frozenset({"Dict", "Box", "CfgNode", "OrderedDict", "defaultdict"}) | OBJECTS
#: Calls whose result holds what they are given.
_HOLDS = frozenset({"dict", "dumps", "create", "copy", "deepcopy"}) | _MAPPINGS | FIELD_CALLS


def looked_up_by(node: ast.expr, text: str) -> str:
    """The library that looks a string up among names of its own, which are right on NPUs; empty where none is known."""
    if (names := own_names_below(_keys_around(node))) is not None:
        return names.library if names.kept else ""
    left, library = without_own_names(text)
    return "" if mentions_cuda(left.lower().encode()) else library


def taker_of(slots: Slots, node: ast.expr) -> Taker | None:
    """What of another package takes a string; None where it is torch's, the project's own, or reaches nobody's call."""
    value = _whole(node)
    found = _taker_of_argument(slots, value)
    above = parent(value)
    if found is not None or isinstance(above, (ast.Call, ast.keyword)):
        return found
    variable = _variable(value)
    if not (bindings := slots.names.bindings_of(variable)):
        return None
    key = id(bindings)
    if key not in slots.takers:
        slots.takers[key] = _taker_of_variable(slots, bindings)
    return slots.takers[key]


def owner_reached(slots: Slots, found: Iterable[ReachedPlace]) -> str:
    """The library that looks up among names of its own what reaches some places; empty where none is known."""
    reached = (slots.of(each.other) if each.other is not None else each.detail for each in found)
    return owner(mark for slot in reached if slot for mark in slots.marks_of(slot))


def _whole(node: ast.expr) -> ast.expr:
    """The conditional expression, or the `or`, whose value a node may be."""
    while isinstance(above := parent(node), (ast.IfExp, ast.BoolOp)) and node is not getattr(above, "test", None):
        node = above
    return node


def _taker_of_variable(slots: Slots, bindings: Sequence[Binding]) -> Taker | None:
    """What of another package a variable is given to; a parameter is what callers make of it."""
    first = next((each.node for each in bindings if isinstance(each.node, ast.Name)), None)
    if first is None or any(binding.kind != "assign" for binding in bindings):
        return None
    found = (_taker_of_argument(slots, _whole(use)) for use in slots.names.uses(first))
    return next(filter(None, found), None)


def _variable(value: ast.expr) -> ast.Name | None:
    """The variable that holds a value, or is compared with it."""
    above: ast.AST = parent(value)
    if isinstance(above, (ast.Tuple, ast.List, ast.Set)):
        value, above = above, parent(above)
    match above:
        case ast.Assign(targets=[ast.Name() as target, *_], value=given) if given is value:
            return target
        case ast.AnnAssign(target=ast.Name() as target, value=given) if given is value:
            return target
        case ast.NamedExpr(target=target, value=given) if given is value:
            return target
        case ast.For(target=ast.Name() as target, iter=over) | ast.AsyncFor(target=ast.Name() as target, iter=over):
            return target if over is value else None
        case ast.comprehension(target=ast.Name() as target, iter=over):
            return target if over is value else None
        case ast.Compare():
            return next((each for each in (above.left, *above.comparators) if isinstance(each, ast.Name)), None)
    return None


# --- keys below which a library has names of its own -----------------------------------------------------------------


def _keys_around(node: ast.expr) -> Iterator[str]:
    """The names of what holds a value: keys, arguments, options, and what it is stored in or compared with."""
    current: ast.AST = node
    while True:
        match above := parent(current):
            case ast.Dict():
                at = index_in(above, "values", current)
                yield (string_of(above.keys[at]) or "") if at >= 0 else ""
            case ast.keyword():
                yield above.arg or ""
            case ast.Call() if last_name(above.func) in PARSER_CALLS:
                yield destination(above)
                return
            case ast.Call():
                yield from _option_before(above.args, index_in(above, "args", current))
                if last_name(above.func) not in _HOLDS:
                    return
            case ast.List() | ast.Tuple():
                yield from _option_before(above.elts, index_in(above, "elts", current))
            case ast.arguments():
                yield parameter_of(above, current).arg
                return
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
                for target in above.targets if isinstance(above, ast.Assign) else [above.target]:
                    yield from _names_in(target)
                return
            case ast.Compare():
                for other in (above.left, *above.comparators[:1]):
                    yield from _names_in(other)
                return
            case ast.IfExp() | ast.BoolOp() | ast.Starred() | ast.Lambda():
                pass
            case _:
                return
        current = above


def _option_before(items: list[ast.expr], at: int) -> Iterator[str]:
    """The option of a command line of which a word is the value: `["--weight-transfer-config", text]`."""
    if at > 0 and (option := string_of(items[at - 1]) or "").startswith("--"):
        yield option


def _names_in(node: ast.expr) -> Iterator[str]:
    """The names in a chain of attributes, entries and calls of `get`."""
    while True:
        match node:
            case ast.Name():
                yield node.id
                return
            case ast.Attribute(value=inner):
                yield node.attr
            case ast.Subscript(value=inner):
                yield string_of(node.slice) or ""
            case ast.Call(func=ast.Attribute(value=inner)):
                yield (string_of(node.args[0]) or "") if node.args else ""
            case _:
                return
        node = inner


# --- calls -----------------------------------------------------------------------------------------------------------


def argument_of_a_package(slots: Slots, value: ast.expr) -> str:
    """The callee and the keyword (`f:callee.keyword`) that are given a value as a backend, as the file alone says it.

    The callee may turn out to be the project's own (transplt/flow/read_as.py); empty where it hands the value on.
    """
    call, argument = _argument(value)
    full = slots.names.qualified(_callee(call)) if call is not None else None
    if full is None or not isinstance(argument, str) or _taker_of_argument(slots, value) is None:
        return ""
    return f"f:{full}.{argument}"


def _taker_of_argument(slots: Slots, value: ast.expr) -> Taker | None:
    """The callee of another package of which a value is an argument, unless it hands a backend on."""
    call, argument = _argument(value)
    if call is None:
        return None
    callee = _callee(call)
    full = slots.names.qualified(callee) or ""
    if (names := own_names(full, argument)) is not None:
        return Taker(full, names)
    last = last_name(callee)
    if not isinstance(argument, str) or not BACKEND_WORD.search(argument):
        return None
    if last == "dict" or last in _MAPPINGS or last in PARSER_CALLS:
        return None
    if mark_of_argument(full, last, isinstance(callee, ast.Attribute), argument) == BACKEND:
        return None
    called = _of_another_package(slots, callee, full, argument)
    return Taker(called) if called else None


def _argument(value: ast.expr) -> tuple[ast.Call | None, int | str]:
    """The call that is given a value, and where: its position or keyword."""
    holder = parent(value)
    call = parent(holder) if isinstance(holder, ast.keyword) else holder
    if not isinstance(call, ast.Call) or value is call.func:
        return None, -1
    return call, (holder.arg or "") if isinstance(holder, ast.keyword) else index_in(call, "args", value)


def _callee(call: ast.Call) -> ast.expr:
    """What is called in the end: `f` of `partial(f, backend=x)`, `actor.f.remote(backend=x)`, `lazy(f)(backend=x)`."""
    func = call.func
    if call.args and last_name(func) in _CALLS_IT:
        return call.args[0]
    match func:
        case ast.Attribute(value=ast.Call(func=ast.Attribute(value=actor, attr="options")), attr="remote"):
            func = actor
        case ast.Attribute(value=actor, attr="remote"):
            func = actor
    while isinstance(func, ast.Call) and func.args:
        func = func.args[0]
    return func


def _of_another_package(slots: Slots, callee: ast.expr, full: str, keyword: str) -> str:
    """The name of a callee that is not known to be the project's own; empty for what is."""
    root = full.partition(".")[0]
    if root == "torch" or root in sys.stdlib_module_names:
        return ""
    if root in FOREIGN | OTHER_DEVICES:
        return ""  # of those the names of devices tell (transplt/flow/arguments.py)
    if full:
        return "" if _is_own(slots, full) else full
    if isinstance(callee, ast.Name):
        return _unresolved(slots, callee)
    if not isinstance(callee, ast.Attribute):
        return ""
    owner = callee.value
    if isinstance(owner, ast.Call) and last_name(owner.func) == "super":
        return _above(slots, callee)
    if isinstance(owner, ast.Name) and owner.id in SELF:
        return ""
    own = slots.own.definition(callee)
    if own is not None and _is_own(slots, own):
        return ""
    if _is_a_method(slots, callee.attr, keyword):
        return ""
    return ast.unparse(callee) if isinstance(owner, (ast.Name, ast.Attribute)) else callee.attr


def _is_a_method(slots: Slots, name: str, keyword: str) -> bool:
    """True where a function of the project has that name and takes the keyword: it may be the method of an object."""
    known = chain(slots.project.parameters.items(), slots.own.parameters().items())
    if any(keyword in taken and full.rpartition(".")[2] == name for full, taken in known):
        return True
    ending = f".{name}.{keyword}"  # what stands behind a star is no parameter by position
    if any(slot.startswith("p:") and slot.endswith(ending) for slot in chain(slots.project.slots, slots.project.marks)):
        return True
    return any(
        each.name == name and any(argument.arg == keyword for argument in each.args.kwonlyargs)
        for each in slots.scan.functions
    )


def _is_own(slots: Slots, full: str) -> bool:
    """True for a name of the project; of a file seen without it, for what lies in the file or below its package."""
    if slots.own.project_name(full) is not None:
        return True
    module = slots.own.module
    return not slots.project.known and "." in module and full.partition(".")[0] == module.partition(".")[0]


def _unresolved(slots: Slots, name: ast.Name) -> str:
    """A name that imports give different meanings, or that only a star of another package can give."""
    bound = slots.names.lookup(name.id, slots.scan.scope_of(name))
    sources = slots.scan.root.stars if bound is None else [each.target for each in bound[1] if each.kind == "import"]
    others = [source for source in sources if source.partition(".")[0] != "torch" and not _is_own(slots, source)]
    return name.id if others and len(others) == len(sources) else ""


def _above(slots: Slots, callee: ast.Attribute) -> str:
    """What `super().method` leads to, where no class above is the project's own."""
    inside = ancestor(callee, (ast.ClassDef, ast.Module), "_class")
    names = [slots.names.qualified(base) for base in inside.bases] if isinstance(inside, ast.ClassDef) else []
    if not names or any(name is None or _is_own(slots, name) or name.startswith("torch.") for name in names):
        return ""
    return f"{names[0]}.{callee.attr}"
