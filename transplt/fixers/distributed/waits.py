"""Files that rank 0 writes and that all ranks read: the others wait until they are there, or have been asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from transplt.fixers.distributed.bench import Bench
from transplt.program.loops import excludes, loops_around
from transplt.program.outputs import opens_to_write, writes_file
from transplt.program.program import File, Program, enclosing_function
from transplt.program.varying import ASKS
from transplt.syntax.asks import arguments_of, begins, by_place, ends, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, parent, statement

_CODE = "NPU343"
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def write_waits(bench: Bench, after_start: Callable[[ast.AST], bool]) -> None:
    """What is loaded behind training is what rank 0 has written; where the code asks for a file, all ask first."""
    program = bench.program
    saved = {path for file in program.files for call in file.scan.calls if (path := _path(file, call, "torch.save"))}
    waiting: dict[ast.stmt, ast.Call] = {}
    for file in program.files:
        for call in by_place(file.scan.calls):
            if path := _path(file, call, "torch.load"):
                for at, first in _waits(bench, file, call, path, path in saved, set()):
                    if at is bench.file and after_start(first):
                        waiting.setdefault(first, call)
    for first in sorted(waiting, key=begins):
        _wait_for(bench, first, waiting[first])
    for node in ast.walk(bench.file.scan.tree):
        if isinstance(node, ast.If) and _asks_for_file(node.test) and after_start(node):
            for branch, other in ((node.body, node.orelse), (node.orelse, node.body)):
                reads = any("load" in last_name(call.func) for item in other for call in _calls(item))
                if reads and any(_writes(program, bench.file, item, 0) for item in branch):
                    _wait_in(bench, node, branch, waited=node in waiting)


def _path(file: File, call: ast.Call, name: str) -> str:
    """The text of the path that a call saves or loads, empty for any other call."""
    given = arguments_of(call)
    if file.names.qualified(call.func) != name or not given:
        return ""
    return ast.unparse(given[1 if name == "torch.save" and len(given) > 1 else 0])


def _behind_training(bench: Bench, file: File, node: ast.AST, saved: bool, seen: set[ast.AST]) -> bool:
    """True for code that runs behind a training loop, or (for what the program has `saved`) in one behind a step."""
    function = enclosing_function(node)
    for at, loop in bench.training.regions:
        here = at is file and enclosing_function(loop) is function
        if here and (ends(loop) <= begins(node) or (saved and loop in loops_around(node))):
            return True
    for call in file.scan.calls:
        before = enclosing_function(call) is function and ends(statement(call)) <= begins(node)
        if before and not excludes(node, statement(call)) and bench.training.runs(file, call):
            return True
    if function is None or function in seen:
        return False
    seen.add(function)
    sites = bench.program.call_sites.get(function, [])
    return any(_behind_training(bench, at, call, saved, seen) for at, call in sites)


def _waits(
    bench: Bench, file: File, call: ast.Call, path: str, saved: bool, seen: set[ast.AST]
) -> Iterable[tuple[File, ast.stmt]]:
    """The statements before which to wait for a file that `call` reads. Where the code asks first whether it is there,
    in a caller, too, that has to wait: a rank that asks too early does not come by here, and the others wait for it."""
    if not _behind_training(bench, file, call, saved, set()):
        return
    node = _first_to_ask(bench, file, statement(call), path, saved)
    function = enclosing_function(call)
    sites = bench.program.call_sites.get(function, []) if function is not None else []
    asking = [
        (at, site) for at, site in sites if _first_to_ask(bench, at, statement(site), "", saved) is not _outside(site)
    ]
    if function is None or function in seen or not asking:
        yield file, node
        return
    seen.add(function)
    for at, site in sites:
        yield from _waits(bench, at, site, "", saved, seen)


def _outside(node: ast.AST) -> ast.stmt:
    """The statement of a node, or the outermost `with` and `try` around it."""
    found = statement(node)
    while isinstance(above := parent(found), (ast.With, ast.Try)):
        found = above
    return found


def _first_to_ask(bench: Bench, file: File, node: ast.stmt, path: str, saved: bool) -> ast.stmt:
    """The condition around a statement that asks for a file, or the one before it in its block that leaves where there
    is none; else the statement."""
    node = _outside(node)
    while True:
        above = parent(node)
        block, index = place_in_block(node)
        before = [each for each in block[:index] if isinstance(each, ast.If) and _asks_for_file(each.test)]
        leaving = [each for each in before if isinstance(each.body[-1], _LEAVES) and path in ast.unparse(each.test)]
        if path and leaving and _behind_training(bench, file, leaving[0], saved, set()):
            node = _outside(leaving[0])
        elif isinstance(above, ast.If) and (_asks_for_file(above.test) or _is_elif(node, above)):
            node = _outside(above)
        else:
            return node


def _is_elif(node: ast.stmt, above: ast.If) -> bool:
    return isinstance(node, ast.If) and node in above.orelse and node.col_offset == above.col_offset


def _wait_for(bench: Bench, node: ast.stmt, call: ast.Call) -> None:
    if not bench.alike(node) or not bench.fits(node):
        why, do = "rank 0 may not have written this yet", "call npu_port.wait() before it, on all ranks"
        bench.left(call, why, do, code="NPU344")
        return
    lines = [f"{bench.waiting}  # rank 0 has written it"]
    bench.before(node, lines, _CODE, "the others wait for rank 0")


def _wait_in(bench: Bench, node: ast.If, branch: list[ast.stmt], *, waited: bool) -> None:
    # All ranks have asked when the first of them writes: they come here alike.
    if not bench.alike(node) or bench.varies(node.test) or not bench.fits(branch[0]):
        why, do = "rank 0 may write this before another rank asks for it", "let all ranks ask first: npu_port.wait()"
        bench.left(node.test, why, do, code="NPU344")
        return
    again = loops_around(node) or _behind_training(bench, bench.file, node, True, set())
    if again and not waited and bench.fits(node):
        # What an earlier round wrote is there for all who ask.
        bench.before(node, [f"{bench.waiting}  # rank 0 has written it"], _CODE, "all ask alike")
    lines = [f"{bench.waiting}  # all ranks have asked"]
    bench.before(branch[0], lines, _CODE, "rank 0 writes when all ranks have asked")


def _asks_for_file(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and last_name(node.func) in ASKS for node in ast.walk(test))


def _writes(program: Program, file: File, node: ast.AST, depth: int) -> bool:
    """True for code that writes a file, by itself or in a function of the program."""
    for call in _calls(node):
        if writes_file(file, call) or opens_to_write(call):
            return True
        callee = program.callee(file, call)
        if isinstance(callee, FUNCTIONS) and depth < 3 and _writes(program, program.owner[callee], callee, depth + 1):
            return True
    return False


def _calls(node: ast.AST) -> Iterable[ast.Call]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
