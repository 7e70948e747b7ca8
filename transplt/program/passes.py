"""Forward and backward passes in the order in which a program makes them, and what of the models they go through.

DistributedDataParallel exchanges gradients in the backward pass that follows a call of the wrapper, once for each such
call (https://docs.pytorch.org/docs/stable/notes/ddp.html): a second backward pass without a forward pass between, a
method called around the wrapper, and a model that runs through another name leave gradients of one rank, in silence.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.gradients import stops_gradients
from transplt.program.models import Models
from transplt.program.program import File, Function, Variable, class_name, enclosing_function
from transplt.program.steps import is_backward_pass
from transplt.rules.torch_callables import MODULE, TENSOR, last_names, names_of
from transplt.syntax.nodes import arguments_of, call_of, last_name
from transplt.syntax.scan import FUNCTIONS

#: Methods that models have and that run nothing of them.
STATE = (
    names_of(MODULE, "runs_nothing")
    | names_of("torch.nn.parallel.DistributedDataParallel")
    | {"save_pretrained", "training", "__class__"}
)
_CUTS = names_of(TENSOR, "cuts", "asks")
_MOST_VISITS = 20_000
_DEEPEST = 12

Origins = frozenset[Variable]
_NONE: Origins = frozenset()


@dataclass(slots=True)
class Passes:
    """What was seen: models that run, that were run around the wrapper, or twice back for once forth."""

    run: set[Variable] = field(default_factory=set)
    around: dict[Variable, tuple[File, ast.expr]] = field(default_factory=dict)
    twice: dict[Variable, tuple[File, ast.expr]] = field(default_factory=dict)
    backwards: set[int] = field(default_factory=set)
    forwards: dict[Variable, int] = field(default_factory=dict)  # the most in front of one backward pass
    complete: bool = True


def find_passes(models: Models) -> Passes:
    """The passes of a program."""
    walker = PassWalker(models)
    walker.follow()
    return walker.found


class PassWalker:
    """Runs a program in mind: each loop twice, both branches; `reach` is what values can go back through."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.program = models.program
        self.found = Passes()
        self.visits = 0
        self.stack: list[ast.AST] = []
        self.returned: list[Origins] = []
        self.start()

    def start(self) -> None:
        """Nothing has run yet."""
        self.reach: dict[Variable, Origins] = {}
        self.fresh: dict[Variable, int] = {}  # forward passes since the last backward pass
        self.marks: dict[Variable, tuple[Variable, File, ast.expr]] = {}
        self.grad = True

    def follow(self, times: int = 1) -> None:
        """Follow the program from its main file, and each function with a backward pass that this did not reach."""
        main = self.program.files[0]
        self.block(main, [node for node in main.scan.tree.body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))])
        for file, call in self.models.training.backwards:
            if id(call) not in self.found.backwards:
                function = enclosing_function(call)
                self.start()
                for _ in range(times):
                    self.block(file, function.body if function is not None else file.scan.tree.body)

    # --- statements --------------------------------------------------------------------------------------------------

    def block(self, file: File, body: list[ast.stmt]) -> None:
        for node in body:
            self.visits += 1
            if self.visits > _MOST_VISITS:
                self.found.complete = False
                return
            self.statement(file, node)

    def statement(self, file: File, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case ast.Assign() | ast.AnnAssign():
                self.assigned(file, node)
            case ast.AugAssign():
                self.store(file, node.target, self.value(file, node.value) | self.value(file, node.target))
            case ast.For() | ast.AsyncFor():
                reach = self.value(file, node.iter)
                for _ in range(2):
                    self.store(file, node.target, reach)
                    self.block(file, node.body)
                self.block(file, node.orelse)
            case ast.While():
                for _ in range(2):
                    self.value(file, node.test)
                    self.block(file, node.body)
                self.block(file, node.orelse)
            case ast.If():
                self.value(file, node.test)
                self.branches(file, node)
            case ast.With() | ast.AsyncWith():
                before = self.grad
                for item in node.items:
                    self.value(file, item.context_expr)
                    self.grad = self.grad and not stops_gradients(item.context_expr)
                self.block(file, node.body)
                self.grad = before
            case ast.Try():
                self.block(file, node.body)
                for handler in node.handlers:
                    self.block(file, handler.body)
                self.block(file, node.orelse)
                self.block(file, node.finalbody)
            case ast.Return():
                reach = self.value(file, node.value) if node.value is not None else _NONE
                if self.returned:
                    self.returned[-1] |= reach
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(file, child)

    def branches(self, file: File, node: ast.If) -> None:
        """Of two branches one runs: a backward pass in each of them is one."""
        before, reach, marks = dict(self.fresh), dict(self.reach), dict(self.marks)
        self.block(file, node.body)
        if not node.orelse:
            return
        first, first_reach, first_marks = self.fresh, self.reach, self.marks
        self.fresh, self.reach, self.marks = dict(before), reach, marks
        self.block(file, node.orelse)
        for origin in {*first, *self.fresh}:
            one, other = first.get(origin, 0), self.fresh.get(origin, 0)
            used_up = min(one, other) < before.get(origin, 0)
            self.fresh[origin] = min(one, other) if used_up else max(one, other)
        every = {*first_reach, *self.reach}
        self.reach = {slot: first_reach.get(slot, _NONE) | self.reach.get(slot, _NONE) for slot in every}
        self.marks |= first_marks

    def assigned(self, file: File, node: ast.Assign | ast.AnnAssign) -> None:
        if node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        reach = self.value(file, node.value)
        for target in targets:
            match target, node.value:
                case ast.Tuple(elts=items), ast.Tuple(elts=values) if len(items) == len(values):
                    for item, value in zip(items, values, strict=True):
                        self.store(file, item, self.value_again(file, value))
                case _:
                    self.store(file, target, reach)

    def store(self, file: File, target: ast.expr, reach: Origins) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self.store(file, item, reach)
        elif isinstance(target, ast.Starred):
            self.store(file, target.value, reach)
        elif (slot := self.program.slot(file, target)) is not None:
            self.reach[slot] = reach
        elif isinstance(target, ast.Subscript) and (slot := self.program.slot(file, target.value)) is not None:
            self.reach[slot] = self.reach.get(slot, _NONE) | reach

    # --- expressions -------------------------------------------------------------------------------------------------

    def value(self, file: File, node: ast.expr) -> Origins:
        """The models through which a value can go back."""
        match node:
            case ast.Name() | ast.Attribute():
                return self.named(file, node)
            case ast.Call():
                return self.call(file, node)
            case ast.Constant() | ast.Lambda() | ast.FormattedValue() | ast.JoinedStr():
                return _NONE
            case ast.Yield(value=ast.expr() as given) | ast.YieldFrom(value=given) if self.returned:
                self.returned[-1] |= self.value(file, given)
                return _NONE
        reach = _NONE
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                reach |= self.value(file, child)
            elif isinstance(child, ast.comprehension):
                inside = self.value(file, child.iter)
                self.store(file, child.target, inside)
                reach |= inside
        return reach

    def named(self, file: File, node: ast.Name | ast.Attribute) -> Origins:
        origin = self.models.origin(file, node)
        if origin is not None:
            return _NONE
        slot = self.program.slot(file, node)
        if slot is not None and slot in self.reach:
            return self.reach[slot]
        if isinstance(node, ast.Attribute):
            owner = self.models.origin(file, node.value)
            if owner is not None:
                return _NONE if node.attr in STATE else self.passed_around(owner, file, node)
            return _NONE if node.attr in _CUTS else self.value(file, node.value)
        return _NONE

    def passed_around(self, origin: Variable, file: File, node: ast.expr) -> Origins:
        """`model.encode(x)`, `model.weight`: what of the model may take part without its wrapper.

        Whether it does is known at the backward pass, to which the value carries a mark.
        """
        if not self.grad or call_of(node) is None or self.makes_anew(last_name(node)):
            return _NONE
        mark = ("around", str(id(node)), "")
        self.marks[mark] = (origin, file, node)
        return frozenset({mark})

    def makes_anew(self, name: str) -> bool:
        """True when every method of that name gives tensors that it has just filled, as `init_hidden` does."""
        classes = [cls for file in self.program.files for cls in file.scan.classes]
        methods = [each for cls in classes for each in cls.body if isinstance(each, FUNCTIONS) and each.name == name]
        values = [value for method in methods for value in self.program.returns(method)]
        return bool(values) and all(_filled(value) for value in values)

    def call(self, file: File, call: ast.Call) -> Origins:
        func = call.func
        origin = self.models.origin(file, func)
        given = _NONE
        every = arguments_of(call)
        for argument in every:
            given |= self.value(file, argument.value if isinstance(argument, ast.Starred) else argument)
        if origin is not None:
            return self.forward(origin) | given if self.grad else _NONE
        if isinstance(func, ast.Attribute) and func.attr not in STATE:
            inner = self.models.origin(file, func.value)
            if inner is not None:
                return self.passed_around(inner, file, func) | given
        if isinstance(func, ast.Attribute) and is_backward_pass(call):
            self.backward(file, call, self.value(file, func.value) | given)
            return _NONE
        callee = self.program.callee(file, call) or self.run_object(file, func)
        if isinstance(callee, FUNCTIONS):
            return self.inlined(file, call, callee)
        if isinstance(callee, ast.ClassDef):
            made = self.program.constructor(callee)
            return (self.inlined(file, call, made) if made is not None else _NONE) | given
        for argument in every:  # functions that are handed over run
            found = self.program.definition(file, argument) if isinstance(argument, (ast.Name, ast.Attribute)) else None
            if isinstance(found, FUNCTIONS) and last_name(func) not in ("map", "partial", "DataLoader"):
                given |= self.inlined(file, None, found)
        if isinstance(func, ast.Attribute):
            if func.attr in _CUTS:
                self.value(file, func.value)
                return _NONE
            return given | self.value(file, func.value if self.models.origin(file, func.value) is None else func)
        return given

    def run_object(self, file: File, func: ast.expr) -> Function | None:
        """What runs when an object of a class of the program is called: its `forward` or `__call__`."""
        slot = self.program.slot(file, func)
        for value in self.program.values.get(slot, ()) if slot else ():
            if isinstance(value.node, ast.Call) and value.index is None:
                made = self.program.named(value.file, value.node.func)
                if isinstance(made, ast.ClassDef):
                    cls = class_name(self.program.owner[made], made)
                    return self.program.method(cls, "forward") or self.program.method(cls, "__call__")
        return None

    def inlined(self, file: File, call: ast.Call | None, function: Function) -> Origins:
        if function in self.stack or len(self.stack) > _DEEPEST or self.visits > _MOST_VISITS:
            return _NONE
        owner = self.program.owner[function]
        if call is not None:
            for name, argument in self.program.arguments(call, function):
                self.reach[self.program.parameter_slot(function, name)] = self.value_again(file, argument)
        before = self.grad
        self.grad = before and not any(stops_gradients(decorator) for decorator in function.decorator_list)
        self.stack.append(function)
        self.returned.append(_NONE)
        fresh = dict(self.fresh)
        self.block(owner, function.body)
        self.stack.pop()
        self.grad = before
        reach = self.returned.pop()
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function)):
            return reach - {each for each in reach if self.fresh.get(each) != fresh.get(each)}  # runs in each turn
        return reach

    def value_again(self, file: File, node: ast.expr) -> Origins:
        """What an argument reaches, without running again what it runs."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.named(file, node)
        reach = _NONE
        for inner in ast.walk(node):
            if (origin := self.models.origin(file, inner)) is not None:
                reach |= self.through(origin) if call_of(inner) is not None else _NONE
            elif isinstance(inner, ast.Name) and (slot := self.program.slot(file, inner)) is not None:
                reach |= self.reach.get(slot, _NONE)
        return reach

    # --- passes ------------------------------------------------------------------------------------------------------

    def forward(self, origin: Variable) -> Origins:
        self.found.run.add(origin)
        self.fresh[origin] = self.fresh.get(origin, 0) + 1
        self.found.forwards[origin] = max(self.found.forwards.get(origin, 0), self.fresh[origin])
        return self.through(origin)

    def through(self, origin: Variable) -> Origins:
        """What the output of a model goes back through."""
        return frozenset({origin})

    def backward(self, file: File, call: ast.Call, reach: Origins) -> None:
        self.found.backwards.add(id(call))
        for mark in [each for each in self.marks if not reach or each in reach]:
            owner, at, node = self.marks.pop(mark)
            self.found.around.setdefault(owner, (at, node))
        reach = frozenset(each for each in reach if each in self.models.origins)
        for origin in reach or [origin for origin, count in self.fresh.items() if count]:
            if not self.fresh.get(origin, 0):
                self.found.twice.setdefault(origin, (file, call))
            self.fresh[origin] = 0


def _filled(node: ast.expr) -> bool:
    """True for `weight.new_zeros(2, 3)`, `torch.zeros(3).to(device)`, and tuples of such."""
    match node:
        case ast.Tuple(elts=every) | ast.List(elts=every):
            return bool(every) and all(_filled(each) for each in every)
        case ast.Call() if last_name(node.func) in last_names("fills"):
            return True
        case ast.Call(args=[first, *_]) if last_name(node.func) == "Variable":
            return _filled(first)
        case ast.Call(func=ast.Attribute(value=tensor, attr=name)) if name in names_of(TENSOR, "keeps_type", "casts"):
            return _filled(tensor)
    return False
