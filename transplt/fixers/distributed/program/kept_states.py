"""States that are kept over batches and have a say in the loss of the next ones: moving averages, running statistics,
thresholds, weights of losses.

Each rank makes its own of its own batches. Where they are moved by means, the means over the ranks are the same on all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from transplt.base.closure import closure
from transplt.base.grouped import grouped
from transplt.fixers.distributed.program.divergence import Divergence
from transplt.fixers.distributed.program.divergent_values import KEEPS
from transplt.fixers.distributed.program.share_sums import is_mean, measured
from transplt.program.environments import plays
from transplt.program.gradients import without_gradients
from transplt.program.loops import loops_around
from transplt.program.program import File, Program, Variable, enclosing_function, scope_key
from transplt.program.reached_functions import functions_run_from
from transplt.syntax.nodes import arguments_of, by_place, inner_nodes
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement


class Move(NamedTuple):
    """A statement that makes a state of what it was and of what it is `given`; `plain` where it has no gradient."""

    file: File
    stmt: ast.stmt
    given: tuple[ast.expr, ...]
    plain: bool


class KeptStates:
    """The states of a program that differ between ranks, each with the statements that move it."""

    def __init__(self, ways: Divergence) -> None:
        self.ways, self.program, self.training = ways, ways.program, ways.training
        every = [(file, function) for file in self.program.files for function in file.scan.functions]
        self.forwards = {function for _, function in every if function.name == "forward"}
        forwards = [(self.program.owner[each], each) for each in self.forwards]
        self.below = functions_run_from(self.program, forwards) | self.forwards
        loops = self.training.regions
        self.loops = {loop for _, loop in loops}
        self.run = functions_run_from(self.program, [*loops, *forwards]) | self.forwards
        inner = [(file, loop) for file, loop in loops if not any(loop in chain(other) for other in self.loops)]
        self.each = functions_run_from(self.program, [*inner, *forwards]) | self.forwards

    def moves(self) -> Iterator[tuple[Variable, list[Move]]]:
        """The moves of each state, by place."""
        found = [(slot, move) for file in self.program.files for slot, move in self._moves(file)]
        told = _in_losses(self.ways) if found else frozenset()
        for slot, moves in grouped(found).items():
            if slot in told and not self._is_played(slot) and not self._is_made_anew(slot, moves):
                # what it gets from the first batch
                given = [(each.file, statement(each.node), each.node) for each in self.program.values.get(slot, ())]
                own = {id(each.stmt) for each in moves}
                begun = [Move(file, stmt, (node,), True) for file, stmt, node in given
                         if id(stmt) not in own and self._runs(file, stmt, self.run)]  # fmt: skip
                if any(self._differs(each.file, value) for each in (*moves, *begun) for value in each.given) or any(
                    self.ways.varying.is_under(each.file, each.stmt) for each in moves
                ):
                    yield slot, [*moves, *begun]

    def means(self) -> Iterator[tuple[ast.expr, File]]:
        """Those means by which alone a state is moved, where all ranks come by."""
        for _, moves in self.moves():
            parts = [(move, value) for move in moves for value in move.given if self._differs(move.file, value)]
            means = [(mean, move.file) for move, value in parts if (mean := self._mean(move, value)) is not None]
            if len(means) == len(parts) and all(map(self._is_met, moves)):
                yield from means

    def _is_met(self, move: Move) -> bool:
        """True where all ranks come by a move; by one of a forward pass, where they call its object."""
        function = enclosing_function(move.stmt)
        every = [(file, call) for file in self.program.files if function in self.forwards for call in file.scan.calls]
        sites = [(at, call) for at, call in every if self.program.object_runs(at, call.func, "forward") is function]
        met = all(self.ways.is_uniform(*site) for site in [(move.file, move.stmt), *sites])
        return met and (bool(sites) or function not in self.forwards)

    def _mean(self, move: Move, value: ast.expr) -> ast.expr | None:
        """The mean in what a state is given, which even factors may stand beside."""
        match value:
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
                sides = [left, right] if isinstance(value.op, ast.Mult) else [left]
                apart = [each for each in (left, right) if self._differs(move.file, each)]
                return self._mean(move, apart[0]) if len(apart) == 1 and apart[0] in sides else None
            case ast.Call(func=ast.Attribute(attr="mean"), args=[], keywords=[ast.keyword(arg="dim")]):
                return value if move.plain else None
        return value if move.plain and is_mean(self.program, move.file, value) else None

    def _moves(self, file: File) -> Iterator[tuple[Variable, Move]]:
        for node in by_place(each for each in ast.walk(file.scan.tree) if isinstance(each, ast.stmt)):
            for target, values in _changes(node) if self._runs(file, node, self.run) else ():
                slot = self.program.slot(file, base_of(target))
                own = [each for value in values for each in _reads(self.program, file, value, slot)]
                own = [each for each in own if not any(self._is_opaque(file, call, each) for call in chain(each))]
                if slot is not None and own:
                    given = tuple(part for value in values for part in self._without(file, value, slot))
                    cut = any(getattr(parent(each), "attr", "") in ("detach", "data", "item") for each in own)
                    yield slot, Move(file, node, given, without_gradients(node) or not cut)

    def _is_opaque(self, file: File, call: ast.AST, given: ast.expr) -> bool:
        """True for a call of an object that is not in sight: a model, an environment."""
        if not isinstance(call, ast.Call) or any(given is each for each in ast.walk(call.func)):
            return False
        callee, known = self.program.callee(file, call), file.names.qualified(call.func) or ""
        return not (known.startswith(("torch.", "numpy.")) or getattr(call.func, "id", "") in ("min", "max")
                    or (isinstance(callee, FUNCTIONS) and not plays(self.program, callee)))  # fmt: skip

    def _without(self, file: File, value: ast.expr, slot: Variable) -> Iterator[ast.expr]:
        """The parts of an expression that do not hold a variable."""
        if not _reads(self.program, file, value, slot):
            yield value
            return
        match value:
            case ast.BinOp(left=left, right=right):
                for each in (left, right):
                    yield from self._without(file, each, slot)
            case ast.IfExp(body=body, orelse=orelse):
                for each in (body, orelse):
                    yield from self._without(file, each, slot)
            case ast.Call():
                inner = [*arguments_of(value), *([value.func.value] if isinstance(value.func, ast.Attribute) else ())]
                for each in inner:
                    yield from self._without(file, each, slot)

    def _is_made_anew(self, slot: Variable, moves: list[Move]) -> bool:
        """True for what no batch gets from the one before: a variable of what runs in each, or given a value there."""
        own = {id(move.stmt) for move in moves}
        for move in moves:
            function = enclosing_function(move.stmt)
            around = next((loop for loop in loops_around(move.stmt) if loop in self.loops), None)
            local = function is not None and slot[:2] == (move.file.path, scope_key(move.file.scan.scopes[function]))
            if local and around is None:
                return True
            targets = [each.target for each in ast.walk(around or move.stmt) if isinstance(each, ast.For)]
            if any(_reads(self.program, move.file, each, slot) for each in targets):
                return True
            for value in self.program.values.get(slot, ()):
                stmt = statement(value.node)
                inside = around in chain(stmt) or enclosing_function(stmt) in self.each
                if id(stmt) not in own and inside and not any(isinstance(each, ast.If) for each in chain(stmt)):
                    return True
        return False

    def _is_played(self, slot: Variable) -> bool:
        """True for the state of an environment."""
        known = self.program.classes.get(slot[1]) if slot[0] == "self" else None
        return known is not None and any(plays(self.program, each) for each in known[1].body)

    def _runs(self, file: File, node: ast.AST, functions: set[ast.AST]) -> bool:
        return enclosing_function(node) in functions or not self.loops.isdisjoint(loops_around(node))

    def _differs(self, file: File, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """True for what varies, and for what is made of what an object is called with that nobody is seen to call."""
        if self.ways.varying.varies(file, node):
            return True
        function, same = enclosing_function(node), self.ways.varying.same
        if function is None or function not in self.below:
            return False
        for name in inner_nodes(node, ast.Name):
            if not same.isdisjoint(map(id, (name, *chain(name)))):
                continue
            slot = self.program.slot(file, name)
            sized = measured(parent(name)) is name or getattr(parent(name), "attr", "") in ("shape", "device", "dtype")
            values = self.program.values.get(slot, ()) if slot is not None and not sized and name not in seen else ()
            given = function in self.forwards and any(each.arg == name.id for each in function.args.args[1:])
            if (given and not sized and not self.program.call_sites.get(function)) or any(
                self._differs(each.file, each.node, seen | {name}) for each in values if each.node is not node
            ):
                return True
        return False


def _changes(node: ast.stmt) -> list[tuple[ast.expr, list[ast.expr]]]:
    """What a statement changes, each with what it makes it of."""
    match node:
        case ast.AugAssign(target=target, value=value):
            return [(target, [target, value])]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return [(target, [value]) for target, value in zip(targets, values, strict=False)]
        case ast.Assign(targets=[target], value=value):
            return [(target, [value])]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name)) as call) if name.endswith("_"):
            return [(call, [call])]
    return []


def base_of(target: ast.expr) -> ast.expr:
    """The variable that is changed in place by an assignment to its items, and by `x.mul_(m).add_(y)`."""
    while True:
        match target:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="data"):
                target = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                target = inner
            case _:
                return target


def _reads(program: Program, file: File, value: ast.expr, slot: Variable | None) -> list[ast.expr]:
    """Where an expression reads a variable."""
    parts = (each for each in ast.walk(value) if isinstance(each, (ast.Name, ast.Attribute)))
    return [each for each in parts if slot is not None and program.slot(file, each) == slot]


# --- what has a say in a loss ----------------------------------------------------------------------------------------


def _in_losses(ways: Divergence) -> frozenset[Variable]:
    """The variables of which losses are made, through functions, objects and what is kept in containers."""
    program = ways.program
    feeds = grouped(_feeds(program))

    def above(item: tuple[File, ast.AST]) -> Iterator[tuple[File, ast.AST]]:
        file, node = item
        yield from ((file, each) for each in ast.iter_child_nodes(node) if isinstance(each, (ast.expr, ast.keyword)))
        yield from ((file, each.iter) for each in getattr(node, "generators", ()))
        if isinstance(node, (ast.Name, ast.Attribute)) and (slot := program.slot(file, node)) is not None:
            yield from feeds.get(slot, ())
            yield from ((value.file, value.node) for value in program.values.get(slot, ()))
        if isinstance(node, ast.Call):
            runs = [program.object_runs(file, node.func, "forward"), *program.runs(file, node)]
            for callee in runs:
                if isinstance(callee, FUNCTIONS):
                    yield from ((program.owner[callee], value) for value in program.returns(callee))

    begin: list[tuple[File, ast.AST]] = [*ways.training.backwards]
    reached = closure(begin, above)
    slots = (program.slot(file, node) for file, node in reached if isinstance(node, (ast.Name, ast.Attribute)))
    return frozenset(slot for slot in slots if slot is not None)


def _feeds(program: Program) -> Iterator[tuple[Variable, tuple[File, ast.expr]]]:
    """What variables get otherwise than by a plain assignment, and on what it hangs whether they get it."""
    for file in program.files:
        for node in ast.walk(file.scan.tree):
            targets: list[ast.expr] = []
            given: list[ast.expr] = []
            match node:
                case ast.AugAssign(target=target, value=value):
                    targets, given = [target], [value]
                case ast.Assign(targets=targets, value=value):
                    given = [value]
                case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                    targets, given = [target], [value]
                case ast.Call(func=ast.Attribute(value=holder, attr=name)) if name in KEEPS or name.endswith("_"):
                    targets, given = [holder], arguments_of(node)
            if targets and isinstance(node, ast.stmt):
                given = [*given, *(each.test for each in chain(node) if isinstance(each, ast.If))]
            for target in targets:
                for each in getattr(target, "elts", [target]):
                    slot = program.slot(file, base_of(each))
                    if slot is not None:
                        yield from ((slot, (file, value)) for value in given)
