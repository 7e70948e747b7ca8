"""Where the control flow of a program diverges between the ranks, and which of its code is uniform: run by all of
them, and as often.

Control flow diverges on a value that differs between ranks. That is harmless around a print; around a backward pass, a
step or a collective the other ranks wait for ever, or train apart.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from transplt.fixers.distributed.program.divergent_values import (
    CLOCK,
    KEEPS,
    ByOneClock,
    OfFiles,
    Shown,
    Varying,
    draws,
)
from transplt.fixers.distributed.program.kept_tensors import KeptTensors, Rows
from transplt.fixers.distributed.program.losses import loss_readers
from transplt.fixers.distributed.program.outputs import writes_file
from transplt.fixers.distributed.program.process_paths import names_written_to
from transplt.program.gradients import without_gradients
from transplt.program.loops import Loop, loops_around, own_body
from transplt.program.optimizers import OptimizerStep
from transplt.program.program import File, Function, Variable, enclosing_function
from transplt.program.ranks import divides
from transplt.program.training import Training
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import (
    call_of,
    callee_of,
    inner_nodes,
    is_plain,
    keyword_of,
    last_name,
    own_nodes,
    place_in_block,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

ENDS = frozenset({"exit", "_exit", "quit"})
#: What is raised on all ranks alike.
_EVERYWHERE = frozenset(
    "KeyboardInterrupt SystemExit StopIteration ImportError ModuleNotFoundError FileNotFoundError AttributeError "
    "NameError NotImplementedError".split()
)
_MISSING = frozenset({"FileNotFoundError"})


class Divergence:
    """The divergence of the ranks in a program, by what varies between them."""

    def __init__(self, varying: Varying, steps: list[OptimizerStep]) -> None:
        self.varying, self.training, self.program = varying, varying.training, varying.program
        self.every_step, self.steps = steps, {id(step.call) for step in steps}
        self._files: OfFiles | None = None
        self._shown: Shown | None = None
        self.clocked: list[tuple[File, ast.expr]] = []  # conditions that rank 0's clock is to decide for all ranks
        self.kept: KeptTensors | None = None
        self.rows: list[tuple[Rows, bool]] = []  # what is written by numbers of samples; True where all ranks can

    def is_uniform(self, file: File, node: ast.AST) -> bool:
        """True when all ranks run a node as often, as far as its own function and its call sites show."""
        return not self.around(file, node, files=False) and self._is_called_uniformly(enclosing_function(node), set())

    def _is_called_uniformly(self, function: Function | None, seen: set[ast.AST]) -> bool:
        """True when all ranks call a function as often, as far as its call sites show."""
        if function is None or function in seen:
            return True
        seen.add(function)
        if runs_in_worker(function):
            return False  # there is no process group
        for at, call in self.sites(function):
            caller = enclosing_function(call)
            if self.around(at, call, files=False) or not self._is_called_uniformly(caller, seen):
                return False
        return True

    def sites(self, function: Function) -> list[tuple[File, ast.Call]]:
        """The calls in sight of a function, of a constructor those that make an object."""
        found = list(self.program.call_sites.get(function, ()))
        if function.name == "__init__":
            for made, calls in self.program.call_sites.items():
                if isinstance(made, ast.ClassDef) and self.program.constructor(made) is function:
                    found += calls
        return found

    def may_diverge(self, file: File, node: ast.AST, seen: set[ast.AST]) -> bool:
        """True where some ranks may run a node more often with gradients on; a method that nobody is seen to call is
        called by its name."""
        if without_gradients(node):
            return False
        function = enclosing_function(node)
        if function is None or function in seen:
            return bool(self.around(file, node, files=False))
        seen.add(function)
        sites = self.sites(function)
        if not sites and isinstance(parent(function), ast.ClassDef) and not function.name.startswith("_"):
            named = [(at, each) for at in self.program.files for each in at.scan.attributes.get(function.name, ())]
            sites = [(at, call) for at, each in named if (call := call_of(each)) is not None]
        return bool(self.around(file, node, files=False)) or any(self.may_diverge(*site, seen) for site in sites)

    def around(self, file: File, node: ast.AST, *, files: bool) -> list[ast.AST]:
        """What of a node's own function may bring one rank to the node and another one past it, innermost first:
        conditions, loops, `try`, lambdas, and the function itself where it may have returned before. All ranks find the
        same files, unless one of them writes meanwhile: `files` is true where this may be, for conditions on files.
        """
        found: list[ast.AST] = []
        below = node
        for above in chain(node):
            if isinstance(below, ast.stmt):
                found += self._left_before(file, below, files=files)
            if isinstance(above, FUNCTIONS):
                break
            if self._makes_diverge(file, above, node, files=files):
                found.append(parent(above) if isinstance(above, ast.ExceptHandler) else above)
            below = above
        return found

    def _makes_diverge(self, file: File, above: ast.AST, node: ast.AST, *, files: bool) -> bool:
        match above:
            case ast.If() | ast.IfExp():
                return self._diverges(file, above.test, files=files)
            case ast.While():
                ended = self._ends_diverge(file, above, node, files=files)
                return ended or self._diverges(file, above.test, files=files)
            case ast.For() | ast.AsyncFor():
                counted = id(above) not in self.varying.sharded and node is not above.iter
                ended = self._ends_diverge(file, above, node, files=files)
                return ended or (counted and self._rounds_diverge(file, above.iter, files=files))
            case ast.Try():
                last = above.finalbody[:1]
                ended = bool(last) and getattr(node, "lineno", 0) >= last[0].lineno
                parts = not ended and any(_goes_on_divergently(each, files=files) for each in above.handlers)
                return parts and self._goes_on(above, set())
            case ast.Match():
                return self._diverges(file, above.subject, files=files)
            case ast.ExceptHandler():
                return _may_run_divergently(above, files=files)
            case ast.Lambda():
                return True
        # What stands in an expression is lifted out of it, a call is not.
        return isinstance(node, ast.Call) and self._call_diverges(file, above, node, files=files)

    def _call_diverges(self, file: File, above: ast.AST, call: ast.Call, *, files: bool) -> bool:
        """True for an expression that may run a call in it on some ranks only, or more often there."""
        match above:
            case ast.BoolOp():
                before = itertools.takewhile(lambda each: each is not call and each not in chain(call), above.values)
                return any(self._diverges(file, each, files=files) for each in before)
            case ast.comprehension():
                return any(self._diverges(file, each, files=files) for each in above.ifs)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                tests = [each for generator in above.generators for each in generator.ifs]
                heads = [generator.iter for generator in above.generators]
                return any(self._diverges(file, each, files=files) for each in tests) or any(
                    self._rounds_diverge(file, each, files=files) for each in heads
                )
        return False

    def _ends_diverge(self, file: File, loop: Loop, node: ast.AST, *, files: bool) -> bool:
        """True for a loop that a rank may leave after fewer rounds than another one, with what is in its body."""
        if not isinstance(loop, ast.While) and any(each is node for each in ast.walk(loop.iter)):
            return False
        for left in own_body(loop):
            if isinstance(left, ast.Break) and loops_around(left)[:1] == [loop]:
                between = itertools.takewhile(lambda above: above is not loop, chain(left))
                if any(isinstance(each, ast.If) and self._diverges(file, each.test, files=files) for each in between):
                    return True
        return False

    def _left_before(self, file: File, node: ast.stmt, *, files: bool) -> list[ast.AST]:
        """The loop or function that a rank may have left above a statement, by a condition in the same block."""
        if isinstance(node, FUNCTIONS):
            return []
        block, place = place_in_block(node)
        around = loops_around(node)
        found: list[ast.AST] = []
        for test in (inner for item in block[:place] for inner in own_nodes(item) if isinstance(inner, ast.If)):
            leaving = [each for each in own_nodes(test) if isinstance(each, (ast.Return, ast.Break, ast.Continue))]
            function = enclosing_function(node)
            trains = function in self.training.functions  # what has no files then does not train at all
            if not leaving or not self._diverges(file, test.test, files=files and not trains):
                continue
            if function is not None and any(isinstance(each, ast.Return) for each in leaving):
                found.append(function)
            found += [loop for loop in around for each in leaving if loops_around(each)[:1] == [loop]]
        return found

    def _diverges(self, file: File, test: ast.expr, *, files: bool) -> bool:
        """True for a condition that differs between ranks, or asks for the rank, or (with `files`) for files."""
        return self.varying.varies(file, test) or divides(test) or (files and self.asks_files(file, test))

    def _rounds_diverge(self, file: File, over: ast.expr, *, files: bool) -> bool:
        """True for what a loop may go round more often over on one rank, or (with `files`) what hangs on files."""
        return self._counts_diverge(file, over) or (files and self.asks_files(file, over))

    def asks_files(self, file: File, node: ast.expr) -> bool:
        """True for what hangs on files that may be there, or not yet."""
        if self._files is None:
            self._files = OfFiles(self.training)
        return self._files.varies(file, node)

    def shown(self) -> Shown:
        """What differs of what is shown."""
        if self._shown is None:
            known = self.varying
            self._shown = Shown(self.training, known.same, known.evaluating)
        return self._shown

    def _counts_diverge(self, file: File, node: ast.expr) -> bool:
        """True for a loop that may go round more often on one rank: to a number, or over what is kept now and then."""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name == "range":
                return any(self.varying.varies(file, argument) for argument in node.args)
            inner = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
            return any(self._counts_diverge(file, argument) for argument in inner)
        slot = self.program.slot(file, node)
        sources = self.varying.slots.get(slot, ()) if slot else ()
        return any(self.varying.is_under(file, source) for source in sources)

    def divergences(self) -> Iterator[tuple[File, ast.expr | ast.stmt]]:
        """The conditions, loops and handlers that diverge around what the ranks have to do together."""
        for file, node in self.varying.nodes:
            match node:
                case ast.If() | ast.While():
                    if self.varying.varies(file, node.test) and self._matters(file, node):
                        yield file, node.test
                case ast.For() | ast.AsyncFor() if id(node) not in self.varying.sharded:
                    if self._counts_diverge(file, node.iter) and self._together(file, node.body):
                        yield file, node.iter
                case ast.Try():
                    handlers = [handler for handler in node.handlers if _goes_on_divergently(handler)]
                    trains = self._together(file, node.body) and self._goes_on(node, set())
                    if any(trains or self._matters(file, handler) for handler in handlers):
                        yield file, node

    @property
    def has_clocks(self) -> bool:
        """True where control flow diverges by a clock."""
        return any(
            file.names.qualified(call.func) in CLOCK
            for file in self.program.files
            if b"time" in file.source.utf8
            for call in file.scan.calls
        ) and any(isinstance(node, ast.expr) for _, node in self.divergences())

    def diverging_by_clock(self, by_one: Varying) -> list[tuple[File, ast.expr]]:
        """The conditions that diverge by the clocks of the ranks alone: `by_one` has one clock."""
        return [
            (file, test)
            for file, test in self.divergences()
            if isinstance(test, ast.expr) and isinstance(parent(test), (ast.If, ast.While))
            if not by_one.varies(file, test)
        ]

    def _goes_on(self, node: ast.AST, seen: set[ast.AST]) -> bool:
        """True when something runs behind a statement: in its function, or where that is called."""
        if loops_around(node):
            return True
        function = enclosing_function(node)
        for above in [node, *chain(node)]:
            if isinstance(above, FUNCTIONS):
                break
            block, place = place_in_block(above) if isinstance(above, ast.stmt) else ([], 0)
            if any(not isinstance(item, (ast.Return, ast.Pass)) for item in block[place + 1 :]):
                return True
        if function is None or function in seen:
            return False
        seen.add(function)
        return any(self._goes_on(statement(call), seen) for _, call in self.program.call_sites.get(function, []))

    def _matters(self, file: File, node: ast.If | ast.While | ast.ExceptHandler) -> bool:
        if self._together(file, [*node.body, *getattr(node, "orelse", [])]):
            return True
        if isinstance(node, ast.While):
            return False
        for inner in ast.walk(node):
            match inner:
                case ast.Break() | ast.Continue():
                    loop = next(iter(loops_around(inner)), None)
                    if loop is None or loop in ast.walk(node) or not self._together(file, loop.body):
                        continue
                    if not isinstance(inner, ast.Continue) or not self._skips_little(file, inner, loop):
                        return True
                case ast.Call() if last_name(inner.func) in ENDS and self._ends_alone(file, node, inner):
                    return True
                case ast.Return() if (function := enclosing_function(node)) is not None:
                    rest = [item for item in function.body if (item.end_lineno or 0) >= node.lineno]
                    if enclosing_function(inner) is function and self._together(file, rest):
                        return True
        return False

    def _skips_little(self, file: File, node: ast.Continue, loop: Loop) -> bool:
        """True for a `continue` in front of nothing but effects: what the round still does, no later round sees."""
        rest: list[ast.stmt] = []
        for below in [node, *itertools.takewhile(lambda above: above is not loop, chain(node))]:
            if isinstance(below, ast.stmt):
                block, place = place_in_block(below)
                rest += block[place + 1 :]
        if self._together(file, rest):
            return False
        inside = [each for item in rest for each in ast.walk(item)]
        names: list[ast.Name] = []
        for each in inside:
            match each:
                case ast.Break() | ast.Continue() | ast.Return() | ast.Global() | ast.Nonlocal():
                    return False
                case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    return False
                case ast.Call() if self.program.callee(file, each) is not None or last_name(each.func) in KEEPS:
                    return False
                case ast.Name(ctx=ast.Store() | ast.Del()):
                    names.append(each)
        stored = {self.program.slot(file, each) for each in names}
        kept = set(map(id, inside))
        later = (each for name in {each.id for each in names} for each in file.scan.names.get(name, ()))
        read = (each for each in later if isinstance(each.ctx, ast.Load) and id(each) not in kept)
        return isinstance(loop, (ast.For, ast.AsyncFor)) and not any(
            self.program.slot(file, each) in stored and not _given_before(each, loop) for each in read
        )

    def _ends_alone(self, file: File, node: ast.AST, call: ast.Call) -> bool:
        """True where one rank ends the program and the others wait, or are stopped before they have saved.

        Behind an exit code of an error torchrun ends all.
        """
        if not isinstance(node, ast.If) or not self.varying.in_training(file, node):
            return False
        match call.args:
            case [] | [ast.Constant(value=0 | None), *_]:
                return True
        others = [each for item in node.body for each in inner_nodes(item, ast.Call)]
        works = [each for each in others if each is not call and self.program.callee(file, each) is not None]
        return bool(works) or any(writes_file(file, each) for each in others)

    def _together(self, file: File, body: list[ast.stmt]) -> bool:
        """True for statements that make a step or a backward pass, or call what does."""
        calls = (node for item in body for node in own_nodes(item) if isinstance(node, ast.Call))
        return any(id(call) in self.steps or self.training.runs(file, call) for call in calls)

    def chosen(self) -> Iterator[OptimizerStep]:
        """The steps of an optimizer that is chosen by a value which differs between ranks."""
        for step in self.every_step:
            held = [(step.file, step.optimizer), *values_of(self.program, step.file, step.optimizer)]
            choices = [(file, node.slice) for file, node in held if isinstance(node, ast.Subscript)]
            choices += [(file, node) for file, node in held if last_name(callee_of(node)) in ("choice", "sample")]
            if any(self.varying.varies(*choice) for choice in choices):
                yield step

    def noises(self) -> Iterator[tuple[File, ast.expr]]:
        """Draws of each rank that are put into gradients or parameters: `p.grad.add_(torch.randn_like(p))`."""
        for file, call in ((at, each) for at in self.program.files for each in at.scan.calls):
            if keyword_of(call, "generator") or not draws(file.names.qualified(call.func) or "", last_name(call.func)):
                continue
            stored = statement(call)
            named = [each for each in getattr(stored, "targets", ()) if isinstance(each, ast.Name)]
            slots = {self.program.slot(file, each) for each in named}
            users = (each for name in named for each in file.scan.names.get(name.id, ()))
            own = (each for each in users if isinstance(each.ctx, ast.Load) and self.program.slot(file, each) in slots)
            found = (at for at in map(statement, [call, *own]) if _changes_trained(at))
            if (at := next(found, None)) is not None and self.varying.in_training(file, at):
                yield file, call

    def rates(self) -> Iterator[tuple[File, ast.expr]]:
        """Values that set a learning rate and differ between ranks."""
        for file, node in self.varying.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=stepped, attr="step"), args=[rate, *_]):
                    if "sched" in last_name(stepped).lower() and self.varying.varies(file, rate):
                        yield file, rate
                case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="lr")), *_], value=rate):
                    if self.varying.varies(file, rate):
                        yield file, rate


def find_divergence(
    training: Training,
    steps: list[OptimizerStep],
    evaluating: frozenset[int],
    models: frozenset[Variable],
    alike: frozenset[ast.expr] = frozenset(),
) -> Divergence:
    """The divergence in a program whose ranks take the mean of each loss that is read where all of them run.

    `models` hold what an optimizer trains. What `while` reads is read anew in each round: no line in front of it has
    taken the mean. `alike` are expressions that all ranks make alike.
    """
    given = {*map(id, alike)}
    readers = [
        (file, node)
        for file in training.program.files
        for _, nodes in loss_readers(training, file)
        for node in nodes
        if not any(isinstance(above, ast.While) and node in ast.walk(above.test) for above in chain(node))
    ]
    first = Divergence(Varying(training, {id(node) for _, node in readers} | given, evaluating, models), steps)
    same = {id(node) for file, node in readers if first.is_uniform(file, node)} | given
    # Names that all ranks take from rank 0: what no function chooses may stand in front of the process group.
    every = ((file, node) for file in training.program.files for node in names_written_to(training.program, file))
    named = {id(node.value) for file, node in every if enclosing_function(node) and first.is_uniform(file, node)}
    same |= named
    return _settled(first, same, evaluating, models, anew=bool(named) or len(same - given) < len(readers))


def _settled(
    first: Divergence, same: set[int], evaluating: frozenset[int], models: frozenset[Variable], *, anew: bool
) -> Divergence:
    """The divergence where rank 0's clock decides, and all ranks write rows of tables, wherever all of them run: what
    they decide and write makes others run alike, so that each is tried first. `anew`: `first` knew less."""
    training, kept = first.training, KeptTensors(first.varying)
    rows = list(kept.rows())
    # What assigns, at numbers that can be read again behind it.
    shared = [each for each in rows if _assigns(each.stmt) and is_plain(each.table) and is_plain(each.numbers)]
    clocked = first.diverging_by_clock(ByOneClock(training, same, evaluating, models)) if first.has_clocks else []
    while True:
        alike = same | {id(test) for _, test in clocked} | {id(getattr(each.stmt, "value", None)) for each in shared}
        known = not (clocked or shared or anew)
        ways = first if known else Divergence(Varying(training, alike, evaluating, models), first.every_step)
        ways.clocked = [(file, test) for file, test in clocked if ways.is_uniform(file, parent(test))]
        written = [each for each in shared if ways.is_uniform(each.file, each.stmt)]
        if len(ways.clocked) == len(clocked) and len(written) == len(shared):
            ways.kept, ways.rows = kept, [(each, each in written) for each in rows]
            return ways
        clocked, shared = ways.clocked, written


def _changes_trained(stmt: ast.stmt) -> bool:
    """True for what changes `p.grad`, `p.data`, or `p` of `for p in model.parameters()`, in place."""
    match stmt:
        case ast.AugAssign(target=changed) | ast.Assign(targets=[ast.Attribute(attr="data") as changed]):
            pass
        case ast.Expr(ast.Call(func=ast.Attribute(value=ast.expr() as changed, attr=name))) if name.endswith("_"):
            while (first := getattr(getattr(changed, "func", None), "value", None)) is not None:
                changed = first  # `p.mul_(0.9).add_(noise)`
        case _:
            return False
    match changed:
        case ast.Attribute(attr=name):
            return name in ("grad", "data")
        case ast.Name(id=name):
            return any(_gives_parameters(loop, name) for loop in loops_around(stmt))
    return False


def _gives_parameters(loop: Loop, name: str) -> bool:
    """True for a loop in which `name` is each parameter of a model in turn."""
    match loop:
        case ast.For(target=target, iter=items) if name in {each.id for each in inner_nodes(target, ast.Name)}:
            return any(each.attr in ("parameters", "named_parameters") for each in inner_nodes(items, ast.Attribute))
    return False


def _assigns(stmt: ast.stmt) -> bool:
    """True for `table[index] = rows` and `table.index_copy_(0, index, rows)`."""
    match stmt:
        case ast.Assign() | ast.AugAssign():
            return True
        case ast.Expr(ast.Call(func=ast.Attribute(attr="index_copy_"), args=[ast.Constant(0), _, _])):
            return True
    return False


def _given_before(name: ast.Name, loop: Loop) -> bool:
    """True for a name that each round of a loop assigns before it comes to this place, and for one above the loop."""
    if enclosing_function(name) is enclosing_function(loop) and name.lineno < loop.lineno and not loops_around(loop):
        return True
    for below in itertools.takewhile(lambda above: above is not loop, chain(name)):
        block, place = place_in_block(below) if isinstance(below, ast.stmt) else ([], 0)
        targets = (target for item in block[:place] if isinstance(item, ast.Assign) for target in item.targets)
        if loop in chain(name) and any(isinstance(each, ast.Name) and each.id == name.id for each in targets):
            return True
    return False


def runs_in_worker(function: Function) -> bool:
    """True for what the workers of a loader run, by its name."""
    return function.name in ("__getitem__", "worker_init_fn") or "collate" in function.name


def _may_run_divergently(handler: ast.ExceptHandler, *, files: bool) -> bool:
    """True for a handler that may run on some ranks only: not where what it catches happens on all of them, such as the
    end of the data."""
    everywhere = _EVERYWHERE - _MISSING if files else _EVERYWHERE
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return handler.type is None or any(last_name(kind) not in everywhere for kind in kinds)


def _goes_on_divergently(handler: ast.ExceptHandler, *, files: bool = False) -> bool:
    """The same of one behind which the program goes on: it neither raises nor ends the program."""
    if not _may_run_divergently(handler, files=files):
        return False
    match handler.body[-1]:
        case ast.Raise():
            return False
        case ast.Expr(value=ast.Call(func=func)):
            return last_name(func) not in ENDS
    return True
