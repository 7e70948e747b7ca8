"""Findings that a program comes to only where somebody asks for them: behind an option that is off by default.

Looked at are the branches, conditional expressions and early returns around a place, the choice of it from a table by
an option, and the same around all calls of the functions that hold it; those in other files as flow/asked_names.py
reads them. Options are those of the project's command lines, fields of its dataclasses, and parameters with a default.
Where the default is not in sight a branch counts as taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

from transplt.base.finding import Finding, Level
from transplt.base.language import marked
from transplt.engine.tests_in_order import InOrder, operands, passing
from transplt.flow.asked_names import GIVEN
from transplt.flow.definition_uses import is_listed
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.conditions import SETTINGS
from transplt.flow.option_defaults import HOLDERS, Constant, Option, constant, joined, options_in
from transplt.flow.torch_branches import TorchTests
from transplt.program.program import enclosing_function
from transplt.rules.packages import fails_to_load, is_bound
from transplt.syntax.annotations import is_annotation, is_asked_for
from transplt.syntax.files import File
from transplt.syntax.names import SELF, assigned_value
from transplt.syntax.nodes import (
    begins,
    call_of,
    called_name,
    callee_of,
    class_of_method,
    defaults_of,
    index_in,
    inner_nodes,
    keyword_of,
    last_name,
    place_in_block,
    plain_name,
    shape,
    string_of,
)
from transplt.syntax.positions import Inside
from transplt.syntax.scan import FUNCTIONS, Scan, chain, parent
from transplt.syntax.scopes import Binding, Scope

#: How many cards a program is told to use: one, where it is not told so.
_CARDS = re.compile(r"(?:n|num|number_of)_?(?:gpus?|cards|devices)", re.I)
_HOLDER = re.compile(rf"(?:^|_)(?:{HOLDERS})$", re.I)
#: Decorators that leave a function to those who call it by its name.
_PLAIN = frozenset(
    "staticmethod classmethod dataclass no_grad inference_mode autocast custom_fwd wraps lru_cache cache".split()
)
#: Functions that run whenever a program trains, by their names.
_USUAL = re.compile(r"main\w*|\w*(?:train|fit|forward|step|run)\w*|__\w+__", re.I)
#: Methods that a framework calls, by their names.
_HOOKS = re.compile(r"train|valid|test|predict|fit|forward|backward|step|epoch|batch|loader|optimi|hook|^on_|^from_")
#: Variables that a launcher sets, or a scheduler.
_BY_LAUNCHERS = re.compile(r"WORLD|RANK|MASTER|NODE|SLURM|MPI|PROC|VISIBLE")
_OFF_BY_DEFAULT = ((False,), ("none",), ("off",))
#: So many callers are gone up.
_DEPTH = 4
#: What stands behind a test of torch's version that fails.
_OTHER_TORCH = marked("another torch")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Known = tuple[Constant, ...]


def mark_options(file: File, findings: tuple[Finding, ...], project: ProjectFacts, torch: str) -> tuple[Finding, ...]:
    """The findings; open ones say which option they stand behind, and in which function. A branch for another torch is
    no work.
    """
    if not any(finding.open and not finding.option for finding in findings):
        return findings
    behind = _Behind(file.scan, project, TorchTests(file.names, torch))
    found = []
    for each in findings:
        if each.open and not each.option:
            function = behind.function_at(each.span.start)
            told = (*each.details, ("function", function)) if function else each.details
            each = replace(
                each, option=behind.option_at(each.span.start, each.api) or each.detail("condition"), details=told
            )
            if each.option == _OTHER_TORCH and each.edit is None:
                each = replace(each, level=Level.INFO)
        found.append(each)
    return tuple(found)


@dataclass(slots=True)
class _Behind:
    """What stands behind the options of one file."""

    scan: Scan
    project: ProjectFacts
    torch: TorchTests
    inside: Inside = field(init=False)
    options: Mapping[str, Option] = field(init=False)
    taken: frozenset[str] = field(init=False)  # names that other files import from this one; `*` for all of them
    texts: frozenset[object] = field(init=False)
    versions: bool = field(init=False)
    elsewhere: frozenset[str] = frozenset()  # functions that answer yes with another torch alone: `use_kernel(x)`
    _known: dict[int, str] = field(default_factory=dict)
    _busy: set[int] = field(default_factory=set)
    _above: dict[int, str] = field(default_factory=dict)
    _opened: list[ast.AST] = field(default_factory=list)  # the definitions whose callers are looked for
    _nested: int = 0
    _before: InOrder = field(default_factory=InOrder)

    def __post_init__(self) -> None:
        self.inside = Inside(self.scan.source)
        self.options = {
            each.name: self.project.as_given(each, self.scan.path) for each in options_in(self.scan.source.utf8)
        }
        self.taken = self.project.aside.taken.get(self.scan.path, frozenset())
        self.texts = frozenset(each.value for each in self.scan.strings if not is_listed(each))
        self.versions = re.search(rb"(?i)version", self.scan.source.utf8) is not None
        yes: dict[str, set[str]] = {}
        for each in self.scan.returns if self.versions else ():
            if each.value is not None and constant(each.value) not in ((None,), (False,)):
                yes.setdefault(getattr(enclosing_function(each), "name", ""), set()).add(self._around(each, 0))
        self.elsewhere = frozenset(name for name, behind in yes.items() if behind == {_OTHER_TORCH})
        self._before = InOrder()  # the tests that call these functions were looked at without them

    def function_at(self, at: int) -> str:
        """The function in which a byte offset stands, `load()`; empty for what every training calls."""
        around = self.inside.around(self.scan.tree, at)
        inner = around[-1] if around else self.scan.tree
        function = inner if isinstance(inner, FUNCTIONS) else enclosing_function(inner)
        owner = class_of_method(function) if function is not None and function.name == "__init__" else None
        name = owner.name if owner is not None else function.name if function is not None else ""
        usual = not name or _USUAL.fullmatch(name) or f"{name}(" in self.project.first
        return "" if usual else f"{name}()"

    def option_at(self, at: int, api: str = "") -> str:
        """The option behind which a byte offset stands; empty where it is met without one. The import of a part of
        torch (`api`), or of a package that loads without CUDA, stops nothing: it stands behind what its uses stand
        behind.
        """
        around = self.inside.around(self.scan.tree, at)
        if not around:
            return ""
        node = around[-1]
        if getattr(enclosing_function(node), "name", "") in self.elsewhere:
            return _OTHER_TORCH
        loads = api.startswith("torch.") or (is_bound(api) and not fails_to_load(api))
        if isinstance(node, (ast.Import, ast.ImportFrom)) and api and loads:
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""  # of what gives the API, or holds it
            names = [each.asname or each.name for each in node.names if f"{api}.".startswith(f"{start}{each.name}.")]
            if len(names) == 1 and "." not in names[0] and not self.taken & {"*", names[0]}:
                return self._option(node, _DEPTH) or self._all_behind(self.scan.names.get(names[0], []), _DEPTH)
        return self._asked_itself(node) or self._of_compile(node, api) or self._option(node, _DEPTH)

    def _of_compile(self, node: ast.AST, api: str) -> str:
        """The option without which torch.compile leaves a program as it is, or to another backend than inductor."""
        while isinstance(parent(node), ast.Attribute):
            node = parent(node)
        call = call_of(node) if api == "torch.compile" else None
        off = keyword_of(call, "disable") if call is not None else None
        if call is None or (off is not None and (words := self._off(off, call, 0, wanted=False))):
            return words if call is not None else ""
        backend = keyword_of(call, "backend")
        value, words = self._value(backend, call) if backend is not None else ((), "")
        return f"{words} inductor".replace("= ", "=", 1) if value and value[0] not in (None, "inductor") else ""

    def _asked_itself(self, node: ast.AST) -> str:
        """The option that is asked for right at a place, where it is off."""
        while isinstance(parent(node), ast.Attribute):
            node = parent(node)
        if plain_name(node) == "CUDA_HOME" and isinstance(parent(node), ast.Compare):
            node = parent(node)
        above = parent(node)
        asks = isinstance(above, (ast.If, ast.IfExp)) and above.test is node
        return self._off(node, node, 0) if asks and isinstance(node, (ast.Attribute, ast.Compare)) else ""

    def _option(self, node: ast.AST, depth: int) -> str:
        key = id(node)
        if key not in self._known:
            self._known[key] = ""  # what calls itself is called by others
            self._nested += 1
            self._known[key] = self._around(node, depth)
            self._nested -= 1
        return self._known[key]

    def _around(self, node: ast.AST, depth: int) -> str:
        """The innermost option in the blocks around a node, or around all calls of the functions that hold it.

        Of nodes that were gone up from before the answer is known: a chain of `elif` is as deep as it is long.
        """
        outermost, passed, words = self._nested == 1 and depth == _DEPTH, list[ast.AST](), ""
        while not words and not isinstance(node, ast.Module):
            if outermost and id(node) in self._above:
                words = self._above[id(node)]
                break
            passed.append(node)
            above = parent(node)
            words = self._stands_behind(above, node, depth) or self._chosen(above, node)
            if not words and depth and isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Assign)):
                self._opened.append(node)
                words = self._called_with(node, depth)
                self._opened.pop()
            node = above
        if outermost:
            self._above.update((id(each), words) for each in passed)
        return words

    def _stands_behind(self, above: ast.AST, node: ast.AST, depth: int) -> str:
        """The option because of which a node does not run that stands right in another."""

        def asked(test: ast.expr, wanted: bool) -> str:
            return self._off(test if wanted else ast.UnaryOp(ast.Not(), test), node, depth)

        if isinstance(above, (ast.If, ast.IfExp)) and node is not above.test:
            runs = node is above.body or (isinstance(above.body, list) and index_in(above, "body", node) >= 0)
            if words := asked(above.test, runs):
                return words
        if isinstance(above, ast.BoolOp):
            tests = self._before.tests((id(above), depth), lambda: operands(above))
            if words := tests.first(index_in(above, "values", node), asked, alone=not self._busy):
                return words
        if isinstance(node, ast.stmt):
            block, index = place_in_block(node)
            tests = self._before.tests((id(block), depth), lambda: passing(block))
            return tests.first(index, asked, alone=not self._busy)
        return ""

    def _chosen(self, above: ast.AST, node: ast.AST) -> str:
        """The option that takes a value from a table: `{"adam": a, "adam8": b}[args.optimizer]`."""
        if not isinstance(above, ast.Dict) or (index := index_in(above, "values", node)) < 0:
            return ""
        key, holder = string_of(above.keys[index]), parent(above)
        match holder:
            case ast.Subscript(value=table, slice=asked) if table is above:
                pass
            case ast.Attribute(attr="get") if (call := call_of(holder)) is not None and call.args:
                asked = call.args[0]
            case _:
                return ""
        value, words = self._value(asked, node)
        return f"{words} {key}" if key is not None and value and value[0] != key else ""

    def _called_with(self, node: ast.AST, depth: int) -> str:
        """The option without which nobody calls a function, or what `f = Function.apply` gives a name, or makes an
        object of a class. A method whose name says no more than what frameworks call is called where its file does so.
        """
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="apply")):
                depth += 1
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not {last_name(callee_of(each)) for each in node.decorator_list} <= _PLAIN:
                    return ""
                if not isinstance(node, ast.ClassDef) and class_of_method(node) is not None:
                    own = "_" in name and not name.endswith("__") and (name[0] == "_" or not _HOOKS.search(name))
                    return self._all_behind(self.scan.attributes.get(name, []), depth) if own else ""
            case _:
                return ""
        uses = self.scan.names.get(name, [])
        outside = self.project.aside.used(self.scan.path, name) if isinstance(parent(node), ast.Module) else ""
        if outside is None:  # who is beside a gate for another torch goes through it
            words = self._all_behind(uses, depth) if self.versions else ""
            return words if words == _OTHER_TORCH else ""
        if name in self.texts and not outside:
            return ""
        if not self.project.known and not name.startswith("_") and b"__main__" not in self.scan.source.utf8:
            return ""  # no file that is started
        return self._all_behind(uses, depth, outside)

    def _all_behind(self, uses: list[ast.Name] | list[ast.Attribute], depth: int, found: str = "") -> str:
        """The option that all uses of a name stand behind that are no annotations; empty for none, but for those of
        other files, which are behind `found`.
        """
        for use in uses:
            if is_annotation(use) or is_asked_for(use) or any(each in self._opened for each in chain(use)):
                continue
            if not isinstance(use.ctx, ast.Load):
                return ""
            if not (words := self._asked_itself(use) or self._option(use, depth - 1)):
                return ""
            found = found or words
        return found

    # --- what a test is by default --------------------------------------------------------------------------------

    def _off(self, test: ast.expr, at: ast.AST, depth: int, wanted: bool = True) -> str:
        """The option because of which a test has another answer than the one `wanted` by default; empty where it may
        have that.
        """
        if wanted and self.versions and not isinstance(test, ast.BoolOp) and self.torch.fails(test):
            return _OTHER_TORCH
        match test:
            case ast.BoolOp(op=op, values=values):
                found = [self._off(value, at, depth, wanted) for value in values]
                if isinstance(op, ast.And) is wanted:
                    return " and ".join(dict.fromkeys(filter(None, found)))
                return found[0] if all(found) else ""
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._off(operand, at, depth, not wanted)
            case ast.Compare(left=left, ops=[how], comparators=[other]):
                turned = how if wanted else _TURNED.get(type(how))
                return self._compared(left, turned, other, at) if turned is not None else ""
            case ast.Call() if wanted:
                return self._asked(test, at, depth)
        value, words = self._value(test, at)
        return words if value and bool(value[0]) is not wanted else ""

    def _compared(self, left: ast.expr, how: ast.cmpop, other: ast.expr, at: ast.AST) -> str:
        if (cards := self._several_cards(left, how, other)) is not None:
            return cards
        value, words = self._value(left, at)
        if not value:
            return ""
        if isinstance(how, ast.In) and isinstance(other, (ast.Tuple, ast.List, ast.Set)):
            members = [constant(each) for each in other.elts]
            first = next((each[0] for each in members if each), None)
            return f"{words} {first!s}" if members and all(each and each != value for each in members) else ""
        if not (there := constant(other)):
            return ""
        equal = value == there and type(value[0]) is type(there[0])
        if isinstance(how, (ast.Eq, ast.Is)):
            return "" if equal else f"{words} {there[0]!s}".replace("= ", "=", 1)
        if isinstance(how, (ast.NotEq, ast.IsNot)):
            return words if equal else ""
        return words if isinstance(how, (ast.Gt, ast.Lt)) and equal else ""

    def _several_cards(self, count: ast.expr, how: ast.cmpop, other: ast.expr) -> str | None:
        """The option because of which a program runs on one card: how many it is told to use, not how many there are.
        None for another comparison.
        """
        if not isinstance(how, ast.Gt) or constant(other) != (1,) or not isinstance(count, ast.Attribute):
            return None
        asked_for = _holds_settings(count.value) and not self._stores(count)
        return f"{count.attr} > 1" if asked_for and _CARDS.fullmatch(count.attr) else ""

    def _asked(self, call: ast.Call, at: ast.AST, depth: int) -> str:
        """The option because of which a question has the answer no: `args.quantize.startswith("bnb")`, or
        `isinstance(x, C)` of a class that is made behind an option alone.
        """
        match call:
            case ast.Call(func=ast.Attribute(value=holder, attr="startswith" | "endswith" as asks), args=[part]):
                value, words = self._value(holder, at)
                text = string_of(part)
                if value and isinstance(value[0], str) and text is not None:
                    return "" if getattr(value[0], asks)(text) else f"{words} {text}"
                return ""
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]) if depth:
                return self._all_behind(self.scan.names.get(plain_name(kind), []), depth)
            case ast.Call(func=ast.Name(id=name)) if name in self.elsewhere:
                return _OTHER_TORCH
        value, words = self._value(call, at)
        return words if value and not value[0] else ""

    def _value(self, node: ast.expr, at: ast.AST) -> tuple[_Known, str]:
        """The default of an attribute, a parameter or a variable that holds one, and how it is given."""
        value, words, name = self._default(node, at)
        return ((), "") if GIVEN.search(name) else (value, words)

    def _default(self, node: ast.expr, at: ast.AST) -> tuple[_Known, str, str]:
        if id(node) in self._busy:
            return (), "", ""  # a function that calls itself, a variable that is made of itself
        self._busy.add(id(node))
        found = self._default_of(node, at)
        self._busy.discard(id(node))
        return found

    def _default_of(self, node: ast.expr, at: ast.AST) -> tuple[_Known, str, str]:
        match node:
            case ast.Name(id="CUDA_HOME") | ast.Attribute(attr="CUDA_HOME"):
                return (None,), "CUDA_HOME", ""  # as torch has it where there is no CUDA
            case ast.Attribute():
                return self._attribute(node)
            case ast.Name():
                return self._variable(node, at)
            case ast.Subscript(slice=ast.Constant(value=str())):
                return self._entry(node)
            case ast.Call(func=func, args=[asked, *rest]) if "env" in ast.unparse(func).lower():
                name = string_of(asked) or ""  # also of a function of its own that reads one
                found = constant(rest[0]) if rest else (None,)
                known = name.isupper() and _BY_LAUNCHERS.search(name) is None
                return (found, f"the environment variable {name}", name) if known else ((), "", name)
            case ast.Call(func=func, args=[_, called, default]) if last_name(func) == "getattr":
                name = string_of(called) or ""
                return (constant(default), name, name) if not self._stored(name) else ((), "", name)
        return (), "", ""

    def _attribute(self, node: ast.Attribute) -> tuple[_Known, str, str]:
        name, of_settings = node.attr, _holds_settings(node.value)
        stores = self._stores(node)
        if stores and (of_settings or plain_name(node.value) in SELF):
            return self._of_an_object(node, stores)
        option = self.options.get(name)
        if option is None and of_settings:
            above = takewhile(lambda each: not _is_holder(each.attr), inner_nodes(node.value, ast.Attribute))
            entry = ".".join(reversed([name, *(each.attr for each in above)]))  # `BN.NORM_TYPE` of `cfg.BN.NORM_TYPE`
            options, configured = self.project.options, self.project.configured
            known = filter(None, (options.get(entry) or options.get(name), configured.get(entry)))
            option = joined(each._replace(name=name) for each in known).get(name)
        if option is None or stores:
            return (), "", name
        return option.default, option.words, name

    def _entry(self, node: ast.expr) -> tuple[_Known, str, str]:
        """The default of `config["train"]["fast"]` in configurations in YAML, where the file itself sets none."""
        keys = list[str]()
        while isinstance(node, ast.Subscript) and (key := string_of(node.slice)) is not None:
            keys.insert(0, key)
            node = node.value
        option = self.project.configured.get(".".join(keys)) if _is_holder(last_name(node)) else None
        last = re.escape(keys[-1].encode())
        if option is None or re.search(rb"[\"']%b[\"']\s*(?:\]\s*=(?!=)|:)" % last, self.scan.source.utf8) is not None:
            return (), "", keys[-1]
        return option.default, option.words, keys[-1]

    def _stores(self, node: ast.Attribute) -> list[ast.Attribute]:
        """What sets an attribute: of settings not what only keeps it (`self.fast = args.fast`), of other objects not
        what sets those; nothing where all give it another constant than the one that it is compared with.
        """
        keeps = _holds_settings(node.value)
        stores = [each for each in self._stored(node.attr) if not (
            last_name(assigned_value(each)) == node.attr if keeps else _holds_settings(each.value))]  # fmt: skip
        match parent(node):
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[asked]) if left is node:
                given, other = [constant(assigned_value(each)) for each in stores], constant(asked)
                return [] if other and all(each and each != other for each in given) else stores
        return stores

    def _stored(self, name: str) -> list[ast.Attribute]:
        return [each for each in self.scan.attributes.get(name, []) if isinstance(each.ctx, ast.Store)]

    def _of_an_object(self, node: ast.Attribute, stores: list[ast.Attribute]) -> tuple[_Known, str, str]:
        """The default of an attribute that its class sets once, to what its own parameter gives it."""
        value, function = assigned_value(stores[0]), enclosing_function(stores[0])
        if len(stores) > 1 or value is None or function is None or function.name != "__init__":
            return (), "", node.attr
        is_own = class_of_method(function) is class_of_method(enclosing_function(node))
        if isinstance(value, ast.Call) or (is_own and isinstance(value, (ast.Name, ast.Attribute))):
            return self._default(value, stores[0])
        return (), "", node.attr

    def _variable(self, node: ast.Name, at: ast.AST) -> tuple[_Known, str, str]:
        """The default of a parameter that is not bound again, or where it was given alone, or of a variable that is
        bound once, to an option.
        """
        scope: Scope | None = self.scan.scope_of(node if hasattr(node, "_scope") else at)
        while scope is not None and node.id not in scope.bindings:
            scope = scope.parent
        bindings = scope.bindings[node.id] if scope is not None else []
        bindings = _bound_before(bindings, node, at)
        if len(bindings) != 1:
            return (), "", node.id
        binding = bindings[0]
        if binding.kind == "param" and isinstance(function := enclosing_function(binding.node), FUNCTIONS):
            return self._parameter(function, node.id)
        value = assigned_value(binding.node) if binding.kind == "assign" else None
        if value is not None and (isinstance(value, ast.Attribute) or called_name(value) == "getattr"):
            return self._default(value, binding.node)
        return (), "", node.id

    def _parameter(self, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> tuple[_Known, str, str]:
        """What all calls of a function in its own file give a parameter, or leave it at; one without a default counts
        where nobody else calls the function.
        """
        if name in self.options and any(last_name(callee_of(each)) == "option" for each in function.decorator_list):
            return self.options[name].default, self.options[name].words, name  # click hands it over
        owner = class_of_method(function)
        called = ({"__init__": owner}.get(function.name) or function).name
        arguments = enumerate((*function.args.posonlyargs, *function.args.args), -(owner is not None))
        index = {each.arg: place for place, each in arguments}.get(name, -1)
        default = constant({argument.arg: each for argument, each in defaults_of(function.args)}.get(name))
        # `trainer.train()` is another `train`
        calls = [each for each in self.scan.calls_by_last_name({called}) if owner or isinstance(each.func, ast.Name)]
        elsewhere = any((
            not calls, owner, self.taken & {"*", function.name}, function.name in self.texts,
            len(self.scan.names.get(function.name, ())) != len(calls), self.scan.attributes.get(function.name),
        ))  # fmt: skip
        left = (default, f"{name}=", name)
        found = [self._handed_on(left)] if elsewhere else [left] * len(default)
        for call in calls:
            positional, _, starred = shape(call)
            given = call.args[index] if 0 <= index < positional else keyword_of(call, name)
            if given is not None:
                value = constant(given)
                found.append((value, f"{name}=", name) if value else self._default(given, call))
            elif starred or not default:
                return (), "", name
            else:
                found.append(left)
        if any(each[0] != found[0][0] for each in found):
            return (), "", name
        return found[-1]  # an option that is passed on says more than the name of the parameter

    def _handed_on(self, left: tuple[_Known, str, str]) -> tuple[_Known, str, str]:
        """The flag of a program, off by default, that a parameter is called after, which others set; else what it is
        left at; nothing of any other option.
        """
        flag = self.project.options.get(left[2])
        return left if flag is None or flag.default not in _OFF_BY_DEFAULT else (flag.default, flag.words, left[2])


def _bound_before(bindings: list[Binding], node: ast.Name, at: ast.AST) -> list[Binding]:
    """The bindings of a variable that its value at a test can come from: not what the test itself leads to, nor, of a
    parameter outside of loops, what is bound below.
    """
    test = parent(node)
    if isinstance(test, ast.If) and test.test is node:
        bindings = [each for each in bindings if test not in chain(each.node)]
    again = len(bindings) > 1 and bindings[0].kind == "param"
    if again and not any(isinstance(each, _LOOPS) for each in chain(at)):
        bindings = [each for each in bindings if begins(each.node) <= begins(node)]
    if again and isinstance(function := enclosing_function(bindings[0].node), FUNCTIONS):
        off = constant({argument.arg: each for argument, each in defaults_of(function.args)}.get(node.id))
        first, *rest = bindings  # what is set to the default again is no other value
        bindings = [first, *(each for each in rest if not off or constant(assigned_value(each.node)) != off)]
    return bindings


_TURNED = {ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is()}


def _holds_settings(node: ast.expr) -> bool:
    """True for `cfg`, and for what it holds: `self.cfg.train`."""
    while isinstance(node, ast.Attribute) and not _is_holder(node.attr):
        node = node.value
    return _is_holder(last_name(node))


def _is_holder(name: str) -> bool:
    return name in SETTINGS or _HOLDER.search(name) is not None
