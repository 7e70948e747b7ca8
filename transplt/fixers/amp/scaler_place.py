"""Where a GradScaler is made, which lives as long as its optimizer, and how the training code gets hold of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.helper_import import top_of
from transplt.program.imports import imports_of
from transplt.program.loops import lifted, loops_around
from transplt.program.optimizers import is_optimizer_object
from transplt.program.program import File, Function, Program, enclosing_function
from transplt.syntax.nodes import (
    begins,
    block_of,
    by_place,
    call_of,
    class_of_method,
    hides_arguments,
    inner_nodes,
    last_name,
    plain_name,
    variable,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement
from transplt.syntax.scopes import Binding


@dataclass(frozen=True, slots=True)
class Home:
    """A place for a scaler.

    kind `local`: a variable, made behind each statement of `after` (the last that makes an optimizer, for each caller);
    `attribute`: the same as an attribute of the object; `module`: a variable of the file, made above `above`.
    `takes`: functions that get it as a parameter, behind that parameter; `hands`: calls that hand it over, behind that
    argument.
    """

    kind: str
    after: tuple[ast.stmt, ...] = ()
    above: ast.stmt | None = None
    takes: tuple[tuple[Function, ast.arg], ...] = ()
    hands: tuple[tuple[ast.Call, ast.expr], ...] = ()


def find_home(program: Program, file: File, optimizers: list[ast.expr], uses: Sequence[ast.AST] = ()) -> Home | str:
    """The home beside some optimizers of one function or class, or why there is none; `uses` are further places that
    need what is made there.
    """
    function = enclosing_function(optimizers[0])
    cls = class_of_method(function)
    names = {variable(_source(node)) for node in optimizers}
    if all(name.startswith("self.") for name in names):
        return _in_class(program, file, cls, names, [*optimizers, *uses]) or _in_module(file, function)
    if any(name.startswith("self.") or not name for name in names) or any(
        not isinstance(_source(node), (ast.Name, ast.Subscript)) for node in optimizers
    ):
        return "the object that holds the optimizer was not found"
    found = _home_beside(program, file, [_source(node) for node in optimizers], [*optimizers, *uses], 0)
    if found is None or (found.takes and _passed_around(program, file, found)):
        return _in_module(file, function)
    return found


def _source(node: ast.expr) -> ast.expr:
    """The list that an optimizer comes from, for `for optimizer in optimizers`; else the optimizer."""
    if isinstance(node, ast.Name):
        for loop in loops_around(node):
            if isinstance(loop, (ast.For, ast.AsyncFor)) and any(
                plain_name(at) == node.id for at in ast.walk(loop.target)
            ):
                inner = loop.iter
                match inner:
                    case ast.Call(args=[first, *_]):
                        inner = first
                    case ast.Call(func=ast.Attribute(value=held)):
                        inner = held  # optimizers.values()
                return inner if variable(inner) else node
    return node


def _in_class(
    program: Program, file: File, cls: ast.ClassDef | None, names: set[str], uses: Sequence[ast.AST]
) -> Home | None:
    """Behind the statements that make the optimizers in one method; None when a class above or below does too."""
    if cls is None:
        return None
    stores = [
        at
        for method in cls.body
        if isinstance(method, FUNCTIONS)
        for at in inner_nodes(method, ast.Attribute)
        if isinstance(at.ctx, ast.Store) and variable(at) in names
    ]
    methods = {id(enclosing_function(store)): enclosing_function(store) for store in stores}
    if {variable(store) for store in stores} != names or len(methods) != 1:
        return None
    if _made_below(program, file, cls, {name.partition(".")[2] for name in names}):
        return None
    made = [[statement(store) for store in stores if variable(store) == name] for name in sorted(names)]
    last = _in_time(file, made, uses)
    return Home("attribute", (last,)) if last is not None else None


def _made_below(program: Program, file: File, cls: ast.ClassDef, attributes: set[str]) -> bool:
    """True when a class that may be derived from this one makes the optimizers itself."""
    project = program.project
    every = [(path, project.sources[path]) for path in imports_of(project).above(file.path)]
    for path, data in [(file.path, file.source.encode(file.source.utf8)), *every]:
        if not any(f"self.{name}".encode() in data for name in attributes):
            continue
        other = file if path == file.path else project.files.read(path, data)
        for at in other.scan.classes if other is not None else ():
            if at is not cls and at.bases and any(
                store.attr in attributes and variable(store) == f"self.{store.attr}" and at in chain(store)
                for store in (other.scan.stores if other is not None else ())
            ):  # fmt: skip
                return True
    return False


def _home_beside(
    program: Program, file: File, optimizers: list[ast.expr], uses: Sequence[ast.AST], depth: int
) -> Home | None:
    """The home in the scope that binds the optimizers, through the callers when they are parameters."""
    found = []
    for node in optimizers:
        base: ast.AST = node
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        seen = file.names.lookup(base.id, file.scan.scope_of(base)) if isinstance(base, ast.Name) else None
        if seen is None:
            return None
        found.append(seen)
    if any(scope is not found[0][0] for scope, _ in found):
        return None
    bindings = [binding for _, every in found for binding in every]
    kinds = {binding.kind for binding in bindings}
    if kinds == {"param"}:
        function = found[0][0].node
        parameters = [binding.node for binding in bindings if isinstance(binding.node, ast.arg)]
        return _through_callers(program, file, function, parameters, depth) if isinstance(function, FUNCTIONS) else None
    if kinds != {"assign"}:
        return None
    return _home_behind(file, found[0][0].node, [every for _, every in found], uses)


def _home_behind(file: File, scope: ast.AST, bindings: list[list[Binding]], uses: Sequence[ast.AST]) -> Home | None:
    made = [[binding.node for binding in every] for every in bindings]
    nodes = [node for every in made for node in every]
    if any(isinstance(parent(node), (ast.For, ast.AsyncFor, ast.comprehension)) for node in nodes):
        return None
    if any((enclosing_function(node) or file.scan.tree) is not scope for node in nodes):
        return None  # a function makes it with `global`: a variable there would be its own
    last = _in_time(file, [[statement(node) for node in every] for every in made], uses)
    if last is None:
        return None
    function = enclosing_function(last)
    around = loops_around(last)
    for use in uses:
        if enclosing_function(use) is function and around and loops_around(use) and around[0] is loops_around(use)[0]:
            return None  # a new optimizer for each step
    return Home("local", (last,))


def _takes_another(program: Program, file: File, function: Function, last: ast.arg) -> bool:
    """True where a parameter can be put behind another one, and the file alone calls the function."""
    if function.decorator_list or not isinstance(parent(function), ast.Module):
        return False
    if f"{file.module}.{function.name}" in program.project.used_names or last in function.args.kwonlyargs:
        return False
    every = [*function.args.posonlyargs, *function.args.args]
    # what follows a parameter with a default has to have one
    return every.index(last) < len(every) - len(function.args.defaults)


def _in_time(file: File, made: list[list[ast.stmt]], uses: Sequence[ast.AST]) -> ast.stmt | None:
    """The statement behind which all optimizers are made, and nothing has used one yet; None where there is none.

    `made` are the statements that make each of them. Of several that are made one after the other, it is the last;
    one that is created again after the training has begun goes on with what was there.
    """
    stores = by_place(store for every in made for store in every)
    function = enclosing_function(stores[0])
    here = [use for use in uses if enclosing_function(use) is function]
    block = block_of(stores[0])
    needed = [*here, *(min(every, key=begins) for every in made)]
    branches = (ast.If, ast.Try, ast.With, ast.AsyncWith, ast.ExceptHandler, ast.match_case)
    while (apart := any(lifted(node, block) is None for node in needed)) or (
        not here and isinstance(parent(block[0]), branches)
    ):
        above = parent(block[0])
        while not isinstance(above, (ast.stmt, ast.Module)):
            above = parent(above)  # an except clause, a case
        if not isinstance(above, ast.stmt) or isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            return None
        if not here and _may_train(file, [above], elsewhere=True):
            if apart or any(lifted(store, block) is None for store in stores):
                return None
            break
        block = block_of(above)
    places = sorted({index for store in stores if (index := lifted(store, block)) is not None})
    end = min((index for use in here if (index := lifted(use, block)) is not None), default=len(block))
    last = None
    for place in places:
        if place >= end or (last is not None and _may_train(file, block[last + 1 : place + 1], len(here) < len(uses))):
            break
        last = place
    return block[last] if last is not None else None


def _may_train(file: File, statements: list[ast.stmt], elsewhere: bool) -> bool:
    """True for statements that may run code `elsewhere`: a function of the file."""
    names = {function.name for function in file.scan.functions} if elsewhere else set()
    return any(
        last_name(at) in names
        for item in statements
        if not isinstance(item, (*FUNCTIONS, ast.ClassDef))
        for at in ast.walk(item)
    )


def _through_callers(
    program: Program, file: File, function: Function, parameters: list[ast.arg], depth: int
) -> Home | None:
    """The homes in all callers of a function of the file; None when others may call it."""
    last = max(parameters, key=lambda arg: (arg.lineno, arg.col_offset))
    if depth > 2 or not _takes_another(program, file, function, last):
        return None
    uses = [node for node in file.scan.names.get(function.name, ()) if program.named(file, node) is function]
    homes: list[Home] = []
    hands: list[tuple[ast.Call, ast.expr]] = []
    for use in uses:
        call = call_of(use)
        if call is None:
            return None
        if hides_arguments(call):
            return None
        given = dict(program.arguments(call, function))
        arguments = [given.get(arg.arg) for arg in parameters]
        if not all(isinstance(item, ast.Name) for item in arguments):
            return None
        handed = [item for item in arguments if item is not None]
        home = _home_beside(program, file, handed, [call], depth + 1)
        if home is None:
            return None
        homes.append(home)
        argument = given[last.arg]
        if not _stands_alone(file, call, argument):
            return None
        hands.append((call, argument))
    if not homes:
        return None
    after = {id(item): item for home in homes for item in home.after}
    takes = {(id(item[0])): item for home in homes for item in home.takes}
    more = {(id(item[0]), id(item[1])): item for home in homes for item in home.hands}
    return Home(
        "local",
        tuple(by_place(after.values())),
        takes=((function, last), *takes.values()),
        hands=(*hands, *more.values()),
    )


def _stands_alone(file: File, call: ast.Call, argument: ast.expr) -> bool:
    """False for an argument in brackets of its own."""
    source = file.source
    before = [source.extent(node)[1] for node in (call.func, *call.args) if node.lineno <= argument.lineno]
    start = source.extent(argument)[0]
    at = max(end for end in before if end <= start)
    return source.slice(at, start).count("(") == (at == source.extent(call.func)[1])


def _passed_around(program: Program, file: File, home: Home) -> bool:
    """True when a function that does not get the scaler keeps the optimizer's state: it has to see the scaler too."""
    inside = {id(function) for function, _ in home.takes}
    for name in ("state_dict", "load_state_dict"):
        for node in file.scan.attributes.get(name, ()):
            function = enclosing_function(node)
            if function is None or id(function) in inside or not is_optimizer_object(program, file, node.value):
                continue
            seen = file.names.lookup(variable(node.value), file.scan.scope_of(node))
            if seen is not None and any(binding.kind == "param" for binding in seen[1]):
                return True
    return False


def _in_module(file: File, function: Function | None) -> Home | str:
    """Above the function at module level that trains: the smallest place that outlives all its calls."""
    if function is None:
        return "the place where the optimizer is created was not found"
    return Home("module", above=top_of(function))
