"""What is counted or kept over the share of one rank, and shown or saved as if it were of all data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.fixers.distributed.bench import Bench
from transplt.program.loops import Loop
from transplt.program.outputs import happens_once
from transplt.program.program import Variable
from transplt.program.varying import KEEPS
from transplt.syntax.asks import arguments_of, by_place, last_name, own_nodes
from transplt.syntax.scan import chain

_CODE = "NPU346"
_SUM = "sum it over the ranks where all of them come by: npu_port.sum_over_ranks({0}) of a number or a tensor"
_ALL = "gather it over the ranks where all of them come by: torch.distributed.all_gather_object(parts, {0})"
#: What is of one size, however many samples it is taken over.
_MEANS = frozenset("mean nanmean average fmean median std var max min amax amin quantile softmax enumerate".split())


def remark_counted(bench: Bench) -> None:
    """One remark for each variable that is filled in a loop over a share, where it is first shown or saved."""
    filled = dict(_filled(bench))
    if not filled:
        return
    made = {slot: slot for slot in filled}
    for node in by_place(each for each in ast.walk(bench.file.scan.tree) if isinstance(each, ast.Assign)):
        read = next((made[slot] for slot in _read_whole(bench, node.value) if slot in made), None)
        for target in node.targets if read is not None and filled[read][0] not in chain(node) else ():
            if (slot := bench.program.slot(bench.file, target)) is not None and read is not None:
                made.setdefault(slot, read)
    said: set[Variable] = set()
    for call in by_place(call for call in bench.file.scan.calls if happens_once(bench.file, call)):
        for given in arguments_of(call):
            for slot in _read_whole(bench, given):
                source = made.get(slot)
                if source is not None and source not in said:
                    said.add(source)
                    kept, name = filled[source][1], source[2]
                    why = f"{name} is filled over the share of one rank, and what is shown or saved here is of rank 0"
                    bench.remark(call, _CODE, why, (_ALL if kept else _SUM).format(name))


def _filled(bench: Bench) -> Iterator[tuple[Variable, tuple[Loop, bool]]]:
    """The variables that grow by what differs between ranks, each with its loop over a share, and whether it holds
    items."""
    file = bench.file

    def differs(node: ast.AST) -> bool:
        parts = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
        return any(map(bench.varies, parts))

    for at, loop, loaders in bench.training.loops:
        if at is not file or not all(id(loader.call) in bench.verdict.shares.places for loader in loaders):
            continue
        inside = [node for item in loop.body for node in own_nodes(item)]
        stores = (node.targets for node in inside if isinstance(node, ast.Assign))
        anew = {bench.program.slot(file, each) for targets in stores for each in targets}
        for node in inside:
            target: ast.expr | None = None
            kept = False
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                item = isinstance(node.target, ast.Subscript)
                target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
                grows = differs(node.value) or (item and differs(node.target))
                target = target if grows else None
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
                known = bench.program.callee(file, node) is not None
                kept = True
                target = node.func.value if not known and any(map(differs, node.args)) else None
            slot = bench.program.slot(file, target) if target is not None else None
            if slot is not None and slot not in anew and not _tells_time(slot):
                yield slot, (loop, kept)


def _tells_time(slot: Variable) -> bool:
    return any(word in slot[2].lower() for word in ("time", "elapsed"))


def _read_whole(bench: Bench, value: ast.expr) -> Iterator[Variable]:
    """The variables that an expression reads, but for those of which it takes a ratio or a mean."""
    for node in ast.walk(value):
        if not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        slot = bench.program.slot(bench.file, node)
        if slot is not None and not _is_ratio(node, value):
            yield slot


def _is_ratio(node: ast.AST, whole: ast.expr) -> bool:
    for above in (node, *chain(node)):
        text = isinstance(above, ast.BinOp) and isinstance(above.left, (ast.Constant, ast.JoinedStr))
        if isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Div, ast.FloorDiv, ast.Mod)) and not text:
            return True
        # One item of what is kept is that of a batch.
        if isinstance(above, ast.Subscript) or (isinstance(above, ast.Call) and last_name(above.func) in _MEANS):
            return True
        if above is whole:
            break
    return False
