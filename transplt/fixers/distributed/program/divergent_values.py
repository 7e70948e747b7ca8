"""Which values are varying and which uniform between the ranks: what is read from a share of the data or drawn varies,
and all that comes of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial

from transplt.fixers.distributed.program.evaluations import if_training, in_evaluation, never_holds
from transplt.fixers.distributed.program.name_stores import bound_since
from transplt.fixers.distributed.program.outputs import shown
from transplt.fixers.distributed.program.random_draws import drawing_loops
from transplt.program.environments import is_environment, plays
from transplt.program.loops import Loop, counts, loops_around, own_body
from transplt.program.program import File, Function, Program, Variable, enclosing_function
from transplt.program.reached_functions import functions_run_in
from transplt.program.training import Training
from transplt.program.variable_values import values_of
from transplt.rules.torch_callables import full_names, names_of
from transplt.syntax.nodes import arguments_of, callee_of, inner_nodes, last_name, own_nodes, plain_name
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: What asks for files. Ranks that ask one after the other, while one of them writes, may get different answers.
ASKS = frozenset(
    "exists lexists isfile is_file isdir is_dir getsize stat access listdir scandir walk iterdir glob iglob "
    "rglob".split()
)
_SAMPLES = frozenset({"sample", "rsample"})
CLOCK = frozenset("time.time time.perf_counter time.monotonic time.process_time datetime.datetime.now".split())
#: Generators that a process seeds for itself if they are given no seed.
_GENERATORS = frozenset("numpy.random.default_rng numpy.random.RandomState random.Random random.SystemRandom".split())
KEEPS = frozenset("append extend add update insert put push appendleft extendleft".split())
_ASKS = names_of("builtins", "asks")
_SAMPLERS = full_names("shuffles")
_GOES_OVER = frozenset("enumerate islice iter list sorted tuple zip".split())
_HEAPS = frozenset({"heappush", "heappushpop", "heapreplace", "insort", "insort_left", "insort_right"})
#: What gives as many items as there are.
_PICKS = frozenset({"nonzero", "argwhere", "masked_select", "flatnonzero", "unique"})
_NO_DRAWS = frozenset({"seed", "default_rng", "getstate", "setstate", "get_state", "set_state"})


class Varying:
    """The variables of a program whose value differs between ranks. `same`: ids of expressions that are made alike;
    `evaluating`: those of calls that evaluate; `models` hold what an optimizer trains."""

    def __init__(
        self,
        training: Training,
        same: set[int],
        evaluating: frozenset[int] = frozenset(),
        models: frozenset[Variable] = frozenset(),
    ) -> None:
        self.models = models if training.program.once(_forward_draws) else frozenset[Variable]()
        self.training, self.program, self.same, self.evaluating = training, training.program, same, evaluating
        self._whole: _Whole | None = None
        self._evaluated: Varying | None = None
        self._draws_if_training = any(
            b"self.training" in file.source.utf8 or any(never_holds(self.program, call) for call in file.scan.calls)
            for file in training.program.files
        )
        self.slots: dict[Variable, list[ast.AST]] = {}  # with the nodes from which on they differ
        self.unequal: set[Variable] = set()  # those that hold more items on one rank
        self._breaks: dict[Loop, list[ast.Break]] = {}
        self.sharded = {id(loop) for _, loop, loaders in training.loops if loaders}
        self.drawing = drawing_loops(training)
        self.inside = {
            function for file, loop in self.drawing for function in functions_run_in(self.program, file, loop)
        }
        self.nodes = [(file, node) for file in self.program.files for node in ast.walk(file.scan.tree)]
        self._open: set[ast.AST] = set()
        self._returns: dict[ast.AST, bool] = {}
        given: dict[Variable, Function] = {
            self.program.parameter_slot(function, arg.arg): function
            for file in self.program.files
            for function in file.scan.functions
            for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        }
        self._alone = True
        self._spread(given)  # what differs whatever functions are given
        functions = [function for file in self.program.files for function in file.scan.functions]
        self._returns = {function: self._returned(function) for function in functions}
        self._alone = False
        self.slots.clear()
        self.unequal.clear()
        self._spread({})

    # --- values ------------------------------------------------------------------------------------------------------

    def varies(self, file: File, node: ast.expr | None) -> bool:
        """True for an expression that may have another value on each rank."""
        if node is None or id(node) in self.same or isinstance(node, (ast.Constant, ast.Lambda)):
            return False
        if isinstance(node, ast.Call):
            return self._call(file, node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            slot = self.program.slot(file, node)
            sources = self.slots.get(slot, ()) if slot is not None else ()
            if any(_may_follow(node, source) and not bound_since(node, source) for source in sources):
                return True
            if not isinstance(node, ast.Attribute) or node.attr == "dtype":
                return False
            cls = self.program.class_of_object(file, node.value) if slot is None else ""
            kept = ("self", self.program.root_class(cls), node.attr) if cls else None
            return kept in self.slots or self.varies(file, node.value)
        if isinstance(node, ast.Subscript) and isinstance(sized := node.value, ast.Attribute) and sized.attr == "shape":
            return self.is_picked(file, sized.value)  # else batches are of one size on all ranks
        if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        inner += [each for part in getattr(node, "generators", ()) for each in (part.iter, *part.ifs)]
        return any(self.varies(file, each) for each in inner)

    def begun(self, file: File, node: ast.AST | None) -> list[tuple[str, int]]:
        """The variables by which a value differs, each with the line from which on it does, the nearest first, as far
        as one file tells."""
        found: list[tuple[str, int]] = []
        alone = len(self.program.files) == 1
        if isinstance(node, ast.expr):  # behind a method that only gives a length: what it returns
            calls = (self.program.callee(file, call) for call in inner_nodes(node, ast.Call))
            given = (value for each in calls if isinstance(each, FUNCTIONS) for value in self.program.returns(each))
            named = any(map(partial(self.varies, file), inner_nodes(node, ast.Name)))
            node = node if named else next((value for value in given if self.varies(file, value)), node)
        while isinstance(node, ast.expr):
            names = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
            slots = ((name, self.program.slot(file, name)) for name in names if self.varies(file, name))
            known = (
                (name, self.slots[slot])
                for name, slot in slots
                if slot in self.slots and (alone or slot[0] == file.path)
            )
            if (told := next(known, None)) is None:
                break
            source = min(map(statement, told[1]), key=lambda each: each.lineno)
            if (last_name(told[0]), source.lineno) in found:
                break
            found.append((last_name(told[0]), source.lineno))
            node = getattr(source, "value", None)
        return found

    def _call(self, file: File, call: ast.Call) -> bool:
        if (begins := self._begins(file, call)) is not None:
            return begins
        func, callee = call.func, self.program.callee(file, call)
        given = arguments_of(call)
        given_apart = any(self.varies(file, each.value if isinstance(each, ast.Starred) else each) for each in given)
        if isinstance(callee, FUNCTIONS):
            passed_on = given_apart and (self._alone or self._passes_on(callee))
            if id(call) not in self.evaluating:
                return passed_on or self._as_run_by(file, call)._returned(callee)
            if self._whole is None:  # in a function that is given what all ranks go through
                self._whole = _Whole(self.training, self.same, models=self.models)
            return passed_on or self._whole._returned(callee)
        if callee is None and self.models and self.program.slot(file, func) in self.models:
            return given_apart or self.in_training(file, call)
        return given_apart or (isinstance(func, ast.Attribute) and self.varies(file, func.value))

    def _begins(self, file: File, call: ast.Call) -> bool | None:
        """Whether a call gives what differs, or what does not, whatever it is given; None where that decides."""
        func, last = call.func, last_name(call.func)
        known = file.names.qualified(func) or ""
        if known in CLOCK or (known in _GENERATORS and not arguments_of(call)):
            return True
        if draws(known, last) and self.in_training(file, call):
            return True
        asked = func.value if isinstance(func, ast.Attribute) and last in ("step", "reset") else None
        callee = self.program.callee(file, call) if asked is not None else None
        if callee is not None and plays(self.program, callee) and self.in_training(file, call):
            return True
        if asked is not None and callee is None and is_environment(self.program, file, asked):
            return True
        if isinstance(func, ast.Name) and last == "len":
            return bool(call.args) and self.is_picked(file, call.args[0])
        if isinstance(func, ast.Name) and last in {*_ASKS, "range"}:
            return False
        if last in _GOES_OVER and any(self._draws_order(file, each) for each in call.args):
            return True
        sized = last in ("size", "numel") and self.program.callee(file, call) is None
        if isinstance(func, ast.Attribute) and (sized or (last in _SAMPLES and not known)):
            if last not in _SAMPLES:
                return self.is_picked(file, func.value)
            return self.in_training(file, call)
        return None

    def _as_run_by(self, file: File, call: ast.Call) -> Varying:
        """What differs where a call runs: in an evaluation, a model draws nothing that it draws `if self.training`."""
        if not self._draws_if_training or not in_evaluation(file.scan, call):
            return self
        if self._evaluated is None:
            self._evaluated = _Evaluated(self.training, self.same, self.evaluating, self.models)
        return self._evaluated

    def _passes_on(self, function: Function) -> bool:
        """True for a function that may return what differs when what it is given does."""
        if function in self._open:
            return True
        self._open.add(function)
        owner = self.program.owner[function]
        found = any(self.varies(owner, value) for value in self.program.returns(function))
        self._open.discard(function)
        return found

    def _returned(self, function: Function) -> bool:
        """True for a function that returns what differs by itself, whatever it is given here.

        A method may return what other calls have left in its object.
        """
        if function in self._open:
            return False
        of_object = isinstance(parent(function), ast.ClassDef)
        if function not in self._returns or (of_object and not self._returns[function]):
            owner = self.program.owner[function]
            self._open.add(function)
            if self._alone or function not in self._returns:
                found = any(self.varies(owner, value) for value in self.program.returns(function))
            else:
                found = self._returns_kept(owner, function)
            self._returns[function] = found
            self._open.discard(function)
        return self._returns[function]

    def _returns_kept(self, file: File, function: Function) -> bool:
        """True for a method that returns what differs and was kept in its object, whatever it is given."""
        names: set[str] = set()

        def hangs(value: ast.AST) -> bool:
            for node in ast.walk(value):
                callee = self.program.callee(file, node) if isinstance(node, ast.Call) else None
                if isinstance(callee, FUNCTIONS) and self._returned(callee):
                    return True
                if isinstance(node, ast.Name) and node.id in names:
                    return True
                slot = self.program.slot(file, node) if isinstance(node, ast.Attribute) else None
                if slot is not None and slot[0] == "self":
                    sized = last_name(getattr(parent(node), "func", None)) == "len"
                    if slot in (self.unequal if sized else self.slots):
                        return True
            return False

        inside = [node for item in function.body for node in own_nodes(item)]
        before = -1
        while before < len(names):
            before = len(names)
            for targets, value in map(_bindings, inside):
                if value is not None and hangs(value):
                    names |= {each.id for at in targets for each in inner_nodes(at, ast.Name)}
        return any(hangs(value) for value in self.program.returns(function))

    def in_training(self, file: File, node: ast.AST) -> bool:
        """True for code that runs in the training loop, where each rank draws for itself."""
        around = loops_around(node)
        return enclosing_function(node) in self.inside or any(
            at is file and loop in around for at, loop in self.drawing
        )

    def _spread(self, without: Mapping[Variable, Function]) -> None:
        """Mark what differs; of the parameters of functions, `without` what callers give them."""
        before = -1
        while before != (before := len(self.unequal) + sum(map(len, self.slots.values()))):
            if without:
                self._returns.clear()
            for slot, values in self.program.values.items():
                for value in values:
                    if slot in without and enclosing_function(value.node) is not without[slot]:
                        continue
                    if self.varies(value.file, value.node) or self.is_under(value.file, value.node):
                        self._add(slot, value.node)
            for file, node in self.nodes:
                self._bound(file, node)

    def _bound(self, file: File, node: ast.AST) -> None:
        match node:
            case ast.For() | ast.AsyncFor() if id(node) in self.sharded:
                if (batch := batch_of(file, node)) is not None:
                    self._mark(file, batch)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                if self.varies(file, node.iter) or self._draws_order(file, node.iter):
                    self._mark(file, node.target)
            case ast.AugAssign():
                if self.varies(file, node.value) or self._more_often(file, node, set()):
                    self._mark(file, node.target)
            case ast.Assign():
                for each, value in (pair for target in node.targets for pair in _parts(target, node.value)):
                    if (slot := self.program.slot(file, each)) is not None and self.is_picked(file, value):
                        self.unequal.add(slot)
                    known = isinstance(each, (ast.Name, ast.Attribute)) and node in chain(each)[:2]
                    if not known and self.varies(file, value):
                        self._mark(file, each)
            case ast.Call():
                self._kept(file, node)
                self._spread_out(file, node)

    def is_picked(self, file: File, node: ast.expr, seen: frozenset[Function] = frozenset()) -> bool:
        """True for what holds as many items as the values of one rank let through: `x[x > limit]`, `mask.nonzero()`."""
        match node:
            case ast.Name() | ast.Attribute():
                return self.program.slot(file, node) in self.unequal
            case ast.Tuple(elts=parts):
                return any(self.is_picked(file, each, seen) for each in parts)
            case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
                return self.varies(file, lower) or self.varies(file, upper) or self.is_picked(file, node.value, seen)
            case ast.Call(func=ast.Attribute(value=same, attr="tolist" | "numpy" | "cpu"), args=[]):
                return self.is_picked(file, same, seen)
            case ast.Subscript(slice=index) if self.varies(file, index):
                return any(map(is_mask, (index, *(each for _, each in values_of(self.program, file, index)))))
            case ast.Call():
                callee = self.program.callee(file, node)
                if not isinstance(callee, FUNCTIONS):
                    return last_name(node.func) in _PICKS and self._call(file, node)
                owner, given = self.program.owner[callee], self.program.returns(callee)
                return callee not in seen and any(self.is_picked(owner, each, seen | {callee}) for each in given)
        return False

    def _draws_order(self, file: File, node: ast.expr) -> bool:
        """True for going over a random sampler, also in batches, in training: a loader draws that for all ranks."""
        found = values_of(self.program, file, shown(file, node))
        for at, each in found[:]:
            if isinstance(each, ast.Call) and last_name(each.func) == "BatchSampler":
                found += [one for given in arguments_of(each)[:1] for one in values_of(self.program, at, given)]
        drawn = any(at.names.qualified(callee_of(each)) in _SAMPLERS for at, each in found)
        return drawn and self.in_training(file, node)

    def _spread_out(self, file: File, call: ast.Call) -> None:
        """Mark what `f(*values)` gives to a function."""
        starred = [] if self._alone else [each.value for each in call.args if isinstance(each, ast.Starred)]
        function = self.program.callee(file, call) if any(self.varies(file, each) for each in starred) else None
        if isinstance(function, FUNCTIONS):
            for arg in function.args.args[isinstance(parent(function), ast.ClassDef) :]:
                self._add(self.program.parameter_slot(function, arg.arg), call)

    def _kept(self, file: File, call: ast.Call) -> None:
        """Mark what holds what a call is given; what a method of the program keeps, it assigns."""
        match call:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if (
                name in KEEPS | _HEAPS and self.program.callee(file, call) is None
            ):
                holder, *given = [owner, *call.args] if name in KEEPS else call.args
                kept = any(self.varies(file, each) for each in given if not isinstance(each, ast.Starred))
                more = self._more_often(file, call, set())
                if more and (slot := self.program.slot(file, holder)) is not None:
                    self.unequal.add(slot)
                if kept or more:
                    self._mark_kept(file, holder)
            case ast.Call(func=ast.Name(id="next"), args=[_, *_]) if isinstance(stored := statement(call), ast.Assign):
                loops = [loop for at, loop, loaders in self.training.loops if at is file and loaders]
                asking = [loop for loop in loops if isinstance(loop, ast.While) or counts(loop)]
                if any(loop in chain(call) for loop in asking):
                    for target in stored.targets:
                        self._mark(file, target)

    def _mark(self, file: File, node: ast.expr) -> None:
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for item in parts:
                    self._mark(file, item)
            case ast.Starred(value=inner):
                self._mark(file, inner)
            case ast.Subscript(value=holder):
                self._mark_kept(file, holder)
            case _ if (slot := self.program.slot(file, node)) is not None:
                self._add(slot, node)

    def _mark_kept(self, file: File, holder: ast.expr) -> None:
        """Mark what is changed in place, and what callers have given for it."""
        self._mark(file, holder)
        slot, function = self.program.slot(file, holder), enclosing_function(holder)
        if isinstance(holder, ast.Name) and function and slot == self.program.parameter_slot(function, holder.id):
            for value in self.program.values.get(slot, ()):
                if enclosing_function(value.node) is not function and isinstance(value.node, (ast.Name, ast.Attribute)):
                    self._mark(value.file, value.node)

    def _add(self, slot: Variable, source: ast.AST) -> None:
        known = self.slots.setdefault(slot, [])
        if not any(each is source for each in known):
            known.append(source)

    def is_under(self, file: File, node: ast.AST) -> bool:
        """True for what is assigned under a condition that differs between ranks."""
        for above in chain(node):
            if isinstance(above, FUNCTIONS):
                return False
            if isinstance(above, (ast.If, ast.While)) and self.varies(file, above.test):
                return not any(inner is node for inner in ast.walk(above.test))
        return False

    def _more_often(self, file: File, node: ast.AST, seen: set[ast.AST]) -> bool:
        """True for what one rank may run more often: under a condition that differs, in a loop that such a condition
        ends, or in a function that is called there."""
        for loop in loops_around(node):
            if loop not in self._breaks:
                inside = (each for each in own_body(loop) if isinstance(each, ast.Break))
                self._breaks[loop] = [each for each in inside if loops_around(each)[0] is loop]
            if any(self.is_under(file, each) for each in self._breaks[loop]):
                return True
        function = enclosing_function(node)
        if self.is_under(file, node) or function is None or function in seen:
            return self.is_under(file, node)
        seen.add(function)
        return any(self._more_often(at, call, seen) for at, call in self.program.call_sites.get(function, ()))


class _Whole(Varying):
    """What differs between ranks when all of them go through the same data."""

    def _bound(self, file: File, node: ast.AST) -> None:
        if not isinstance(node, (ast.For, ast.AsyncFor)) or id(node) not in self.sharded:
            super()._bound(file, node)


class ByOneClock(Varying):
    """What would differ between ranks if all of them had one clock."""

    def _begins(self, file: File, call: ast.Call) -> bool | None:
        return False if file.names.qualified(call.func) in CLOCK else super()._begins(file, call)


class Shown(ByOneClock):
    """What people are shown may differ for another reason: an object holds what its methods are given (a meter)."""

    def _begins(self, file: File, call: ast.Call) -> bool | None:
        drawn = draws(file.names.qualified(call.func) or "", last_name(call.func))
        of_model = drawn and isinstance(parent(enclosing_function(call) or call), ast.ClassDef)
        return False if of_model else super()._begins(file, call)  # one rank's noise is as good as another's

    def _kept(self, file: File, call: ast.Call) -> None:
        super()._kept(file, call)
        method, holder = self.program.callee(file, call), getattr(call.func, "value", call.func)
        cls = parent(method) if isinstance(method, FUNCTIONS) else None
        if method is not None and isinstance(cls, ast.ClassDef) and not self.training.functions.intersection(cls.body):
            names = self.program.owner[cls].names
            of_torch = any((names.qualified(base) or "").startswith("torch.") for base in cls.bases)
            keeps = any(plain_name(each.value) == "self" for each in inner_nodes(method, ast.Attribute))
            if keeps and not of_torch and any(self.varies(file, each) for each in arguments_of(call)):
                self._mark(file, holder)


class _Evaluated(Varying):
    """What differs between ranks in what runs in an evaluation alone."""

    def _as_run_by(self, file: File, call: ast.Call) -> Varying:
        return self

    def _begins(self, file: File, call: ast.Call) -> bool | None:
        return False if if_training(call) or never_holds(self.program, call) else super()._begins(file, call)


class OfFiles(_Whole):
    """What hangs on files. All ranks see the same where nobody writes them meanwhile: no barrier may count on it."""

    def __init__(self, training: Training) -> None:
        words = [word.encode() for word in ASKS]
        self.asks = any(word in file.source.utf8 for file in training.program.files for word in words)
        if self.asks:
            super().__init__(training, set())

    def varies(self, file: File, node: ast.expr | None) -> bool:
        return self.asks and super().varies(file, node)

    def _begins(self, file: File, call: ast.Call) -> bool | None:
        last = last_name(call.func)
        if last in ASKS and self.program.callee(file, call) is None:
            return True
        return False if isinstance(call.func, ast.Name) and last in _ASKS else None


def batch_of(file: File, loop: ast.For | ast.AsyncFor) -> ast.expr | None:
    """What a loop over a loader gives a batch to; None for one that counts, and asks the loader with next()."""
    if counts(loop):
        return None
    match loop.target, shown(file, loop.iter):
        case ast.Tuple(elts=[_, batch]), ast.Call(func=ast.Name(id="enumerate")):
            return batch
    return loop.target


def draws(name: str, last: str) -> bool:
    """True for what draws from a generator that each rank has its own state of while it trains."""
    if name.startswith("torch."):
        return last in names_of("torch", "draws")
    return name.startswith(("numpy.random.", "random.")) and last[:1].islower() and last not in _NO_DRAWS


def is_mask(node: ast.AST) -> bool:
    """True for a comparison, also of several that are joined."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="float" | "long" | "int" | "bool")):
            return is_mask(inner)
        case ast.Call(func=ast.Attribute(attr="ne" | "eq" | "gt" | "lt" | "ge" | "le" | "logical_not")):
            return True
        case ast.UnaryOp(operand=inner) | ast.BinOp(left=inner, op=ast.BitAnd() | ast.BitOr()):
            return is_mask(inner)
    return isinstance(node, ast.Compare)


def _forward_draws(program: Program) -> bool:
    """Whether a forward pass of the program's own layers draws random numbers, and not `if self.training` alone."""
    passes = [
        (file, function) for file in program.files for function in file.scan.functions if function.name == "forward"
    ]
    below = [(program.owner[each], each) for file, top in passes for each in functions_run_in(program, file, top)]
    return any(
        draws(file.names.qualified(call.func) or "", last_name(call.func)) and not if_training(call)
        for file, function in (*passes, *below)
        for call in inner_nodes(function, ast.Call)
    )


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The parts of a target, each with its own part of a value where that is written out, else with all of it."""
    targets, given = getattr(target, "elts", [target]), getattr(value, "elts", ())
    if len(given) == len(targets):  # `a[i], b[i] = x, y` are two
        yield from (part for pair in zip(targets, given, strict=True) for part in _parts(*pair))
    else:
        yield from ((each, value) for each in targets)


def _bindings(node: ast.AST) -> tuple[list[ast.expr], ast.expr | None]:
    """What a node binds, and to what."""
    match node:
        case ast.Assign():
            return node.targets, node.value
        case ast.For() | ast.AsyncFor():
            return [node.target], node.iter
        case ast.AugAssign() | ast.AnnAssign() | ast.NamedExpr():
            return [node.target], node.value
    return [], None


def _may_follow(node: ast.AST, source: ast.AST) -> bool:
    """False for a node that runs before what makes a variable differ: above it in one function, with no loop around."""
    function = enclosing_function(node)
    if enclosing_function(source) is not function or getattr(node, "lineno", 0) >= getattr(source, "lineno", 0):
        return True
    if function is not None and any(isinstance(above, FUNCTIONS) for above in chain(function)):
        return True
    around = loops_around(node)
    return any(above in around for above in chain(source))
