"""What is downloaded: the ranks of a host go one after the other through it, so that all but the first find it there.

A lock between processes, and no barrier: a rank that does not come by leaves nobody waiting, and a lambda or a worker
may hold it. What asks for the files stands inside of it, and nothing that all ranks do together does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.divergent_values import draws
from transplt.fixers.distributed.program.downloads import (
    cached_samples,
    download_calls,
    fetching_functions,
    names_in,
    names_stored,
    opens,
    runs_later,
    users,
)
from transplt.program.models import is_optimizer
from transplt.program.program import File, enclosing_function
from transplt.program.reached_functions import functions_run_from
from transplt.syntax.nodes import block_of, inner_nodes, last_name, own_nodes, place_in_block
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_CODE, _LEFT = "NPU343", "NPU344"
_MESSAGE = "the ranks of a host take turns: the first fetches or makes the file, the others find it"
AT_ONCE = "every rank downloads this at the same time"
_WRITES = "every rank may write this at the same time"
_ASIDE = "write it under a name of the process, and rename it when it is whole: os.replace(own, path)"
_DO = 'let the ranks take turns: with npu_port.first_on_host("downloads"):'


class Downloads:
    """The downloads of a program, and what of the file on the bench stands under the lock."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.ways, self.program = bench, bench.verdict.ways, bench.program
        self.fetching = fetching_functions(bench.training, bench.start.function)
        self.regions: list[tuple[list[ast.stmt], ast.Call]] = []
        self.apart: list[ast.Call] = []  # in a lambda, or in what runs at another time than its statement
        self.left: list[tuple[ast.Call, str]] = []
        self.cached: set[ast.Call] = set()
        self._plan()

    def covers(self, node: ast.AST) -> bool:
        """True for code under the lock: nobody may wait for another rank there, and any rank may be the first."""
        return enclosing_function(node) in self.fetching or any(
            each in run for run, _ in self.regions for each in (node, *chain(node))
        )

    def write(self) -> None:
        bench = self.bench
        for call, why in self.left:
            bench.left(call, f"{_WRITES if call in self.cached else AT_ONCE}, {why}", _DO, code=_LEFT)
        for run, call in self.regions:
            bench.wrap(run, f'with {bench.call("first_on_host")}("downloads"):', _CODE, _MESSAGE)
            if call in self.cached and bench.alike(run[0]) and bench.fits(run[-1]) and self._draws(run):
                why = "the rank that makes the file has drawn random numbers: all go on with those of rank 0"
                bench.after(run[-1], [f"{bench.call('same_draws')}()"], _CODE, why)
        for file, call in cached_samples(self.ways):
            if file is bench.file:
                bench.left(call, f"{_WRITES}, and read what another one has half written", _ASIDE, code=_LEFT)
                break
        for call in self.apart:
            bench.put_around(call, _CODE, _MESSAGE, bench.call("one_by_one"), prefix="lambda: ")

    # --- places ------------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        places: dict[int, tuple[list[ast.stmt], ast.Call]] = {}
        for file, call, cached in download_calls(self.ways):
            if file is not self.bench.file:
                continue
            self.cached |= {call} if cached else set()
            if runs_later(call):
                self.apart.append(call)
                continue
            place = self._place(file, call)
            run = self._from_what_asks(file, place)
            run = [*(run if not self._together(file, run) else [place]), *users(place, call)]
            if self._together(file, run):
                self.left.append((call, "inside code that all ranks must run together"))
            elif not self.bench.fits(*run) or any(isinstance(node, FUNCTIONS) for node in run):
                self.left.append((call, "and this line cannot be split"))
            else:
                places.setdefault(id(run[0]), (run, call))
        outer = [run for run, _ in places.values()]
        for run, call in places.values():
            if not any(
                other is not run and any(each in chain(run[0]) or each is run[0] for each in other) for other in outer
            ):
                self.regions.append((run, call))
        self.regions = list(_joined(self.regions))

    def _place(self, file: File, call: ast.Call) -> ast.stmt:
        """The statement of a download, out to what asks for files around it, and to the file that it is written to."""
        place = statement(call)
        around = self.ways.around(file, call, files=True)
        for above in chain(call):
            if isinstance(above, FUNCTIONS):
                break
            asks = any(above is each for each in around) and isinstance(above, (ast.If, ast.While, ast.Try))
            if (isinstance(above, ast.With) and opens(file, above)) or (isinstance(above, ast.stmt) and asks):
                place = above
        while isinstance(above := parent(place), ast.If) and place in above.orelse and isinstance(place, ast.If):
            place = above
        return place

    def _from_what_asks(self, file: File, place: ast.stmt) -> list[ast.stmt]:
        """The statements up to a place from what leaves before it, or asks for files for it, on."""
        block, index = place_in_block(place)
        asked = names_in(place.test) if isinstance(place, (ast.If, ast.While)) else set[str]()
        first = index
        for at in range(index - 1, -1, -1):
            node = block[at]
            ends = any(isinstance(each, (ast.Return, ast.Break, ast.Continue)) for each in own_nodes(node))
            if isinstance(node, ast.If) and ends and self.ways.asks_files(file, node.test):
                first, asked = at, asked | names_in(node.test)
            elif isinstance(node, ast.Assign) and self.ways.asks_files(file, node.value) and names_stored(node) & asked:
                first = at
        return block[first : index + 1]

    def _draws(self, run: list[ast.stmt]) -> bool:
        """True for code that draws random numbers, in what it calls too."""
        places: list[tuple[File, ast.AST]] = [(self.bench.file, each) for each in run]
        inside = [*places, *((self.program.owner[each], each) for each in functions_run_from(self.program, places))]
        calls = [(file, call) for file, node in inside for call in inner_nodes(node, ast.Call)]
        return any(draws(file.names.qualified(call.func) or "", last_name(call.func)) for file, call in calls)

    def _together(self, file: File, nodes: list[ast.stmt]) -> bool:
        """True for code that trains, makes an optimizer, wraps a model or starts the process group."""
        bench = self.bench
        apart = [bench.start.first, *(wrap.after for wrap in bench.wraps.values())]
        pending, seen = [(file, node) for node in nodes], set[ast.AST]()
        while pending:
            at, node = pending.pop()
            for inner in own_nodes(node):
                first = inner is bench.start.first and node is inner  # the start stands in front of it
                if not first and any(inner is each for each in apart):
                    return True
                if any(inner is loop for _, loop in bench.training.regions):
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


def _joined(regions: list[tuple[list[ast.stmt], ast.Call]]) -> Iterator[tuple[list[ast.stmt], ast.Call]]:
    """Neighbouring regions of one block together."""
    ordered = sorted(regions, key=lambda region: (region[0][0].lineno, region[0][0].col_offset))
    while ordered:
        run, call = ordered.pop(0)
        block = block_of(run[0])
        while ordered and ordered[0][0][0] in block and block.index(ordered[0][0][0]) == block.index(run[-1]) + 1:
            run = [*run, *ordered.pop(0)[0]]
        yield run, call
