"""The files that the main file reaches, read as one program: functions, classes, calls, where values come from.

Nothing is decided here. What cannot be resolved resolves to nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from transplt.base.grouped import grouped
from transplt.base.text.memo import Memoized
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.graph import Graph, ancestors
from transplt.rules.torch_callables import MODULE, full_names, names_of
from transplt.syntax.files import File
from transplt.syntax.nodes import by_place, last_name
from transplt.syntax.scan import FUNCTIONS, ancestor, parent, statement
from transplt.syntax.scopes import Scope

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: A variable: (file, scope, name), or of the objects of a class: ("self", full name of the class, attribute).
Variable = tuple[str, str, str]
LOADERS = full_names("loads")

#: Methods of modules that give back the module.
SAME_MODULE = names_of(MODULE, "returns_self")

__all__ = [
    "LOADERS",
    "File",
    "Function",
    "Program",
    "ProgramValue",
    "Variable",
    "class_name",
    "enclosing_function",
    "is_static",
    "key_of",
    "program_of",
    "scope_key",
    "stores_of",
    "text_of",
]


@dataclass(slots=True, eq=False)
class ProgramValue:
    """What a slot may hold: an expression, or the item of it at `index` (a position of a tuple)."""

    file: File
    node: ast.expr
    index: int | None = None


@dataclass(slots=True, eq=False)
class Program(Memoized):
    """The reached files, the main file first, and the tables over them."""

    files: list[File]
    project: ProjectFacts
    functions: dict[str, tuple[File, Function]] = field(default_factory=dict)
    classes: dict[str, tuple[File, ast.ClassDef]] = field(default_factory=dict)
    owner: dict[ast.AST, File] = field(default_factory=dict)  # of a function or class
    values: dict[Variable, list[ProgramValue]] = field(default_factory=dict)
    call_sites: dict[ast.AST, list[tuple[File, ast.Call]]] = field(default_factory=dict)
    entries: dict[Variable, list[tuple[str | int | None, ProgramValue]]] = field(default_factory=dict)  # under keys
    by_module: dict[str, File] = field(default_factory=dict)

    # --- names -------------------------------------------------------------------------------------------------------

    def slot(self, file: File, node: ast.AST) -> Variable | None:
        """The variable that a Name or `self.attribute` is."""
        if isinstance(node, ast.Name):
            found = file.names.lookup(node.id, file.scan.scope_of(node))
            if found is None:
                return None
            if len(found[1]) == 1 and found[1][0].kind == "import":
                known = self.project.canonical(found[1][0].target)
                module, _, name = known.rpartition(".")
                return (self.by_module[module].path, "", name) if module in self.by_module else None
            return (file.path, scope_key(found[0]), node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            cls = self.class_of(file, node.value)
            return ("self", self.root_class(cls), node.attr) if cls else None
        return None

    def class_of(self, file: File, node: ast.expr, seen: frozenset[Variable] = frozenset()) -> str:
        """Full name of the class whose object a name is: `self`, a variable made by calling the class, or a parameter
        that is given objects of one class."""
        if isinstance(node, ast.Call):
            made = self.named(file, _moved(node).func)
            return class_name(self.owner[made], made) if isinstance(made, ast.ClassDef) else ""
        if not isinstance(node, ast.Name):
            return ""
        function = enclosing_function(node)
        if function is not None and isinstance(parent(function), ast.ClassDef):
            every = [*function.args.posonlyargs, *function.args.args]
            if every and every[0].arg == node.id:
                return class_name(file, parent(function))
        slot = self.slot(file, node)
        values = self.values.get(slot, ()) if slot else ()
        for value in values:
            if isinstance(value.node, ast.Call) and value.index is None:
                made = self.named(value.file, _moved(value.node).func)
                if isinstance(made, ast.ClassDef):
                    return class_name(self.owner[made], made)
        if function is None or slot is None or slot in seen or slot != self.parameter_slot(function, node.id):
            return ""
        given = {self.class_of(value.file, value.node, seen | {slot}) for value in values}
        return next(iter(given)) if len(given) == 1 else ""

    def root_class(self, name: str) -> str:
        """The topmost base of a class that the program defines: objects of a family share their attributes."""
        *_, top = (name, *ancestors(name, lambda each: islice(self._own_bases(each), 1)))
        return top

    def full(self, file: File, node: ast.AST) -> str:
        """Full name of a name of a library or of a function or class of the program; empty when unknown."""
        known = file.names.qualified(node)
        if known is not None:
            return known
        if isinstance(node, ast.Name):
            found = file.names.lookup(node.id, file.scan.scope_of(node))
            if found is not None and len(found[1]) == 1 and found[1][0].kind in ("def", "class"):
                return f"{file.module}.{node.id}" if found[0].kind == "module" else ""
        return ""

    def callee(self, file: File, call: ast.Call) -> ast.AST | None:
        """The function or class of the program that a call runs, None for any other."""
        return self.definition(file, call.func)

    def definition(self, file: File, func: ast.expr) -> ast.AST | None:
        """The function or class of the program that an expression names."""
        found = self.named(file, func)
        if found is None and isinstance(func, ast.Attribute) and file.names.qualified(func) is None:
            found = self.object_runs(file, func.value, func.attr)
        if found is None and isinstance(func, (ast.Name, ast.Attribute)) and file.names.qualified(func) is None:
            found = self.object_runs(file, func, "__call__")  # an object that can be called
        return found

    def runs(self, file: File, call: ast.Call) -> list[ast.AST]:
        """What of the program a call may run: its callee, or one of several commands."""
        callee = self.callee(file, call)
        return [callee] if callee is not None else list(self.commands(file, call.func))

    def object_runs(self, file: File, node: ast.expr, method: str) -> Function | None:
        """The method of the program's class whose object an expression is."""
        return self.method(self.class_of_object(file, node), method)

    def class_of_object(self, file: File, node: ast.expr) -> str:
        """Full name of the program's class whose object a name, or an attribute of an object, is; empty for others."""
        return self.class_of(file, node) or self._class_in_slot(file, node)

    def commands(self, file: File, func: ast.expr) -> tuple[Function, ...]:
        """The functions of which `args.func` is one by `set_defaults(func=...)`, and `COMMANDS[name]` by a dict."""
        if isinstance(func, ast.Attribute) and file.names.qualified(func) is None:
            return self.once(_set_defaults).get(func.attr, ())
        slot = self.slot(file, func.value) if isinstance(func, ast.Subscript) else None
        tables = [(value.file, value.node) for value in self.values.get(slot, ())] if slot is not None else []
        held = [(at, each) for at, table in tables if isinstance(table, ast.Dict) for each in table.values]
        return _functions(self, held)

    def named(self, file: File, func: ast.expr) -> ast.AST | None:
        """The function or class of the program that a name is, without looking at what objects are."""
        if isinstance(func, ast.Name):
            found = file.names.lookup(func.id, file.scan.scope_of(func))
            if found is None:
                return self.defined(f"{file.module}.{func.id}")  # by a star
            if len(found[1]) != 1:
                return None
            binding = found[1][0]
            if binding.kind in ("def", "class"):
                return binding.node
            return self.defined(binding.target) if binding.kind == "import" else None
        known = file.names.qualified(func) if isinstance(func, ast.Attribute) else None
        return self.defined(known) if known is not None else None

    def _class_in_slot(self, file: File, node: ast.expr) -> str:
        slot = self.slot(file, node)
        for value in self.values.get(slot, ()) if slot else ():
            if isinstance(value.node, ast.Call) and value.index is None and value.node.func is not node:
                func = _moved(value.node).func
                known = value.file.names.qualified(func) or self.full(value.file, func)
                if (name := self.project.canonical(known)) in self.classes:
                    return name
        return ""

    def defined(self, full: str) -> ast.AST | None:
        """The function or class under a full name, or under one by which a module of the program passes it on."""
        name = self.once(_graph).settled(full)
        found = self.functions.get(name) or self.classes.get(name)
        return found[1] if found is not None else None

    def method(self, cls: str, name: str) -> Function | None:
        """The method of a class of the program, inherited ones included."""
        family = (cls, *ancestors(cls, self._own_bases)) if cls in self.classes else ()
        return next((self.functions[own][1] for at in family if (own := f"{at}.{name}") in self.functions), None)

    def _own_bases(self, cls: str) -> Iterator[str]:
        """The bases of a class that the program defines, as far as it defines them."""
        if cls in self.classes:
            file, node = self.classes[cls]
            known = (self.project.canonical(self.full(file, base)) for base in node.bases)
            yield from (full for full in known if full in self.classes)

    # --- calls -------------------------------------------------------------------------------------------------------

    def arguments(self, call: ast.Call, callee: ast.AST) -> list[tuple[str, ast.expr]]:
        """(parameter, argument) pairs of a call of a function or class of the program; starred ones are left out."""
        function = self.constructor(callee)
        if function is None:
            return []
        names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        if isinstance(parent(function), ast.ClassDef) and not is_static(function):
            names = names[1:]
        pairs = []
        for name, argument in zip(names, call.args, strict=False):
            if isinstance(argument, ast.Starred):
                break
            pairs.append((name, argument))
        return pairs + [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]

    def constructor(self, callee: ast.AST) -> Function | None:
        """The function that a call runs: of a class its `__init__`."""
        if isinstance(callee, FUNCTIONS):
            return callee
        if isinstance(callee, ast.ClassDef):
            return self.method(class_name(self.owner[callee], callee), "__init__")
        return None

    def parameter_slot(self, function: Function, name: str) -> Variable:
        file = self.owner[function]
        return (file.path, scope_key(file.scan.scopes[function]), name)

    def returns(self, function: Function) -> Iterator[ast.expr]:
        for node in self.owner[function].scan.returns:
            if enclosing_function(node) is function and node.value is not None:
                yield node.value


def program_of(files: list[File], project: ProjectFacts) -> Program:
    """The program of files that were read before; where it has a main file, that is the first."""
    program = Program(files, project)
    _find_definitions(program)
    _find_values(program)
    _find_calls(program)
    return program


def _functions(program: Program, named: list[tuple[File, ast.expr]]) -> tuple[Function, ...]:
    """Those of some names that are functions of the program."""
    found = (program.named(file, each) for file, each in named if isinstance(each, (ast.Name, ast.Attribute)))
    return tuple(each for each in found if isinstance(each, FUNCTIONS))


def _set_defaults(program: Program) -> dict[str, tuple[Function, ...]]:
    """The functions of the program that parsers of subcommands are given as defaults, by the argument they become."""
    calls = ((file, each) for file in program.files for each in file.scan.calls)
    setting = ((file, call) for file, call in calls if last_name(call.func) == "set_defaults")
    given = grouped((each.arg or "", (file, each.value)) for file, call in setting for each in call.keywords)
    return {name: found for name, values in given.items() if (found := _functions(program, values))}


def _graph(program: Program) -> Graph:
    """What the names of the reached files stand for, but for those that are bound several times."""
    names = {
        f"{file.module}.{name}": bindings
        for file in program.by_module.values()
        for name, bindings in file.scan.root.bindings.items()
    }
    imported = {name: found[0].target for name, found in names.items() if len(found) == 1 and found[0].kind == "import"}
    return Graph(
        program.project.canonical,
        frozenset(program.by_module),
        defined=frozenset(names.keys() - imported.keys()),
        aliases=imported,
        stars={name: tuple(file.scan.root.stars) for name, file in program.by_module.items()},
    )


def _find_definitions(program: Program) -> None:
    for file in program.files:
        program.by_module.setdefault(file.module, file)
        for node in (*file.scan.functions, *file.scan.classes):
            program.owner[node] = file
        for cls in file.scan.classes:
            program.classes[class_name(file, cls)] = (file, cls)
        for function in file.scan.functions:
            above = parent(function)
            if isinstance(above, ast.ClassDef):
                program.functions[f"{class_name(file, above)}.{function.name}"] = (file, function)
            elif file.scan.scope_of(function) is file.scan.root:
                program.functions[f"{file.module}.{function.name}" if file.module else function.name] = (file, function)


def _find_values(program: Program) -> None:
    """What variables, attributes and entries are given by assignments."""
    for file in program.files:
        for scope in file.scan.scopes.values():
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    if binding.kind == "assign":
                        _assigned(program, file, (file.path, scope_key(scope), name), binding.node)
    for file in program.files:
        for store in by_place(file.scan.stores):
            if (slot := program.slot(file, store)) is not None:
                _assigned(program, file, slot, store)
    for file in program.files:
        for item in file.scan.subscripts:  # `loaders["train"] = ...`
            above, slot = parent(item), program.slot(file, item.value)
            if slot is not None and isinstance(above, ast.Assign) and item in above.targets:
                program.entries.setdefault(slot, []).append((key_of(item.slice), ProgramValue(file, above.value)))


def _find_calls(program: Program) -> None:
    """Who calls each function, and what its parameters are given."""
    left, before = [(file, call) for file in program.files for call in file.scan.calls], -1
    while before != (before := len(left)):  # what is given to a function tells what it calls
        every, left = left, []
        for file, call in every:
            callees = program.runs(file, call)
            left += [(file, call)] if not callees and isinstance(call.func, ast.Attribute) else []
            for callee in callees:
                program.call_sites.setdefault(callee, []).append((file, call))
                made = program.constructor(callee)
                if made is not None:
                    for name, argument in program.arguments(call, callee):
                        given = program.parameter_slot(made, name)
                        program.values.setdefault(given, []).append(ProgramValue(file, argument))


def _moved(call: ast.Call) -> ast.Call:
    """`Net()` of `Net().cuda()`: the call that makes the object."""
    while last_name(call.func) in SAME_MODULE and isinstance(inner := getattr(call.func, "value", None), ast.Call):
        call = inner
    return call


def key_of(node: ast.expr | None) -> int | str | None:
    """A key or index that is written out, else None."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (int, str)) else None


def _assigned(program: Program, file: File, slot: Variable, store: ast.AST) -> None:
    values = program.values.setdefault(slot, [])
    match above := parent(store):
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            if above.value is not None:
                values.append(ProgramValue(file, above.value))
        case ast.Tuple(elts=targets) | ast.List(elts=targets) if isinstance(by := parent(above), (ast.Assign, ast.For)):
            index = next(place for place, item in enumerate(targets) if item is store)
            # A loop goes over rows that are written out.
            for row in [by.value] if isinstance(by, ast.Assign) else getattr(by.iter, "elts", ()):
                match row:
                    case ast.Tuple(elts=given) | ast.List(elts=given) if len(given) == len(targets):
                        values.append(ProgramValue(file, given[index]))
                    case _ if isinstance(by, ast.Assign):
                        values.append(ProgramValue(file, row, index))
        case ast.withitem():
            values.append(ProgramValue(file, above.context_expr))


def stores_of(program: Program, wanted: Variable) -> list[tuple[File, ast.expr]]:
    """Where a variable is assigned by `=`, by place."""
    found: list[tuple[File, ast.expr]] = []
    for file in program.files:
        for scope in file.scan.scopes.values():
            for binding in scope.bindings.get(wanted[2], ()):
                node = binding.node
                if binding.kind == "assign" and isinstance(node, ast.Name) and program.slot(file, node) == wanted:
                    found.append((file, node))
        found += [(file, node) for node in file.scan.stores if program.slot(file, node) == wanted]
    kept = [item for item in found if isinstance(statement(item[1]), (ast.Assign, ast.AnnAssign))]
    return sorted(kept, key=lambda item: (item[0].path, item[1].lineno, item[1].col_offset))


def scope_key(scope: Scope) -> str:
    """A name for a scope that is the same in every run."""
    node = scope.node
    return "" if isinstance(node, ast.Module) else f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"


def class_name(file: File, node: ast.AST) -> str:
    """Full name of a class."""
    assert isinstance(node, ast.ClassDef)
    return f"{file.module}.{node.name}" if file.module else node.name


def enclosing_function(node: ast.AST) -> Function | None:
    """The function that holds a node, None at module level."""
    found = node if isinstance(node, ast.Module) else ancestor(node, FUNCTIONS, "_enclosing")
    return found if isinstance(found, FUNCTIONS) else None


def is_static(function: Function) -> bool:
    """True for a method that gets no object."""
    return any(getattr(decorator, "id", "") == "staticmethod" for decorator in function.decorator_list)


def text_of(file: File, node: ast.expr) -> str:
    """Source text of an expression."""
    return file.source.slice(*file.source.extent(node))
