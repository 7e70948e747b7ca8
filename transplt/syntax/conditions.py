"""What a condition says of its parts, and what runs only if one of them holds."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from transplt.syntax.nodes import following, index_in, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, parent

#: The commonest expressions, which are no conditions of several parts.
_WITHOUT_PARTS = frozenset(
    {ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.List, ast.Tuple, ast.Dict, ast.BinOp}
)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: Calls that end the program.
_STOPS = frozenset({"exit", "_exit", "quit"})
_EXITS = _STOPS | {"skip", "skipTest", "fail", "importorskip"}


class Atom(NamedTuple):
    """A part of a condition that is no `and`, `or` or `not`, and the truth value that it has."""

    node: ast.expr
    truth: bool


def implied(test: ast.expr, truth: bool, *, perhaps: bool = False) -> list[Atom]:
    """The parts of a condition of which a truth value is certain when the condition has one.

    `a.is_cuda or b.is_cuda` is taken for one question, which is asked of two values. `perhaps`: also the parts of any
    other `or`, one of which made the condition true.
    """
    if type(test) in _WITHOUT_PARTS:
        return [Atom(test, truth)]
    found: list[Atom] = []
    stack = [(test, truth)]
    while stack:
        node, wanted = stack.pop()
        parts = _parts(node, wanted, perhaps)
        if parts is None or isinstance(node, ast.NamedExpr):
            found.append(Atom(node, wanted))
        if parts is not None:
            stack += [(part, parts.truth) for part in reversed(parts.nodes)]
    return found


def implies(test: ast.expr, truth: bool, part: Atom, *, perhaps: bool = False) -> bool:
    """Whether a part is among what `implied` finds; of many others only those on the way to it are looked at."""
    way: list[ast.AST] = [part.node]
    while way[-1] is not test:
        if isinstance(way[-1], (ast.stmt, ast.mod)):
            return False
        way.append(parent(way[-1]))
    wanted = truth
    while True:
        node = way.pop()
        assert isinstance(node, ast.expr)
        parts = _parts(node, wanted, perhaps)
        if node is part.node:
            return wanted == part.truth and (parts is None or isinstance(node, ast.NamedExpr))
        if parts is None or not parts.nodes:
            return False
        if len(parts.nodes) == 1:
            while way and way[-1] is not parts.nodes[0]:
                way.pop()
        if not way:
            return False
        wanted = parts.truth


class _Parts(NamedTuple):
    """What a condition is made of, each with the same truth value."""

    nodes: list[ast.expr]
    truth: bool


def _parts(node: ast.expr, wanted: bool, perhaps: bool) -> _Parts | None:
    """The parts of a condition of which a truth value follows from its own; None where it stands for itself."""
    if type(node) in _WITHOUT_PARTS:
        return None
    match node:
        case ast.Call(func=func, args=[given]):
            each = _of_each(node)
            if last_name(func) == "bool":
                return _Parts([given], wanted)
            return None if each is None else _Parts([each.elt], wanted)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _Parts([operand], not wanted)
        case ast.BoolOp(op=op, values=values):
            known = isinstance(op, ast.And) == wanted or (wanted and perhaps)
            if wanted and not known:  # one question of several values: `a.is_cuda or b.is_cuda`
                asked = values[0].attr if isinstance(values[0], ast.Attribute) else ""
                known = all(isinstance(each, ast.Attribute) and each.attr == asked for each in values)
            return _Parts(values if known else [], wanted)
        case ast.NamedExpr(value=value):
            return _Parts([value], wanted)
        case ast.Compare(left=left):
            constant = _compared_with_truth(node)
            return None if constant is None else _Parts([left], wanted == constant)
        case ast.IfExp(test=test):
            answer = _answer_of(node)
            return None if answer is None else _Parts([test], wanted == answer)
    return None


def leaves(body: list[ast.stmt]) -> bool:
    """True for a block behind whose last statement nothing of its own block runs."""
    last = body[-1]
    passed: list[ast.If] = []  # of a chain of `elif` each asks for all behind it
    while isinstance(last, ast.If) and last.orelse and (known := last.__dict__.get("_leaves")) is None:
        passed.append(last)
        if not leaves(last.body):
            known = False
            break
        last = last.orelse[-1]
    else:
        match last:
            case ast.If(orelse=[_, *_]):
                pass
            case ast.Expr(value=ast.Call(func=func)):
                known = last_name(func) in _EXITS
            case _:
                known = isinstance(last, _LEAVES)
    for each in passed:
        each.__dict__["_leaves"] = known
    return bool(known)


#: A list of nodes of a tree, and the index from which on all of them are meant: of 8,000 gates in one block each has
#: what is behind it, and nobody goes through that for each.
Run = tuple[Sequence[ast.AST], int]


class Sides(NamedTuple):
    """What runs only if a part of a condition is true or false, and what runs otherwise; `value`: the expression that
    carries the answer on, where the condition is none of a statement. No run is empty.
    """

    runs: list[Run]
    other_runs: list[Run]
    value: ast.expr | None

    @property
    def this(self) -> list[ast.AST]:
        """All nodes of the one side."""
        return _nodes_of(self.runs)

    @property
    def other(self) -> list[ast.AST]:
        """All nodes of the other side."""
        return _nodes_of(self.other_runs)

    @classmethod
    def of(cls, runs: list[Run], other: list[Run], value: ast.expr | None) -> Sides:
        """The sides with the runs that are not empty."""
        held, not_held = ([run for run in each if run[1] < len(run[0])] for each in (runs, other))
        return cls(held, not_held, value)


def sides_of(node: ast.expr, truth: bool = True) -> Sides:
    """What runs only if an expression has a truth value, and what runs otherwise."""
    runs: list[Run] = []
    current, above = node, parent(node)
    while _passes_on(above, current):
        if isinstance(above, ast.BoolOp):
            index = index_in(above, "values", current)
            # Of `not gpu or f(x)` the second part runs on a GPU only, of `gpu and f(x)` too.
            if implies(current, isinstance(above.op, ast.And), Atom(node, truth), perhaps=True):
                runs.append((above.values, index + 1))
        assert isinstance(above, ast.expr)
        current, above = above, parent(above)
    for way, other_way in ((True, False), (False, True)):
        if not implies(current, way, Atom(node, truth), perhaps=True):
            continue
        ran, not_run = _branches(above, current, way), _branches(above, current, other_way)
        if ran is not None:
            runs += ran
            return Sides.of(runs, not_run or [], None)
    if isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert, ast.comprehension)):
        return Sides.of(runs, [], None)
    return Sides.of(runs, [], current)


def _nodes_of(runs: list[Run]) -> list[ast.AST]:
    found: list[ast.AST] = []
    for nodes, start in runs:
        found += nodes[start:]
    return found


def stops_otherwise(node: ast.expr, truth: bool = True) -> bool:
    """True where the program stops by itself if an expression has not a truth value: it raises, exits, or asserts."""
    sides = sides_of(node, truth)
    this, other, value = sides.this, sides.other, sides.value
    holder: ast.AST = node
    while not isinstance(holder, ast.stmt):
        holder = parent(holder)
    if value is not None or isinstance(holder, ast.Assert):
        return value is None and bool(this)
    alone = isinstance(holder, ast.If) and not other and not holder.orelse and holder.body[0] in this
    if isinstance(holder, ast.If) and alone and leaves(holder.body):
        other = [*following(holder)]
    first = next((each for each in other if not isinstance(each, ast.Assign) and not _is_call(each)), None)
    return isinstance(first, ast.Raise) or any(_is_call(each, _STOPS) for each in other[:1])


def _is_call(node: ast.AST, names: frozenset[str] = frozenset()) -> bool:
    """True for a call that stands for itself: of one of some names, or of any that does not end the program."""
    match node:
        case ast.Expr(value=ast.Call(func=func)):
            return last_name(func) in names if names else last_name(func) not in _EXITS
    return False


def _passes_on(above: ast.AST, current: ast.AST) -> bool:
    match above:
        case ast.BoolOp() | ast.NamedExpr() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt):
            call = parent(above)
            return elt is current and isinstance(call, ast.Call) and _of_each(call) is above
        case ast.Call(func=func, args=args):
            return (last_name(func) == "bool" and args == [current]) or _of_each(above) is current
        case ast.IfExp(test=test):
            return test is current and _answer_of(above) is not None
        case ast.Compare(left=left):
            return left is current and _compared_with_truth(above) is not None
    return False


def _branches(above: ast.AST, test: ast.expr, way: bool) -> list[Run] | None:
    """What runs when a test answers one way; None where it is no test."""
    match above:
        case ast.If(test=asked) | ast.While(test=asked) if asked is test:
            chosen, rest = (above.body, above.orelse) if way else (above.orelse, above.body)
            behind = isinstance(above, ast.If) and bool(rest) and leaves(rest)
            return [(chosen, 0), *([_behind(above)] if behind else [])]
        case ast.IfExp(test=asked, body=body, orelse=other) if asked is test:
            return [([body if way else other], 0)]
        case ast.Assert(test=asked) if asked is test:
            return [_behind(above)] if way else []
        case ast.comprehension() if way:
            parts = (getattr(parent(above), name, None) for name in ("elt", "key", "value"))
            return [([part for part in parts if isinstance(part, ast.AST)], 0)]
        case ast.Call(func=func, args=args) if test in args and (skips := last_name(func)) in SKIPPERS:
            holder = parent(above)
            if isinstance(holder, (*FUNCTIONS, ast.ClassDef)) and above in holder.decorator_list:
                return tested(holder) if way == (skips == "skipUnless") else []
    return None


def tested(holder: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[Run]:
    """What runs of a test, or of a class of tests, that is not skipped."""
    methods = [each.body for each in holder.body if isinstance(each, FUNCTIONS) and isinstance(holder, ast.ClassDef)]
    return [(block, 0) for block in (holder.body, *methods)]


def _behind(node: ast.stmt) -> Run:
    block, index = place_in_block(node)
    return block, index + 1


#: What skips a test by a condition.
SKIPPERS = frozenset({"skipif", "skipIf", "skipUnless"})


def _of_each(call: ast.Call) -> ast.GeneratorExp | ast.ListComp | None:
    """`all(t.is_cuda for t in tensors)`, taken for one question that is asked of several values."""
    match call:
        case ast.Call(func=ast.Name(id="all" | "any"), args=[ast.GeneratorExp() | ast.ListComp() as each]):
            return each
    return None


def _compared_with_truth(node: ast.Compare) -> bool | None:
    """`x is True`, `x == False`: the truth value that x has where it holds; None for anything else."""
    match node:
        case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=bool() as value)]):
            return value
        case ast.Compare(ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=bool() as value)]):
            return not value
    return None


def _answer_of(node: ast.IfExp) -> bool | None:
    """The truth value that `True if test else False` and the like have where their test holds; None for others."""
    match node.body, node.orelse:
        case ast.Constant(value=None | bool() as yes), ast.Constant(value=None | bool() as no) if bool(yes) != bool(no):
            return bool(yes)
    return None
