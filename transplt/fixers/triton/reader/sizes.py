"""How large the constexprs of a kernel are: what configurations, launches, heuristics and defaults give them.

A number is known, or it lies between two; one without an upper end grows with the data (`next_power_of_2(n)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from transplt.fixers.triton.reader.elements import launches_of
from transplt.fixers.triton.reader.kernels import Config, Kernel, behind, function_behind, operation
from transplt.fixers.triton.reader.launches import Launch
from transplt.flow.facts import ProjectFacts
from transplt.syntax.files import File
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import inner_nodes, last_name

#: Combinations of the values of comprehensions up to which a configuration is taken apart.
_MOST = 64
#: Expressions in expressions up to which a number is looked for.
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Range:
    """A number: from `least` to `most` (None: without an end); `grows` with the data where it is a power of 2 over
    what is known only when the program runs. `known` where somebody gives just that number.
    """

    least: int = 0
    most: int | None = None
    grows: bool = False

    @property
    def known(self) -> int | None:
        return self.least if self.least == self.most else None


ANY = Range()


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Sizes that a kernel runs with; `node` is where they are said (a configuration or a launch) in `file`."""

    sizes: dict[str, Range]
    file: File
    node: ast.expr | None
    launch: Launch | None = None


def settings_of(kernel: Kernel, project: ProjectFacts) -> list[Setting]:
    """The sizes that a kernel runs with: by launch, and by configuration of the autotuner."""
    found = []
    launches: list[Launch | None] = [*launches_of(kernel, project)]
    for launch in launches or [None]:
        given = _sizes_given(kernel, launch)
        if not kernel.configs:
            file, call = (kernel.file, None) if launch is None else (launch.file, launch.call)
            found.append(Setting(given, file, call, launch))
        for config in kernel.configs:
            every = _of_config(kernel.file, config)
            found += [Setting({**given, **sizes}, kernel.file, config.call, launch) for sizes in every]
    return found


def constants_given(kernel: Kernel, project: ProjectFacts) -> dict[str, object]:
    """The parameters that all launches give one and the same constant, None among them; sizes are not among them."""
    launches = launches_of(kernel, project)
    found: dict[str, object] = {}
    for each in kernel.parameters if all(launch.complete for launch in launches) else ():
        nodes = [(launch.file, launch.arguments.get(each.name, each.default)) for launch in launches]
        values = {value for file, node in nodes if node is not None for value in _constants(file, node)}
        if len(values) == 1 and all(isinstance(behind(file, node), ast.Constant) for file, node in nodes if node):
            (value,) = values
            if value is None or isinstance(value, (bool, str)):
                found[each.name] = value
    configured = {name for config in kernel.configs for name in (*config.values, *kernel.heuristics)}
    return {name: value for name, value in found.items() if name not in configured}


def constants_of(kernel: Kernel, node: ast.expr, project: ProjectFacts) -> set[object]:
    """The constants that an expression of a kernel is known to be: a constant of the file, or a constexpr by what
    launches, configurations and its default give it."""
    if not isinstance(node, ast.Name):
        return set()
    given: list[tuple[File, ast.expr]] = []
    parameter = next((each for each in kernel.parameters if each.name == node.id), None)
    if parameter is None:
        given.append((kernel.file, node))
    else:
        launches = launches_of(kernel, project)
        given += [(each.file, each.arguments[node.id]) for each in launches if node.id in each.arguments]
        given += [(kernel.file, each.values[node.id]) for each in kernel.configs if node.id in each.values]
        if parameter.default is not None and any(node.id not in each.arguments for each in launches):
            given.append((kernel.file, parameter.default))
    return {value for file, each in given for value in _constants(file, each)}


def constant_given(file: File, node: ast.expr) -> object:
    """The one constant that an expression outside of kernels is; `Unset` where that may be several, or none."""
    found = [*_constants(file, node)]
    return found[0] if len(found) == 1 else Unset


class Unset:
    """No value."""


def _constants(file: File, node: ast.expr) -> Iterator[object]:
    """The constants that an expression outside of kernels may be: those of all that sets a variable."""
    value = behind(file, node)
    every = [assigned_value(each.node) for each in file.names.bindings_of(value)]
    for each in every if isinstance(value, ast.Name) else [value]:
        if isinstance(each, ast.Call) and each.args and operation(file, each.func) == "constexpr":
            each = each.args[0]
        if isinstance(each, ast.Constant):
            yield each.value


def _sizes_given(kernel: Kernel, launch: Launch | None) -> dict[str, Range]:
    found = {}
    for each in kernel.parameters:
        if not each.constexpr:
            continue
        if launch is not None and each.name in launch.arguments:
            found[each.name] = range_of(launch.file, launch.arguments[each.name])
        elif each.name in kernel.heuristics:
            value = kernel.heuristics[each.name]
            found[each.name] = range_of(kernel.file, value.body if isinstance(value, ast.Lambda) else value)
        elif each.default is not None and (launch is None or launch.complete):
            found[each.name] = range_of(kernel.file, each.default)
        else:
            found[each.name] = ANY
    return found


def _of_config(file: File, config: Config) -> Iterator[dict[str, Range]]:
    """The sizes of one call of `Config`, once for each turn of the comprehensions around it."""
    turns: list[list[dict[str, Range]]] = []
    above: ast.AST = config.call
    while not isinstance(above, (ast.stmt, ast.Module)):
        if isinstance(above, (ast.ListComp, ast.GeneratorExp)):
            for each in above.generators:
                values = behind(file, each.iter)
                if isinstance(values, (ast.List, ast.Tuple)) and not each.ifs:
                    turns.append([dict(_turn(file, each.target, value)) for value in values.elts])
                else:
                    names = each.target.elts if isinstance(each.target, ast.Tuple) else [each.target]
                    turns.append([{name.id: ANY for name in names if isinstance(name, ast.Name)}])
        above = above._parent  # type: ignore[attr-defined]
    count = prod(map(len, turns))
    for combined in product(*turns) if count <= _MOST else ():
        known = {name: value for each in combined for name, value in each.items()}
        yield {
            name: known[value.id] if isinstance(value, ast.Name) and value.id in known else range_of(file, value)
            for name, value in config.values.items()
        }


def _turn(file: File, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Range]]:
    if isinstance(target, ast.Name):
        yield target.id, range_of(file, value)
    elif isinstance(target, ast.Tuple) and isinstance(value, (ast.Tuple, ast.List)):
        for name, each in zip(target.elts, value.elts, strict=False):
            if isinstance(name, ast.Name):
                yield name.id, range_of(file, each)


def range_of(file: File, node: ast.expr, depth: int = 0) -> Range:
    """What a whole number of the program around a kernel can be."""
    if depth > _DEEPEST:
        return ANY
    match node:
        case ast.Constant(value=int() as value) if type(value) is int and value >= 0:
            return Range(value, value)
        case ast.Name():
            return _variable(file, node, depth)
        case ast.IfExp():
            return _either(range_of(file, node.body, depth + 1), range_of(file, node.orelse, depth + 1))
        case ast.BinOp():
            one, other = range_of(file, node.left, depth + 1), range_of(file, node.right, depth + 1)
            return _together(node.op, one, other)
        case ast.Call():
            return _called(file, node, depth)
    return ANY


def _variable(file: File, node: ast.Name, depth: int) -> Range:
    ranges = []
    for binding in file.names.bindings_of(node):
        stored = binding.node._parent  # type: ignore[attr-defined]
        index: int | None = None
        if isinstance(stored, ast.Tuple):
            index = next((at for at, each in enumerate(stored.elts) if each is binding.node), None)
            stored = stored._parent  # type: ignore[attr-defined]
        if not isinstance(stored, (ast.Assign, ast.AnnAssign)) or stored.value is None:
            return ANY
        value: ast.expr | None = stored.value
        if index is not None:
            value = _part(file, stored.value, index)
        if value is None or any(each.id == node.id for each in inner_nodes(value, ast.Name)):
            return ANY
        ranges.append(range_of(file, value, depth + 1))
    result = ranges[0] if ranges else ANY
    for each in ranges[1:]:
        result = _either(result, each)
    return result


def _part(file: File, value: ast.expr, index: int) -> ast.expr | None:
    """One part of a tuple, also of one that a function of the file returns."""
    if isinstance(value, ast.Call):
        made = function_behind(file, value.func)
        returned = [] if made is None else [each.value for each in inner_nodes(made, ast.Return)]
        if len(returned) != 1 or returned[0] is None:
            return None
        value = returned[0]
    return value.elts[index] if isinstance(value, ast.Tuple) and index < len(value.elts) else None


def _called(file: File, node: ast.Call, depth: int) -> Range:
    name = last_name(node.func)
    given = [range_of(file, each, depth + 1) for each in node.args]
    if name == "next_power_of_2" and len(given) == 1:
        one = given[0]
        most = None if one.most is None else _power(one.most)
        return Range(_power(one.least), most, grows=one.known is None)
    if name in ("min", "max") and len(given) > 1:
        ends = [each.most for each in given]
        known = [each for each in ends if each is not None]
        grows = any(each.grows for each in given)
        if name == "min":
            return Range(min(each.least for each in given), min(known) if known else None, grows)
        most = max(known) if len(known) == len(ends) else None
        return Range(max(each.least for each in given), most, grows and most is None)
    if name == "cdiv" and len(given) == 2:
        return _together(ast.FloorDiv(), given[0], given[1])
    if name == "int" and len(given) == 1:
        return given[0]
    made = function_behind(file, node.func)
    returned = [] if made is None else [each.value for each in inner_nodes(made, ast.Return)]
    if len(returned) == 1 and returned[0] is not None and not isinstance(returned[0], ast.Tuple):
        return range_of(file, returned[0], depth + 1)
    return ANY


def _together(op: ast.operator, one: Range, other: Range) -> Range:
    grows = one.grows or other.grows
    match op, one.known, other.known:
        case ast.Mult(), _, _:
            most = None if one.most is None or other.most is None else one.most * other.most
            return Range(one.least * other.least, most, grows)
        case ast.Add(), _, _:
            most = None if one.most is None or other.most is None else one.most + other.most
            return Range(one.least + other.least, most, grows)
        case ast.FloorDiv(), _, divisor if divisor:
            return Range(one.least // divisor, None if one.most is None else one.most // divisor, grows)
        case ast.FloorDiv(), _, _:
            return Range(0, one.most, grows)
        case ast.Pow(), int() as base, int() as exponent if exponent < 40:
            return Range(base**exponent, base**exponent)
        case ast.LShift(), int() as number, int() as bits if bits < 40:
            return Range(number << bits, number << bits)
    return ANY


def _either(one: Range, other: Range) -> Range:
    most = None if one.most is None or other.most is None else max(one.most, other.most)
    return Range(min(one.least, other.least), most, one.grows or other.grows)


def _power(number: int) -> int:
    return 1 if number <= 1 else 1 << (number - 1).bit_length()
