"""What rank 0 does or decides alone: the others wait until a file is there or was asked for, and take its clock."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.divergence import ENDS
from transplt.fixers.distributed.program.read_back import (
    behind_training,
    loaded_or_made,
    made_where_missing,
    prepared,
    read_back,
)
from transplt.program.loops import loops_around
from transplt.syntax.nodes import begins, inner_nodes, last_name
from transplt.syntax.scan import parent, statement

_CODE = "NPU343"


def write_waits(bench: Bench, after_start: Callable[[ast.AST], bool]) -> None:
    """What is loaded behind training is what rank 0 has written; where the code asks for a file, all ask first."""
    waiting: dict[ast.stmt, ast.Call] = {}
    for file, first, call in read_back(bench.training):
        if file is bench.file and after_start(first):
            waiting.setdefault(first, call)
    for first in sorted(waiting, key=begins):
        if bench.alike(first) and bench.fits(first):
            bench.before(first, [f"{bench.waiting}  # rank 0 has written it"], _CODE, "the others wait for rank 0")
        else:
            why, do = "rank 0 may not have written this yet", "call npu_port.wait() before it, on all ranks"
            bench.left(waiting[first], why, do, code="NPU344")
    for node, branch in loaded_or_made(bench.program, bench.file):
        if after_start(node):
            _wait_in(bench, node, branch, waited=node in waiting)
    for node, read in made_where_missing(bench.program, bench.file):
        if after_start(node):
            _ask_once(bench, node, read)
    for first in prepared(bench.training, bench.file):
        if after_start(first) and bench.alike(first) and bench.fits(first):
            bench.after(first, [f"{bench.waiting}  # rank 0 has written it"], _CODE, "the others wait for rank 0")


def _wait_in(bench: Bench, node: ast.If, branch: list[ast.stmt], *, waited: bool) -> None:
    # All ranks have asked when the first of them writes: they come here alike.
    if not bench.alike(node) or bench.varies(node.test) or not bench.fits(branch[0]):
        why, do = "rank 0 may write this before another rank tests for it", "let all ranks test first: npu_port.wait()"
        bench.left(node.test, why, do, code="NPU344")
        return
    again = loops_around(node) or behind_training(bench.training, bench.file, node, True)
    if again and not waited and bench.fits(node):
        # What an earlier round wrote is there for all who ask.
        bench.before(node, [f"{bench.waiting}  # rank 0 has written it"], _CODE, "all ranks test the same")
    lines = [f"{bench.waiting}  # all ranks have asked"]
    bench.before(branch[0], lines, _CODE, "rank 0 writes after all ranks have tested")


def _ask_once(bench: Bench, node: ast.If, read: bool) -> None:
    """What the first rank makes must not keep rank 0, which writes, out of the branch."""
    if not bench.alike(node) or bench.varies(node.test) or not bench.fits(node):
        why, do = "another rank may have created this before", "test on rank 0 only: npu_port.of_first(...)"
        bench.left(node.test, why, do, code="NPU344")
        return
    bench.put_around(node.test, _CODE, "all ranks use the result of rank 0", bench.call("of_first"))
    if read:
        bench.after(node, [f"{bench.waiting}  # rank 0 has written it"], _CODE, "the others wait for rank 0")


def write_clocks(bench: Bench) -> None:
    """A limit of time that ends a training: rank 0's clock decides for all ranks."""
    for file, test in bench.verdict.ways.clocked:
        if file is bench.file:
            bench.put_around(test, _CODE, "the clock of rank 0 decides for all ranks", bench.call("of_first"))
            branch = getattr(parent(test), "body", [])
            for call in [node for item in branch for node in inner_nodes(item, ast.Call)]:
                if last_name(call.func) in ENDS and bench.fits(statement(call)):
                    # torchrun stops all when one ends with an error.
                    lines = [f"{bench.waiting}  # rank 0 has written it"]
                    bench.before(statement(call), lines, _CODE, "the others wait for rank 0")
