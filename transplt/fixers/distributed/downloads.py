"""What is downloaded: rank 0 goes first, at a place that all ranks come by alike, or a person has to see to it.

The others wait at a barrier until rank 0 is there. A rank that does not come by, since it finds the file of another
one, leaves them there for ever: what sends ranks past a download stands between the two barriers as a whole.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from transplt.fixers.distributed.bench import Bench
from transplt.fixers.distributed.once import fetches
from transplt.fixers.distributed.varying import own_nodes, runs_in_worker
from transplt.program.loops import Loop, loops_around
from transplt.program.models import is_optimizer
from transplt.program.program import File, Function, enclosing_function
from transplt.syntax.asks import block_of, by_place, keyword_of, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_CODE, _LEFT = "NPU343", "NPU344"
AT_ONCE = "every rank downloads this at once"
_DO = "let rank 0 go first: dist.barrier() before it on the others, and after it on rank 0"
_UNSEEN = "and when this runs cannot be seen"
#: What asks a generator for all that it has, before the statement ends.
_EAGER = frozenset("list tuple set frozenset dict sum min max sorted ConcatDataset join".split())


def downloads(node: ast.AST) -> bool:
    """True when an expression downloads a dataset."""
    return any(isinstance(inner, ast.Call) and _asks_to(inner) for inner in ast.walk(node))


def _asks_to(call: ast.Call) -> bool:
    value = keyword_of(call, "download")
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


class Downloads:
    """The downloads of a program, and the functions that rank 0 runs first, each as a whole, where they are called.

    `fetching` load from the net by themselves. `whole` hold a download that not every rank comes by.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench, self.varying, self.program = bench, bench.verdict.varying, bench.program
        self.fetching = {
            function
            for file in self.program.files
            for function in file.scan.functions
            if function is not bench.start.function and function not in bench.training.functions
            for call in ast.walk(function)
            if isinstance(call, ast.Call) and fetches(file, call)
        }
        self.whole: set[ast.AST] = set()
        before = -1
        while before != len(self.whole):
            before = len(self.whole)
            for file in self.program.files:
                for call in file.scan.calls:
                    function = enclosing_function(call)
                    if function is None or function in self.first or not self.is_one(file, call):
                        continue
                    if self._has_to_be_whole(file, call, function) and self._may_be_whole(function):
                        self.whole.add(function)
        self.alone: set[int] = set()  # ids of calls that are written behind a barrier of their own
        self.regions: list[list[ast.stmt]] = []  # what stands between two barriers

    @property
    def first(self) -> set[ast.AST]:
        """The functions that rank 0 runs first."""
        return self.fetching | self.whole

    def is_one(self, file: File, call: ast.Call) -> bool:
        """True for a call that downloads, or runs a function that does."""
        if _asks_to(call):
            return True
        callee = self.program.callee(file, call) if self.fetching or self.whole else None
        return callee is not None and self.program.constructor(callee) in self.first

    def _called_alike(self, function: Function | None) -> bool:
        """True when all ranks call a function as often; of a method whose calls cannot be followed, those of its name.

        What is only handed over (to a thread, a pool, a hook) is called nobody knows when.
        """
        if function is None or function is self.bench.start.function or self.varying.sites(function):
            return self.varying.called_alike(function, files=True)
        named = [
            (file, call)
            for file in self.program.files
            for call in file.scan.calls
            if isinstance(call.func, ast.Attribute) and call.func.attr == function.name
        ]
        method = isinstance(parent(function), ast.ClassDef)
        return method and bool(named) and all(self.varying.alike(file, call, files=True) for file, call in named)

    def stands_alone(self, call: ast.Call) -> bool:
        """True where barriers may stand right around the statement of a download."""
        function = enclosing_function(call)
        alike = function not in self.first and self._called_alike(function)
        return alike and self._place(self.bench.file, call) is statement(call)

    # --- places ------------------------------------------------------------------------------------------------------

    def _place(self, file: File, call: ast.Call) -> ast.stmt | None:
        """The statement to put between the barriers; None where what holds the call runs at another time."""
        place = statement(call)
        for above in chain(call):
            if isinstance(above, ast.stmt):
                break
            if isinstance(above, ast.Lambda) or (isinstance(above, ast.GeneratorExp) and not _used_up(above)):
                return None
        apart = [above for above in self.varying.around(file, call, files=True) if not isinstance(above, FUNCTIONS)]
        for above in chain(call):
            if isinstance(above, FUNCTIONS):
                break
            held = isinstance(above, (ast.With, ast.AsyncWith)) and any(map(_waits_or_hides, above.items))
            if isinstance(above, ast.stmt) and (held or any(above is each for each in apart)):
                place = above
        while True:
            above = parent(place)
            if isinstance(above, ast.If) and isinstance(place, ast.If) and _is_elif(place, above):
                place = above
            elif (loop := _loop_left_by(place)) is not None:
                place = loop
            else:
                return place

    def _has_to_be_whole(self, file: File, call: ast.Call, function: Function) -> bool:
        returns = any(above is function for above in self.varying.around(file, call, files=True))
        place = self._place(file, call)
        if place is not None and any(isinstance(node, ast.Return) for node in own_nodes(place)):
            returns = True
        return returns or not self._called_alike(function)

    def _may_be_whole(self, function: Function) -> bool:
        """True for a function whose calls are in sight, and that holds nothing that all ranks do together."""
        if function is self.bench.start.function or isinstance(function, ast.AsyncFunctionDef):
            return False
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for item in function.body for node in own_nodes(item)):
            return False
        sites = self.varying.sites(function)
        if any(runs_in_worker(above) for _, call in sites if (above := enclosing_function(call)) is not None):
            return False
        return bool(sites) and not self._together(self.program.owner[function], function.body)

    def _together(self, file: File, nodes: list[ast.stmt]) -> bool:
        """True for code that trains, makes an optimizer, wraps a model or starts the process group."""
        bench = self.bench
        apart = [wrap.after for wrap in bench.wraps.values()]
        if not any(bench.start.first is node for node in nodes):  # the start stands in front of it
            apart.append(bench.start.first)
        pending, seen = [(file, node) for node in nodes], set[ast.AST]()
        while pending:
            at, node = pending.pop()
            for inner in own_nodes(node):
                if any(inner is each for each in apart) or any(inner is loop for _, loop in bench.training.regions):
                    return True
                if not isinstance(inner, ast.Call):
                    continue
                callee = self.program.callee(at, inner)
                if is_optimizer(at, inner) or bench.training.runs(at, inner):
                    return True
                function = self.program.constructor(callee) if callee is not None else None
                if function is not None and function not in seen:
                    seen.add(function)
                    pending += [(self.program.owner[function], item) for item in function.body]
        return False

    def covers(self, node: ast.AST) -> bool:
        """True for code that rank 0 runs before the others: none of them may wait for it there."""
        return enclosing_function(node) in self.whole or any(
            each in run for run in self.regions for each in (node, *chain(node))
        )

    # --- what is written ---------------------------------------------------------------------------------------------

    def write(self, after_start: Callable[[ast.AST], bool], reached: set[ast.AST]) -> None:
        """The barriers around the downloads of the file on the bench."""
        bench = self.bench
        for each in bench.file.scan.functions:
            if each in self.fetching and each in reached and not self.varying.sites(each):
                inside = by_place(inner for inner in ast.walk(each) if isinstance(inner, ast.Call))
                self.left(next(call for call in inside if fetches(bench.file, call)), _UNSEEN)
        places: dict[int, tuple[ast.stmt, ast.Call]] = {}
        for call in by_place(bench.file.scan.calls):
            function = enclosing_function(call)
            if id(call) in self.alone or function in self.first or not self.is_one(bench.file, call):
                continue
            deferred = (place := self._place(bench.file, call)) is None
            if not after_start(call) and not (deferred and function is None):
                continue
            if place is None:
                self.left(call, _UNSEEN)
            elif self._has_to_be_apart(call, function):
                self.left(call, "and not every rank may come by here")
            else:
                places.setdefault(id(place), (place, call))
        for run in _runs([place for place, _ in places.values()]):
            self._around(run, places[id(run[0])][1])

    def _has_to_be_apart(self, call: ast.Call, function: Function | None) -> bool:
        if function is None:
            return False
        if function is self.bench.start.function:
            return any(above is function for above in self.varying.around(self.bench.file, call, files=True))
        return self._has_to_be_whole(self.bench.file, call, function)

    def _around(self, run: list[ast.stmt], call: ast.Call) -> None:
        bench = self.bench
        if not bench.fits(*run) or any(isinstance(node, FUNCTIONS) for node in run):
            self.left(call, "")
        elif any(map(_leaves, run)):
            self.left(call, "and the code around it may leave here")
        elif self._together(bench.file, run):
            self.left(call, "within what all ranks have to do together")
        else:
            self.regions.append(run)
            before, after = bench.first_rank("rank 0 downloads first")
            bench.before(run[0], before, _CODE, "rank 0 downloads first")
            bench.after(run[-1], after, _CODE, "the others find what rank 0 downloaded")

    def left(self, call: ast.Call, why: str) -> None:
        """Leave a download to a person; `why` adds to the reason that every rank does it, or is empty."""
        self.bench.left(call, f"{AT_ONCE}, {why}" if why else AT_ONCE, _DO, code=_LEFT)


def _runs(places: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Neighbouring statements together; none that stands in another one."""
    outer = [place for place in places if not any(each in chain(place) for each in places)]
    ordered = by_place(outer)
    while ordered:
        run = [ordered.pop(0)]
        block = block_of(run[0])
        while ordered and ordered[0] in block and block.index(ordered[0]) == block.index(run[-1]) + 1:
            run.append(ordered.pop(0))
        yield run


def _used_up(node: ast.GeneratorExp) -> bool:
    call = parent(node)
    return isinstance(call, ast.Call) and node in call.args and last_name(call.func) in _EAGER


def _waits_or_hides(item: ast.withitem) -> bool:
    """True for a lock, which a rank would hold at the barrier, and for `suppress`, which may leave the block early."""
    call = item.context_expr
    name = last_name(call.func if isinstance(call, ast.Call) else call).lower()
    return "lock" in name or name == "suppress"


def _is_elif(node: ast.If, above: ast.If) -> bool:
    block, _ = place_in_block(node)
    return block is above.orelse and len(block) == 1 and node.col_offset == above.col_offset


def _loop_left_by(node: ast.stmt) -> Loop | None:
    """The loop around a statement that it may leave, or begin anew."""
    for inner in own_nodes(node):
        if isinstance(inner, (ast.Break, ast.Continue)):
            loop = loops_around(inner)[0]
            if loop is not node and node not in chain(loop):
                return loop
    return None


def _leaves(node: ast.stmt) -> bool:
    """True for a statement that may end its function, or gives over in its middle."""
    return any(isinstance(inner, (ast.Return, ast.Yield, ast.YieldFrom)) for inner in own_nodes(node))
