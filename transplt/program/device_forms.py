"""In which form a device is given where it is chosen: as a text or a torch.device, as a number, or not at all."""

from __future__ import annotations

import ast
import re
from typing import Literal

from transplt.flow.option_defaults import destination
from transplt.flow.reaching_definitions import reaching
from transplt.program.call_conditions import defaults
from transplt.program.held_values import Item, Passed, Source
from transplt.program.program import File, ProgramValue, enclosing_function
from transplt.program.tensor_types import TensorTypes
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import begins, ends, hides_arguments, is_none, keyword_of, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent

Form = Literal["device", "number", "none", "unknown"]
Forms = frozenset[Form]

DEVICE: Forms = frozenset({"device"})
_NUMBER: Forms = frozenset({"number"})
_NONE: Forms = frozenset({"none"})
_UNKNOWN: Forms = frozenset({"unknown"})
_NO_FORM: Forms = frozenset()

#: Names by which programs count cards, for what cannot be followed: `rank`, `args.gpu`, `gpu_ids[0]`.
_COUNTS = re.compile(
    r"(?:^|_)(?:rank|gpus?|cards?|ids?|idx|index|num|ordinal|[ijkn])\d*$|gpus?_?(?:ids?|idx|index)$", re.I
)
#: `current_accelerator` gives None only where there is no card, and `.cuda(x)` had none to go to.
_GIVE_DEVICES = frozenset({"torch.device", "torch.get_default_device", "torch.accelerator.current_accelerator"})
_GIVE_NUMBERS = frozenset(
    "get_rank get_local_rank get_world_size get_device current_device current_device_index device_count int len".split()
)
#: Methods of texts that give a text.
_GIVE_TEXTS = frozenset("format lower strip replace join".split())
_NAMED: dict[str, Forms] = {"int": _NUMBER, "bool": _NUMBER, "str": DEVICE, "device": DEVICE}


class DeviceForms:
    """The forms of what the expressions of a program give."""

    def __init__(self, types: TensorTypes) -> None:
        self.types, self.held, self.program = types, types.held, types.program
        self._known: dict[int, Forms] = {}

    def of(self, file: File, node: ast.expr) -> Forms:
        """The forms that an expression may have; `unknown` among them where it cannot be followed."""
        key = id(node)
        if key not in self._known:
            self._known[key] = _NO_FORM  # what leads back to itself adds nothing
            found = self._of(file, node)
            if "unknown" in found and _COUNTS.search(_name_of(node)):
                found = found - _UNKNOWN | _NUMBER
            self._known[key] = found
        return self._known[key]

    def _of(self, file: File, node: ast.expr) -> Forms:
        match node:
            case ast.Constant(value=None):
                return _NONE
            case ast.Constant():
                return DEVICE if isinstance(node.value, str) else _NUMBER
            case ast.JoinedStr():
                return DEVICE
            case ast.IfExp():
                body, orelse = self.of(file, node.body), self.of(file, node.orelse)
                if _asks_for_none(node.test, node.orelse):
                    return body | (orelse - _NONE)
                return orelse | (body - _NONE if _asks_for_some(node.test, node.body) else body)
            case ast.BoolOp(op=ast.Or()):
                *first, last = (self.of(file, each) for each in node.values)
                return _NO_FORM.union(*first) - _NONE | last
            case ast.NamedExpr():
                return self.of(file, node.value)
            case ast.BinOp(op=ast.Add()):
                sides = self.of(file, node.left), self.of(file, node.right)
                return DEVICE if DEVICE in sides else _NUMBER if _NUMBER in sides else _UNKNOWN
            case ast.BinOp():
                return DEVICE if isinstance(node.op, ast.Mod) and self.of(file, node.left) == DEVICE else _NUMBER
            case ast.Call():
                return self._of_call(file, node)
            case ast.Name():
                return self._of_name(file, node)
            case ast.Attribute():
                return self._of_attribute(file, node)
            case ast.Subscript():
                return self._of_item(file, node.value)
        return _UNKNOWN

    def _joined(self, file: File, sources: list[Source]) -> Forms:
        return _NO_FORM.union(*(self._of_source(file, each) for each in sources))

    def _of_name(self, file: File, node: ast.Name) -> Forms:
        """What a variable holds; `if x is None: x = ...` takes None away from what it held before."""
        sources = self.held.sources(file, node)
        values = [each for each in sources if isinstance(each, ProgramValue)]
        instead = [each for each in values if _takes_the_place_of_none(each.node, node)]
        if not instead:
            return self._joined(file, sources)
        others: list[Source] = [each for each in sources if each not in instead]
        return self._joined(file, others) - _NONE | self._joined(file, [*instead])

    def _of_source(self, file: File, source: Source) -> Forms:
        if isinstance(source, ProgramValue) and source.index is None:
            return self.of(source.file, source.node)
        if isinstance(source, Item):
            return self._of_item(source.of.file, source.of.node)
        return self._of_parameter(file, source) if isinstance(source, Passed) else _UNKNOWN

    # --- parameters --------------------------------------------------------------------------------------------------

    def _of_parameter(self, file: File, source: Passed) -> Forms:
        """What the annotation of a parameter says, else what all calls give it."""
        function = parent(parent(source.argument))
        assert isinstance(function, FUNCTIONS)
        default = dict(defaults(function)).get(source.argument.arg)
        found = self._annotated(source.argument.annotation)
        if found and "unknown" not in found:
            return found | _NONE if default is not None and is_none(default) else found
        found = _NO_FORM.union(*(self.of(each.file, each.node) for each in source.values))
        return found if source.values and self._calls_are_seen(file, function) else found | _UNKNOWN

    def _annotated(self, node: ast.expr | None) -> Forms:
        match node:
            case None:
                return _NO_FORM
            case ast.Constant(value=None):
                return _NONE
            case ast.Constant(value=str()):
                try:
                    return self._annotated(ast.parse(str(node.value), mode="eval").body)
                except (SyntaxError, ValueError):
                    return _UNKNOWN
            case ast.BinOp(op=ast.BitOr()):
                return self._annotated(node.left) | self._annotated(node.right)
            case ast.Subscript() if last_name(node.value) in ("Optional", "Union"):
                every = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                found = _NO_FORM.union(*map(self._annotated, every))
                return found | _NONE if last_name(node.value) == "Optional" else found
        return _NAMED.get(last_name(node), _UNKNOWN)

    def _calls_are_seen(self, file: File, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """True for a function that nobody calls but the file, and that the file hands to nobody."""
        project, holder = self.program.project, parent(function)
        if file.path in project.aside.taken or not project.known or function.decorator_list:
            return False
        made = function.name == "__init__" and isinstance(holder, ast.ClassDef)
        name = holder.name if made and isinstance(holder, ast.ClassDef) else function.name
        sites = self.program.call_sites.get(holder if made else function, ())
        if any(hides_arguments(call) for _, call in sites):
            return False
        seen = {id(call.func) for _, call in sites}
        uses = (*file.scan.names.get(name, ()), *file.scan.attributes.get(name, ()))
        return bool(seen) and all(id(each) in seen for each in uses)

    # --- calls, attributes and items ---------------------------------------------------------------------------------

    def _of_call(self, file: File, node: ast.Call) -> Forms:
        full, last = file.names.qualified(node.func) or "", last_name(node.func)
        if full in _GIVE_DEVICES or (full in ("", "str") and last == "str"):
            return DEVICE
        callee = self.program.callee(file, node)
        if isinstance(callee, FUNCTIONS):
            at, returned = self.program.owner[callee], list(self.program.returns(callee))
            return _NO_FORM.union(*(self.of(at, each) for each in returned)) if returned else _NONE
        if last in _GIVE_NUMBERS:
            return _NUMBER
        if last in _GIVE_TEXTS and isinstance(node.func, ast.Attribute):
            return self.of(file, node.func.value)
        if last == "getattr" and len(node.args) > 1 and (name := string_of(node.args[1])) is not None:
            found = self._of_option(file, name)
            return found if len(node.args) == 2 else found | self.of(file, node.args[2])
        return _UNKNOWN

    def _of_attribute(self, file: File, node: ast.Attribute) -> Forms:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                return self._joined(file, self.held.sources(file, node)) | self._at_first(file, node)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="next")), attr="device"):
                return DEVICE
            case ast.Attribute(attr="device") if self.types.tensor(file, node.value) is not None:
                return DEVICE
        text, function = ast.unparse(node), enclosing_function(node)
        stores = [each for each in file.scan.stores if each.attr == node.attr and ast.unparse(each) == text]
        nodes, certain = reaching([each for each in stores if enclosing_function(each) is function], node)
        values = [assigned_value(each) for each in (nodes if certain else stores)]
        found = _NO_FORM.union(*(_UNKNOWN if each is None else self.of(file, each) for each in values))
        if certain:
            return found
        option = self._of_option(file, node.attr)
        return found if found and option == _UNKNOWN else found | option

    def _at_first(self, file: File, node: ast.Attribute) -> Forms:
        """None for an attribute that is set to it, unless the function that reads it has set it before."""
        slot, function = self.program.slot(file, node), enclosing_function(node)
        values = self.program.values.get(slot, ()) if slot is not None else ()
        set_here = any(enclosing_function(each.node) is function and not is_none(each.node) for each in values)
        return _NONE if not set_here and any(is_none(each.node) for each in values) else _NO_FORM

    def _of_option(self, file: File, name: str) -> Forms:
        """What an option of the command line is, or a field of a dataclass."""
        calls = file.scan.calls_by_last_name(("add_argument", "add_option"))
        found = _NO_FORM.union(*(self._of_argument(file, each) for each in calls if destination(each) == name))
        if found:
            return found
        option = self.program.project.options.get(name)
        default = option.default[0] if option is not None and option.default else None
        return _UNKNOWN if default is None else DEVICE if isinstance(default, str) else _NUMBER

    def _of_argument(self, file: File, call: ast.Call) -> Forms:
        kind, default = keyword_of(call, "type"), keyword_of(call, "default")
        if kind is not None and _NAMED.get(last_name(kind)) == _NUMBER:
            return _NUMBER
        if keyword_of(call, "nargs") is not None or (kind is not None and last_name(kind) not in _NAMED):
            return _UNKNOWN
        if keyword_of(call, "action") is not None:
            return _NUMBER
        positional = any((string_of(each) or "-")[0] != "-" for each in call.args[:1])
        value = self.of(file, default) if default is not None else _NONE
        if default is None and (positional or keyword_of(call, "required") is not None):
            return DEVICE
        if kind is None and value in (_NUMBER, _NONE):
            return value if value == _NUMBER else _NONE | _UNKNOWN  # a text, if it is not set in the program
        return value | DEVICE

    def _of_item(self, file: File, node: ast.expr) -> Forms:
        """The forms of the items of a list."""
        match node:
            case ast.List() | ast.Tuple():
                return _NO_FORM.union(*(self.of(file, each) for each in node.elts)) or _UNKNOWN
            case ast.ListComp():
                return self.of(file, node.elt)
            case ast.Call() if last_name(node.func) in ("range", "list", "sorted") and node.args:
                return _NUMBER if last_name(node.func) == "range" else self._of_item(file, node.args[0])
            case ast.Name():
                values = [x for x in self.held.sources(file, node) if isinstance(x, ProgramValue) and x.index is None]
                return _NO_FORM.union(*(self._of_item(each.file, each.node) for each in values)) or _UNKNOWN
        return _UNKNOWN


def _asks_for_none(test: ast.expr, node: ast.expr) -> bool:
    """True for `x is None` and `not x`, where `node` is x."""
    match test:
        case ast.Compare(left=asked, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return ast.dump(asked) == ast.dump(node)
        case ast.UnaryOp(op=ast.Not(), operand=asked):
            return ast.dump(asked) == ast.dump(node)
    return False


def _asks_for_some(test: ast.expr, node: ast.expr) -> bool:
    """True for `x is not None` and `x`, where `node` is x."""
    match test:
        case ast.Compare(left=asked, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return ast.dump(asked) == ast.dump(node)
    return ast.dump(test) == ast.dump(node)


def _takes_the_place_of_none(value: ast.expr, name: ast.Name) -> bool:
    """True for the value of `if x is None: x = value` above the place that reads x."""
    stored = parent(value)
    above = parent(stored) if isinstance(stored, (ast.Assign, ast.AnnAssign)) else None
    if not isinstance(above, ast.If) or stored not in above.body or ends(above) > begins(name):
        return False
    return _asks_for_none(above.test, ast.Name(name.id, ast.Load()))


def _name_of(node: ast.expr) -> str:
    """The name that speaks of what an expression gives: of an item its key, or the name of the list."""
    if isinstance(node, ast.Subscript):
        return string_of(node.slice) or _name_of(node.value)
    return last_name(node)
