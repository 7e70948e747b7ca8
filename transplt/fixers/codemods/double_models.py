"""Models that compute in 64-bit floats, which an NPU refuses in the operators that models are made of.

Matrix products, convolutions and norms of CANN take float32, float16 and bfloat16 only (rules/support/card_limits.json
gives the place of each list); a cast to float64 of what lies on the card gives float32 instead, which no longer fits
inputs that came as float64.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.reductions import is_double, names_device
from transplt.flow.default_type import double_defaults
from transplt.flow.last_value import last_value
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import arguments_of, by_place, call_of, keyword_of, last_name, of_kind, string_of
from transplt.syntax.scan import parent, statement

fixer = Fixer(__name__, code="NPU136", rank=262, needs=(b"double", b"float64", b"Double"))

_MESSAGE = "this model computes in float64, which NPU matrix products, convolutions and norms do not support"
_DEFAULT = "tensors without a dtype become float64, which NPU matrix products, convolutions and norms do not support"
#: Options of a type, and the words for float64.
_OF_TYPES = re.compile(r"dtype|precision", re.I)
_DOUBLES = ("float64", "double", "fp64")
_HELP = "use float32 for the model and its inputs"
#: What a module has and a tensor has not. Optimizers have other names of these, and no `.to`.
_OF_MODULES = sorted(names_of(MODULE, "module_only"))


@fixer.on(ast.Module)
def models_of_float64(work: Work, tree: ast.Module) -> Finds:
    """Report modules that become float64 and lie on the card, and a default type that makes all of them so."""
    for name in ("double", "to"):
        for node in by_place(work.scan.attributes.get(name, ())):
            call = call_of(node)
            if call is None or (name == "double" and (call.args or call.keywords)):
                continue
            types = [each for each in (*call.args[:2], keyword_of(call, "dtype")) if each is not None]
            if name != "double" and not any(is_double(work, each) for each in types):
                continue
            made = _without_moves(node.value)
            if _is_module(work, made) and _on_card(work, call, made):
                yield work.note(
                    call, fixer.code, _MESSAGE, api="torch.nn.Module.double", help=_HELP, effort=Effort.MEDIUM
                )
    if b"cuda" in work.source.utf8 or b"npu" in work.source.utf8:
        for given in double_defaults(work.scan, work.names):
            yield work.note(given, fixer.code, _DEFAULT, api="torch.float64", help=_HELP, effort=Effort.MEDIUM)
        yield from _looked_up(work)


def _looked_up(work: Work) -> Finds:
    """A default type from a table, `torch.set_default_dtype(TYPES[args.dtype])`, where the project's option of a type
    is float64 when nobody gives it.
    """
    asked = (each for each in work.project.options.values() if _OF_TYPES.search(each.name) and each.default)
    words = next((each.words for each in asked if each.default[0] in _DOUBLES), "")
    for call in work.scan.calls_by_last_name({"set_default_dtype"}) if words else ():
        match call.args:
            case [ast.Subscript(value=ast.Name(id=table)) as given]:
                bound = [assigned_value(each.node) for each in work.scan.root.bindings.get(table, ())]
                values = [value for each in of_kind(ast.Dict, bound) for value in each.values]
                message = f"{_DEFAULT}: {words} makes it the default"
                if any(work.names.qualified(value) == "torch.float64" for value in values):
                    yield work.note(given, fixer.code, message, api="torch.float64", help=_HELP, effort=Effort.MEDIUM)


def _without_moves(node: ast.expr) -> ast.expr:
    """The model in `Net().cuda().train()`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names_of(MODULE, "returns_self")
    ):
        node = node.func.value
    return node


def _is_module(work: Work, made: ast.expr) -> bool:
    match made:
        case ast.Call():
            return _makes_module(work, made)
        case ast.Name() | ast.Attribute():
            value = last_value(work.scan, made) if isinstance(made, ast.Name) else None
            value = None if value is None else _without_moves(value)
            return _is_used_as_one(work, made) or (isinstance(value, ast.Call) and _makes_module(work, value))
    return False


def _makes_module(work: Work, call: ast.Call) -> bool:
    full = work.names.qualified(call.func) or ""
    if full.startswith("torch.nn.") and last_name(call.func)[:1].isupper() and full != "torch.nn.Parameter":
        return True
    name = getattr(call.func, "id", "")
    if any(
        node.name == name and any(last_name(base).endswith("Module") for base in node.bases)
        for node in of_kind(ast.ClassDef, work.scan.tree.body)
    ):
        return True
    stored = statement(call)
    if not isinstance(stored, ast.Assign) or _without_moves(stored.value) is not call:
        return False
    return any(_is_used_as_one(work, target) for target in stored.targets)


def _is_used_as_one(work: Work, name: ast.expr) -> bool:
    return any(
        call_of(node) is not None and same_variable(node.value, name)
        for method in _OF_MODULES
        for node in work.scan.attributes.get(method, ())
    )


def _on_card(work: Work, call: ast.Call, made: ast.expr) -> bool:
    """True for a model that this call, those around it or another statement of the file put on the card."""
    node: ast.AST = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if moves(work, node):
            return True
        node = node.func.value
    above = parent(call)
    while isinstance(above, ast.Attribute) and (outer := call_of(above)) is not None:
        if moves(work, outer):
            return True
        above = parent(outer)
    if isinstance(made, ast.Call):
        return False
    return any(
        (other := call_of(node)) is not None and same_variable(_without_moves(node.value), made) and moves(work, other)
        for name in sorted(names_of(MODULE, "to_card"))
        for node in work.scan.attributes.get(name, ())
    )


def moves(work: Work, call: ast.Call) -> bool:
    """True for a call that puts what it is called of on a card."""
    last = last_name(call.func)
    if last in ("cuda", "npu"):
        return True
    given = arguments_of(call)
    return last == "to" and any(names_device(work, each) and string_of(each) != "cpu" for each in given)


def same_variable(node: ast.expr, other: ast.expr) -> bool:
    """True for two spellings of one variable, read or set."""
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == ast.unparse(other)
