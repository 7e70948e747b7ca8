"""The pieces of one file: what its functions, classes and variables reach, and under which conditions.

One walk over the statements of each function. What only the CUDA side of a gate reaches belongs to nobody: the gate is
asked about it by itself. transplt/flow/gates/cuda_reach.py puts the pieces of all files together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from transplt.flow.gates.card_reads import READ_ATTRIBUTES, needed_by_read
from transplt.flow.gates.code import CodeStep, Guard, Placing, Reference, Slot
from transplt.flow.gates.conditions import (
    LOAD_FAILS,
    denies_cuda,
    goes_on_without,
    is_gate,
    is_option,
    sounds_like_a_flag,
    speaks_of_cuda,
)
from transplt.flow.gates.cuda_code import CudaCode
from transplt.flow.slot_stores import store_slots
from transplt.flow.slots import Slots
from transplt.rules.torch_callables import MODULE, last_names, names_of
from transplt.syntax.conditions import Atom, implied, leaves
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS, parent

_VALUE_HOLDERS = frozenset(
    {ast.Assign, ast.AnnAssign, ast.Return, ast.IfExp, ast.Tuple, ast.List, ast.Dict, ast.NamedExpr}
)
#: Calls that put a value on a device, or say which device it is.
_PLACES = names_of(MODULE, "to_card") | last_names("replicates", "distributes") | {"set_device", "device"}
#: Expressions whose value may be the answer of a gate; names and attributes by what they are called.
_CARRIERS = frozenset({ast.Call, ast.BoolOp, ast.UnaryOp, ast.Compare})
_NAMED = frozenset({ast.Name, ast.Attribute})
#: Expressions that ask for no device by themselves, and those that read a slot.
_NO_GATES = frozenset({ast.Name, ast.Subscript, ast.Constant, ast.BinOp})
_ASKED = frozenset({ast.Name, ast.Attribute, ast.Call, ast.Subscript})
#: Expressions whose value may be a function, a class, or a module.
_MAY_HOLD_CODE = frozenset({ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.BoolOp})
_HOLDS_MODULE = ("plugin", "ext", "kernel", "module", "lib", "backend", "_C")


class WalkState(NamedTuple):
    """Where the walk is: on the CUDA side of a gate, behind an option, behind flags that are true or false.

    `guards` have the line on which each is asked, and whether it is an option; `option` is for conditions without one.
    """

    cuda: bool = False
    option: bool = False
    guards: tuple[tuple[Guard, int, bool], ...] = ()

    def step(self, ref: Reference) -> CodeStep:
        """A reference where the walk is."""
        if not self.guards:
            return CodeStep(ref, self.option)
        option = self.option or any(option for _, _, option in self.guards)
        return CodeStep(ref, option, tuple(guard for guard, _, _ in self.guards))


#: Where a walk begins.
_START = WalkState()
_PLACING = Placing()


class Stored(NamedTuple):
    """A value that is returned, or assigned to a name or an attribute (`target`)."""

    statement: ast.stmt
    target: ast.expr | None
    value: ast.expr | None
    state: WalkState


@dataclass(slots=True)
class Walk:
    """What the walk over some code found; `reached` are the steps of the code itself."""

    code: CudaCode
    tries: bool = True  # what stands in a `try` that has another way is an option
    reached: list[CodeStep] = field(default_factory=list)
    behind: dict[Guard, list[CodeStep]] = field(default_factory=dict)
    holders: dict[Slot, list[CodeStep]] = field(default_factory=dict)
    stored: list[Stored] = field(default_factory=list)
    values: list[ast.expr] = field(default_factory=list)  # assigned, returned or passed on: they may carry a gate

    @property
    def slots(self) -> Slots:
        return self.code.slots

    # --- statements --------------------------------------------------------------------------------------------------

    def block(self, statements: Iterable[ast.AST], state: WalkState | None = None) -> None:
        """Walk over the statements of a block, or over expressions, in their order."""
        inner: list[tuple[Iterable[ast.AST], WalkState]] = []
        blocks: list[list[Any]] = [[iter(statements), state or _START]]
        while blocks:
            block = blocks[-1]
            nodes, here = block
            for node in nodes:
                here = self._statement(node, here, inner)
                if inner:
                    block[1] = here
                    blocks += [[iter(each), there] for each, there in reversed(inner)]
                    inner.clear()
                    break
            else:
                blocks.pop()

    def alone(self, node: ast.AST, here: WalkState) -> WalkState:
        """Walk over one statement with its blocks; the state in which those after it run."""
        inner: list[tuple[Iterable[ast.AST], WalkState]] = []
        after = self._statement(node, here, inner)
        for each, there in inner:
            self.block(each, there)
        return after

    def _statement(self, node: ast.AST, here: WalkState, inner: list[tuple[Iterable[ast.AST], WalkState]]) -> WalkState:
        """Walk over one statement, its blocks left to `inner`; the state in which those after it run."""
        kind = type(node)
        if kind is ast.Expr:
            self._expression(node.value, here)  # type: ignore[attr-defined]
        elif kind in _PLAIN:
            self._simple(node, here, inner)
        elif isinstance(node, (ast.If, ast.While)):
            self._expression(node.test, here)
            inner.append((node.body, self.under(here, node.test, True)))
            inner.append((node.orelse, self.under(here, node.test, False)))
            if isinstance(node, ast.If):
                if leaves(node.body) and not (node.orelse and leaves(node.orelse)):
                    return self.under(here, node.test, False, behind=True)
                if node.orelse and leaves(node.orelse):
                    return self.under(here, node.test, True, behind=True)
        elif isinstance(node, _TRIES):
            caught = here._replace(option=True) if self.tries and goes_on_without(node, LOAD_FAILS) else here
            inner += [(node.body, caught), (node.orelse, caught)]
            inner += [(handler.body, here._replace(option=True)) for handler in node.handlers]
            inner.append((node.finalbody, here))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for ref in self.code.imported(node):
                self._reach(ref, here)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for decorator in node.decorator_list:
                self._expression(decorator, here)
        elif isinstance(node, ast.expr):
            self._expression(node, here)
        else:
            self._simple(node, here, inner)
        return here

    def _simple(self, node: ast.AST, here: WalkState, inner: list[tuple[Iterable[ast.AST], WalkState]]) -> None:
        if isinstance(node, ast.Assign):  # most are
            for target in node.targets:
                self.stored.append(Stored(node, target, node.value, here))
                self._hold(target, node.value, here)
            for target in node.targets:
                if type(target) is not ast.Name:
                    self._expression(target, here)
            self._expression(node.value, here)
            return
        if isinstance(node, ast.Return):
            self.stored.append(Stored(node, None, node.value, here))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.stored.append(Stored(node, node.target, node.value, here))
            self._hold(node.target, node.value, here)
        for name in node._fields:
            value: Any = getattr(node, name, None)
            if name in ("body", "orelse", "finalbody"):
                inner.append((value, here))
            elif name == "cases":
                inner += [(case.body, here) for case in value]
            elif name == "items":
                for item in value:
                    self._expression(item.context_expr, here)
            elif isinstance(value, list):
                for each in value:
                    if isinstance(each, ast.expr):
                        self._expression(each, here)
            elif isinstance(value, ast.expr):
                self._expression(value, here)

    # --- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, top: ast.expr, state: WalkState) -> None:
        texts = self.code.reads_texts
        stack: list[tuple[Any, WalkState]] = [(top, state)]
        while stack:
            node, here = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                if _is_kept(node):
                    self._keep(node, here)
                continue
            if kind is ast.Constant:
                if (texts or here.guards) and type(node.value) is str:
                    self._text(node, here)
                continue
            if kind is ast.Attribute:
                if node.attr in READ_ATTRIBUTES:
                    for ref in needed_by_read(self.code.slots, node):
                        self._reach(ref, here)
                if _is_kept(node):
                    self._keep(node, here)
                if type(node.value) is not ast.Name:
                    stack.append((node.value, here))
                continue
            if kind is ast.BoolOp:
                wanted = isinstance(node.op, ast.And)
                parts = []
                for value in node.values:
                    parts.append((value, here))
                    here = self.under(here, value, wanted)
                stack += reversed(parts)
                continue
            if kind is ast.IfExp:
                stack += [(node.orelse, self.under(here, node.test, False)),
                          (node.body, self.under(here, node.test, True)), (node.test, here)]  # fmt: skip
                continue
            skipped = _SKIPPED[kind in _VALUE_HOLDERS, texts or bool(here.guards)]
            if kind is ast.Call:
                self._call(node, here)
                for keyword in reversed(node.keywords):
                    if type(keyword.value) not in skipped:
                        stack.append((keyword.value, here))
                stack += [(value, here) for value in reversed(node.args) if type(value) not in skipped]
                if type(node.func) is not ast.Name:
                    stack.append((node.func, here))
                continue
            for name in _INSIDE.get(kind) or _fields_inside(kind):
                value = getattr(node, name, None)
                if type(value) is list:
                    stack += [(each, here) for each in reversed(value) if type(each) not in skipped]
                elif type(value) not in skipped and isinstance(value, _INNER):
                    stack.append((value, here))

    def _call(self, node: ast.Call, here: WalkState) -> None:
        if self.code.asks:
            for value in node.args:
                if _may_carry(value):
                    self.values.append(value)
            for keyword in node.keywords:
                if _may_carry(keyword.value):
                    self.values.append(keyword.value)
        for ref in self.code.called(node):
            self._reach(ref, here)
        if here.guards and last_name(node.func) in _PLACES:
            self._reach(_PLACING, here)

    def _keep(self, node: ast.expr, here: WalkState) -> None:
        for ref in self.code.held(node):
            self._reach(ref, here)

    def _text(self, node: ast.Constant, here: WalkState) -> None:
        if here.guards and str(node.value).startswith(("cuda", "npu")):
            self._reach(_PLACING, here)
        for ref in self.code.constant(node):
            self._reach(ref, here)

    def _hold(self, target: ast.expr, value: ast.expr, here: WalkState) -> None:
        """What a variable or an attribute holds that may be called."""
        if here.cuda or type(value) not in _MAY_HOLD_CODE or not isinstance(target, (ast.Name, ast.Attribute)):
            return
        arms = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        arms = value.values if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) else arms
        refs: list[Reference] = []
        for arm in arms:
            if isinstance(arm, ast.Call):
                made = last_name(arm.func).lstrip("_")
                if made[:1].isupper() or any(word in last_name(target) for word in _HOLDS_MODULE):
                    refs += self.code.called(arm)
                elif type(target) is ast.Name and parent(parent(target)) is self.slots.scan.tree:
                    refs += self._handed_over(arm)
            else:
                refs += self.code.held(arm)
        for slot in store_slots(self.slots, target, ()) if refs else ():
            self.holders.setdefault(self.code.shared(slot), []).extend(here.step(ref) for ref in refs)

    def _handed_over(self, call: ast.Call) -> Iterator[Reference]:
        """The functions that a call is given, of whose result a module makes a name: `op = register("op", fn=f)`; or
        what it compiles.
        """
        yield from self.code.compiled(call)
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            if type(value) in _NAMED:
                yield from self.code.held(value)
            elif isinstance(value, ast.Lambda):
                inside = Walk(self.code)
                inside.block([value.body])
                yield from (step.ref for step in inside.reached)

    # --- conditions --------------------------------------------------------------------------------------------------

    def under(self, here: WalkState, test: ast.expr, truth: bool, *, behind: bool = False) -> WalkState:
        """The state on one side of a condition."""
        cuda, option, guards = here
        for atom in implied(test, truth):
            if self.asks_for_cuda(atom):
                cuda = True
                continue
            # Behind `if not available: return` all the rest would be an option.
            chosen = speaks_of_cuda(atom.node) or (not behind and self._is_option(atom.node))
            if guard := self.guard_of(atom):
                if all(guard != each for each, _, _ in guards):
                    guards = (*guards, (guard, atom.node.lineno, chosen))
            else:
                option = option or chosen
        return WalkState(cuda, option, guards)

    def _is_option(self, node: ast.expr) -> bool:
        known = self.code.options.get(id(node))
        if known is None:
            known = self.code.options[id(node)] = is_option(self.slots, node)
        return known

    def asks_for_cuda(self, atom: Atom) -> bool:
        """True where a part of a condition says that the device is one of CUDA."""
        if type(atom.node) in _NO_GATES:
            return False
        return is_gate(self.slots, atom.node) if atom.truth else denies_cuda(self.slots, atom.node)

    def guard_of(self, atom: Atom) -> Guard | None:
        """What holds, for a part of a condition that reads a variable, or calls a function of the project."""
        node = atom.node
        if type(node) not in _ASKED:
            return None
        known = self.code.asked.get(id(node), "")
        if known == "":
            known = self.code.asked[id(node)] = self.slots.of(node)
        return None if known is None else self.code.guard(known, atom.truth)

    def _reach(self, ref: Reference, here: WalkState) -> None:
        if here.cuda:
            return
        if ref is not _PLACING:
            self.reached.append(here.step(ref))
        for guard, line, _ in here.guards:
            # A flag may be the option itself: what is behind it alone is behind no other.
            option = here.option or any(chosen for other, _, chosen in here.guards if other != guard)
            self.behind.setdefault(guard, []).append(CodeStep(ref, option, site=f"{self.slots.scan.path}:{line}"))


def stores_in(statements: Iterable[ast.AST]) -> Iterator[Stored]:
    """What a block stores, in the order in which `Walk` meets it, whatever that is behind."""
    stack = [*reversed([*statements])]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Assign):
            yield from (Stored(node, target, node.value, _START) for target in node.targets)
        elif isinstance(node, ast.Return):
            yield Stored(node, None, node.value, _START)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield Stored(node, node.target, node.value, _START)
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Expr)):
            for name in ("cases", "finalbody", "handlers", "orelse", "body"):  # the last is walked first
                stack += reversed(getattr(node, name, ()))


#: The fields that are walked, by the kind of an expression.
_INSIDE: dict[type[ast.AST], tuple[str, ...]] = {}
#: What is not walked: names that are not kept, strings that nobody reads. By whether the node above keeps its parts,
#: and whether strings are read.
_SKIPPED: dict[tuple[bool, bool], frozenset[type]] = {
    (False, False): frozenset({type(None), ast.Name, ast.Constant}),
    (False, True): frozenset({type(None), ast.Name}),
    (True, False): frozenset({type(None), ast.Constant}),
    (True, True): frozenset({type(None)}),
}
_INNER = (ast.expr, ast.keyword, ast.comprehension, ast.arguments, ast.Slice)
#: Statements without conditions, imports and definitions: most of all.
_PLAIN = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.For, ast.With, ast.Raise})
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))


def _fields_inside(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of an expression that hold others, the last first."""
    leave = ("ctx", "op", "ops", "id", "attr", "arg", "kind", "conversion", "type_comment")
    fields = _INSIDE[kind] = tuple(name for name in reversed(kind._fields) if name not in leave)
    return fields


def _may_carry(value: ast.expr) -> bool:
    """True for an argument that may be the answer of a gate."""
    kind = type(value)
    return kind in _CARRIERS or (kind in _NAMED and sounds_like_a_flag(last_name(value)))


def _is_kept(node: ast.expr) -> bool:
    above = parent(node)
    kind = type(above)
    if kind is ast.IfExp:
        return above.test is not node  # type: ignore[attr-defined]
    if kind is ast.Assign:
        return above.value is node  # type: ignore[attr-defined]
    return kind in _VALUE_HOLDERS
