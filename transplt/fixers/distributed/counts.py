"""What is summed up or kept over the share of one rank, and divided, shown or saved as if it were of all data."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.outputs import happens_once
from transplt.fixers.distributed.program.share_sums import (
    SharedFile,
    by_length_of_all,
    by_other_lengths,
    filled,
    read_whole,
    tells_time,
)
from transplt.program.program import Variable, text_of
from transplt.syntax.nodes import arguments_of, by_place, inner_nodes, last_name
from transplt.syntax.scan import chain, parent

_CODE = "NPU346"
_SUM = "sum it over the ranks at a place that all of them reach: npu_port.sum_over_ranks({0}) of a number or a tensor"
_ALL = "gather it over the ranks at a place that all of them reach: torch.distributed.all_gather_object(parts, {0})"


def write_lengths(bench: Bench) -> None:
    """Divide a sum over the share of the rank by the length of the share, where it is divided by that of all data."""
    changed: set[int] = set()
    for ratio in by_length_of_all(bench.own):
        changed.add(id(ratio.node))
        if not ratio.instead:
            why = f"{text_of(bench.file, ratio.total)} is a sum over one rank's share; the divisor may count all data"
            bench.remark(ratio.node, _CODE, why, "divide by the length of the share: len(loader.sampler)")
            continue
        if ratio.instead != text_of(bench.file, ratio.counts):
            message = "a sum over the share of the rank, divided by its length"
            text = ratio.instead
            if ratio.undivided:  # in a loop `for x in npu_port.shard(loader)`
                text = re.sub(rf"{re.escape(ratio.undivided)}(?=\.\w*sampler)", rf"{bench.call('shard')}(\g<0>)", text)
            bench.change(ratio.counts, "NPU345", message, text)
    for divided, summed, by in by_other_lengths(bench.own):
        if id(divided) not in changed:
            why = f"{summed} is a sum over one rank's share here, and {text_of(bench.file, by)} may count all data"
            bench.remark(divided, _CODE, why, "divide by the length of the share: len(loader.sampler)")


def remark_progress(bench: Bench) -> None:
    """One remark for each count of the samples of a share that is compared, or divided by how many there are to be; and
    for each count of steps, but for one that comes around."""
    own = bench.own
    added = (each for loop in own.loops() for each in inner_nodes(loop, ast.AugAssign))
    steps = {own.slot(each.target) for each in added if isinstance(each.value, ast.Constant)} - {None}
    counts = {slot for slot, (_, kept) in filled(own, sizes=True) if not kept} | steps
    names = {slot[2] for slot in counts if slot}
    for node in by_place(node for name in names for node in bench.file.scan.names.get(name, [])):
        shows = any(isinstance(each, ast.Call) and happens_once(bench.file, each) for each in chain(node))
        if _decides(own, node) and not shows and (slot := own.slot(node)) in counts and slot is not None:
            counts.discard(slot)
            why = f"{slot[2]} counts the samples of one rank: a schedule by this count takes W times as many epochs"
            do = f"count those of all ranks here: {slot[2]} * npu_port.world_size()"
            if slot not in steps:
                bench.decide(node, _CODE, why, do)
            elif not isinstance(getattr(parent(node), "op", None), ast.Mod):
                bench.remark(node, "NPU348", why.replace("samples", "steps"), f"{do}, if it is to be as in one process")


def _decides(own: SharedFile, count: ast.Name) -> bool:
    """True where a count is a share of how many there are to be, and in `seen > 1000` and `seen % 100 == 0`."""
    match parent(count):
        case ast.BinOp(left=left, op=ast.Div(), right=by) if left is count:
            return not own.varies(by) and not tells_time(last_name(by))
        case ast.Compare() | ast.BinOp(op=ast.Mod()) | ast.AugAssign(op=ast.Mod()):
            return True
    return False


def remark_counted(bench: Bench, means: Collection[int]) -> None:
    """One remark for each variable that is filled in a loop over a share by other than `means`, where it is first shown
    or saved."""
    own = bench.own
    grown = dict(filled(own, means=means))
    if not grown:
        return
    made = {slot: slot for slot in grown}
    for node in by_place(inner_nodes(bench.file.scan.tree, ast.Assign)):
        read = next((made[slot] for slot in read_whole(own, node.value) if slot in made), None)
        for target in node.targets if read is not None and grown[read][0] not in chain(node) else ():
            if (slot := own.slot(target)) is not None and read is not None:
                made.setdefault(slot, read)
    said: set[Variable] = set()
    for call in by_place(call for call in bench.file.scan.calls if happens_once(bench.file, call)):
        for given in arguments_of(call):
            for slot in read_whole(own, given):
                source = made.get(slot)
                if source is not None and source not in said:
                    said.add(source)
                    kept, name = grown[source][1], source[2]
                    why = f"{name} is filled from one rank's share, and only rank 0's is shown or saved here"
                    bench.remark(call, _CODE, why, (_ALL if kept else _SUM).format(name))
