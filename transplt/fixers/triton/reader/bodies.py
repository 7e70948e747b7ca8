"""The body of a kernel as a loop over its blocks: which statements go into it, and what each round begins anew with."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.fixers.triton.reader.kernels import Kernel, operation
from transplt.syntax.nodes import block_of, inner_nodes, is_none, own_nodes, string_of
from transplt.syntax.scan import chain, parent, statement


@dataclass(slots=True, frozen=True)
class Exit:
    """A `return` at the end of an `if` at the top of a body, `inner` of ifs in it, and the statements that follow."""

    test: ast.If
    line: ast.Return
    rest: list[ast.stmt]
    inner: bool


@dataclass(slots=True, frozen=True)
class Change:
    """A parameter that a block changes. `first` is the statement that does so before anything else reads what it holds
    then; None where all of its uses have to begin with a copy.
    """

    name: str
    first: ast.Assign | ast.AugAssign | None
    uses: list[ast.Name]


@dataclass(slots=True)
class Body:
    """The statements of a kernel that a loop goes around; the parameters that they change, which each round needs as
    they were given; the ways out of it.
    """

    looped: list[ast.stmt]
    changed: list[Change]
    exits: list[Exit] = field(default_factory=list)


def body_of(kernel: Kernel) -> Body | str:
    """What a loop goes around in a kernel, or why it cannot."""
    statements = kernel.node.body
    first = 1 if isinstance(statements[0], ast.Expr) and string_of(statements[0].value) is not None else 0
    while first < len(statements) and _stays_above(kernel, statements, first):
        first += 1
    looped = statements[first:]
    if not looped:
        return "nothing in it depends on its program"
    names = {name for each in looped for name in stored_in(each)}
    changed = [_change(kernel, each.name, looped) for each in kernel.parameters if each.name in names]
    if any(each.name in kernel.constexprs for each in changed):
        return "it changes a constexpr"
    if any(each.first is None and _may_be_none(kernel, each.name) for each in changed):
        return "it changes a parameter that may be None"
    if any(isinstance(node, (ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal))
           for line in statements for node in ast.walk(line)):  # fmt: skip
        return "it defines functions"
    exits = _exits(statements[:first], looped)
    return exits if isinstance(exits, str) else Body(looped, changed, exits)


def _exits(above: list[ast.stmt], looped: list[ast.stmt]) -> list[Exit] | str:
    """The ways out of a body that a loop goes around, below the statements above it; or why there cannot be a loop."""
    found = []
    for index, each in enumerate(looped):
        returns = [node for node in own_nodes(each) if isinstance(node, ast.Return)]
        if not returns:
            continue
        if len(returns) > 1 or returns[0].value is not None or not (ifs := _ending_in(each, returns[0])):
            return "it returns inside a statement"
        before, rest = [*above, *looped[:index]], looped[index + 1 :]
        if not rest:
            return "it returns at its end"
        # Triton may not take both ways below an `if` together: a name that is set in one may be of another type.
        gone, goes_on = _kept(ifs[-1].body), _kept(rest)
        set_before = {name for line in before for name in stored_in(line)}
        twice = (gone & (goes_on | set_before)) or (goes_on & (set_before | _kept([each])))
        if twice:
            return f"{min(twice)} is set around a return, and may be of two types"
        found.append(Exit(ifs[0], returns[0], rest, len(ifs) > 1))
    return found


def _change(kernel: Kernel, name: str, looped: list[ast.stmt]) -> Change:
    """How a parameter is changed: all uses from its first new value on are those of a block."""
    uses = [each for each in kernel.names(name) if each.lineno >= looped[0].lineno]
    store = next(each for each in uses if isinstance(each.ctx, ast.Store))
    line = statement(store)
    plain = isinstance(line, ast.Assign) and line.targets == [store]
    added = isinstance(line, ast.AugAssign) and isinstance(line.op, (ast.Add, ast.Sub))
    around = [each for each in chain(line) if each is not kernel.node and isinstance(each, ast.stmt)]
    inside = sum(kernel.holds(each) for each in around)
    branches = all(isinstance(each, ast.If) for each in around[:inside])
    if isinstance(line, (ast.Assign, ast.AugAssign)) and (plain or added) and branches:
        block = block_of(line)
        behind = [inner for each in block[block.index(line) + 1 :] for inner in ast.walk(each)]
        later = [each for each in uses if each.lineno > (line.end_lineno or line.lineno)]
        # Tests that are the same for all blocks: a place under them all is reached only where the line is.
        known = _fixed_tests(kernel, line)
        apart = [each for each in later if not any(each is inner for inner in behind)]
        if all(known and {*known} <= {*(_fixed_tests(kernel, each, among=True) or ())} for each in apart):
            return Change(name, line, [store, *later] if plain else later)
    return Change(name, None, uses)


def _fixed_tests(kernel: Kernel, node: ast.AST, *, among: bool = False) -> list[str] | None:
    """The tests of the ifs around a place; None where one is not known when the kernel is compiled, unless that may
    stand among them.
    """
    found = []
    below: ast.AST = node
    for above in chain(node):
        if above is kernel.node:
            break
        if isinstance(above, ast.If) and any(below is each for each in above.body) and _is_fixed(kernel, above.test):
            found.append(ast.dump(above.test))
        elif not among:
            return None
        below = above
    return found


def _is_fixed(kernel: Kernel, test: ast.expr) -> bool:
    """True for a test of constexprs, or of whether a parameter is None."""
    match test:
        case ast.BoolOp():
            return all(_is_fixed(kernel, each) for each in test.values)
        case ast.UnaryOp():
            return _is_fixed(kernel, test.operand)
        case ast.Compare(ops=ops) if all(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
            return all(isinstance(each, ast.Constant) for each in test.comparators)
    names = {each.id for each in inner_nodes(test, ast.Name)}
    return not any(inner_nodes(test, ast.Call)) and bool(names) and names <= kernel.constexprs


def _may_be_none(kernel: Kernel, name: str) -> bool:
    """True for a parameter that the kernel compares with None, or that is None unless it is given."""
    default = next((each.default for each in kernel.parameters if each.name == name), None)
    tests = (parent(each) for each in kernel.names(name))
    asked = any(isinstance(each, ast.Compare) and isinstance(each.ops[0], (ast.Is, ast.IsNot)) for each in tests)
    return asked or is_none(default)


def _ending_in(node: ast.stmt, line: ast.Return) -> list[ast.If]:
    """The ifs without an `else` that end in each other and the last of them in a return; empty for other forms."""
    found = []
    while isinstance(node, ast.If) and not node.orelse:
        found.append(node)
        if node.body[-1] is line:
            return found
        node = node.body[-1]
    return []


def stored_in(node: ast.AST) -> set[str]:
    """The names that a statement gives a value."""
    return {each.id for each in inner_nodes(node, ast.Name) if isinstance(each.ctx, ast.Store)}


def _kept(statements: list[ast.stmt]) -> set[str]:
    """The names that statements set; what loops alone set does not outlive them in Triton."""
    found: set[str] = set()
    for each in statements:
        match each:
            case ast.For() | ast.While():
                pass
            case ast.If():
                found |= _kept(each.body) | _kept(each.orelse)
            case ast.With():
                found |= _kept(each.body)
            case _:
                found |= stored_in(each)
    return found


def _stays_above(kernel: Kernel, statements: list[ast.stmt], index: int) -> bool:
    """True for a statement that gives every block the same, and that no block changes."""
    node = statements[index]
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return False
    operations = {operation(kernel.file, each.func) for each in inner_nodes(node, ast.Call)}
    if "program_id" in operations or any(each.startswith("atomic_") for each in operations):
        return False
    mine = stored_in(node)
    if mine & {each.name for each in kernel.parameters}:
        return False
    return all(not mine & stored_in(other) for other in statements[index + 1 :])
