"""What is summed up or kept over the share of one rank, and divided, shown or saved as if it were of all data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.program.outputs import happens_once, written_place
from transplt.fixers.distributed.program.share_sums import (
    Ratio,
    SharedFile,
    by_length_of_all,
    by_other_lengths,
    filled,
    read_whole,
    tells_time,
)
from transplt.program.loops import Loop
from transplt.program.program import File, Variable, text_of
from transplt.program.variable_values import assigned
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import arguments_of, attribute_of, by_place, callee_of, inner_nodes, last_name, of_kind
from transplt.syntax.scan import chain, parent, statement

_CODE = "NPU346"
_FILLED = "{0} is filled from one rank's share, and only rank 0's is shown or saved here"
_OF_SHARE = "{0} is made of one rank's share of the data, and only rank 0's is shown or saved here"
_REDUCE = "reduce it over the ranks at a place that all of them reach: npu_port.mean_over_ranks(...) or sum_over_ranks"
_BY_STEPS = (
    "this schedule goes by steps, and an epoch has 1/W of the steps of one process",
    "divide its lengths by npu_port.world_size(), if it is to end as in one process",
)
#: Calls that write a row or a text into what is open.
_ROWS = frozenset("write writerow writerows append_row".split())
#: Of pictures and sounds rank 0's are as good as any.
_PICTURES = frozenset(
    "save_image imwrite imsave mimwrite mimsave savefig add_image add_images add_figure add_video add_audio "
    "add_histogram add_embedding add_graph add_text".split()
)
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
        in_front = ratio.node in bench.verdict.gathered and is_lifted(bench, ratio.node)
        if ratio.instead != text_of(bench.file, ratio.counts) and not in_front:
            message = "a sum over the share of the rank, divided by its length"
            bench.change(ratio.counts, "NPU345", message, _length(bench, ratio))
    for divided, summed, by in by_other_lengths(bench.own):
        if id(divided) not in changed:
            why = f"{summed} is a sum over one rank's share here, and {text_of(bench.file, by)} may count all data"
            bench.remark(divided, _CODE, why, "divide by the length of the share: len(loader.sampler)")


def is_lifted(bench: Bench, node: ast.AST) -> bool:
    """Whether the mean of a figure goes in front of what shows it, once for all ranks."""
    shown = any(happens_once(bench.file, call) for call in of_kind(ast.Call, chain(node)))
    return shown and bench.fits(statement(node))


def text_in_front(bench: Bench, node: ast.expr) -> str:
    """A figure on one line, with the length of the share in the place of that of all data."""
    text = text_of(bench.file, node)
    for ratio in by_length_of_all(bench.own):
        if ratio.node is node:
            text = text.replace(text_of(bench.file, ratio.counts), _length(bench, ratio))
    return " ".join(line.strip() for line in text.splitlines())


def _length(bench: Bench, ratio: Ratio) -> str:
    if not ratio.undivided:
        return ratio.instead
    # in a loop `for x in npu_port.shard(loader)`
    given = rf"{re.escape(ratio.undivided)}(?=\.\w*sampler)"
    return re.sub(given, rf"{bench.call('shard')}(\g<0>)", ratio.instead)


def remark_progress(bench: Bench) -> None:
    """One remark for each count of the samples of a share that is compared, or divided by how many there are to be; and
    for each count of steps, but for one that comes around."""
    own = bench.own
    added = (each for loop in own.loops() for each in inner_nodes(loop, ast.AugAssign))
    steps = {own.slot(each.target) for each in added if isinstance(each.value, ast.Constant)} - {None}
    counts = {slot for slot, (_, kept) in filled(own, sizes=True) if not kept} | steps
    if (step := next(_steps_of_schedules(own), None)) is not None:
        bench.remark(step, "NPU348", *_BY_STEPS)
    for node in by_place(node for node in names_and_attributes(bench.file) if own.slot(node) in counts):
        shows = any(isinstance(each, ast.Call) and happens_once(bench.file, each) for each in chain(node))
        if _decides(own, node) and not shows and (slot := own.slot(node)) in counts and slot is not None:
            counts.discard(slot)
            why = f"{slot[2]} counts the samples of one rank: a schedule by this count takes W times as many epochs"
            do = f"count those of all ranks here: {slot[2]} * npu_port.world_size()"
            if slot not in steps:
                bench.decide(node, _CODE, why, do)
            elif not isinstance(getattr(parent(node), "op", None), ast.Mod):
                bench.remark(node, "NPU348", why.replace("samples", "steps"), f"{do}, if it is to be as in one process")


def _steps_of_schedules(own: SharedFile) -> Iterator[ast.expr]:
    """`schedule.step` in a loop over a share, where no length of a loader says how long the schedule is."""
    called = by_place(call for loop in own.loops() for call in inner_nodes(loop, ast.Call))
    for step in (call.func for call in called if attribute_of(call.func) == "step"):
        values = assigned(own.program, own.file, getattr(step, "value", step))
        made = [(at, value) for at, value in values if "schedule" in (at.names.qualified(callee_of(value)) or "")]
        if made and not any(last_name(each) == "len" for _, value in made for each in ast.walk(value)):
            yield step


def _decides(own: SharedFile, count: ast.expr) -> bool:
    """True where a count is a share of how many there are to be, and in `seen > 1000` and `seen % 100 == 0`."""
    above = parent(count)
    match above:
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=ast.Constant()) | ast.BinOp(
            op=ast.Add() | ast.Sub(), right=ast.Constant()
        ):
            return _decides(own, above)
        case ast.BinOp(left=left, op=ast.Div(), right=by) if left is count:
            return not own.varies(by) and not tells_time(last_name(by))
        case ast.Compare() | ast.BinOp(op=ast.Mod()) | ast.AugAssign(op=ast.Mod()):
            return True
    return False


def tell_shown(bench: Bench, means: set[int]) -> None:
    """What is shown or saved of one rank's share is told, once for each variable where it is first shown: all but
    `means`, pictures and models."""
    own, grown = bench.own, dict(filled(bench.own, means=means))
    made = _made_of(own, {slot: loop for slot, (loop, _) in grown.items()})
    said: set[Variable | str] = set()
    for call in by_place(each for each in bench.file.scan.calls if _tells(bench.file, each)):
        for given in (each for each in arguments_of(call) if each is not written_place(bench.file, call)):
            counted = [node for node, slot in read_whole(own, given) if slot in made and id(node) not in means]
            for node in (*counted, *_of_one_rank(bench, given, means)):
                text, slot = text_of(bench.file, node), own.slot(node)
                source = made.get(slot, slot) if slot is not None else None
                if (source or text) in said or tells_time(text):
                    continue
                said.add(source or text)
                what, do = _OF_SHARE, _REDUCE
                if source is not None and source in grown:
                    what, do = _FILLED, _ALL if grown[source][1] else _SUM
                    text = source[2]
                bench.decide(node, _CODE, what.format(text), do.format(text))


def _made_of(own: SharedFile, grown: dict[Variable, Loop]) -> dict[Variable, Variable]:
    """The variables that are made of what grows in a loop, each with that, which is among them."""
    made = {slot: slot for slot in grown}
    for stored in by_place(inner_nodes(own.file.scan.tree, ast.Assign)) if grown else ():
        read = next((made[slot] for _, slot in read_whole(own, stored.value) if slot in made), None)
        if read is not None and grown[read] not in chain(stored):
            made = {slot: read for target in stored.targets if (slot := own.slot(target)) is not None} | made
    return made


def _tells(file: File, call: ast.Call) -> bool:
    """True for a call that shows or writes numbers, also into a file that is open."""
    last = last_name(call.func)
    return last not in _PICTURES and (happens_once(file, call) or last in _ROWS)


def _of_one_rank(bench: Bench, node: ast.AST, means: set[int]) -> Iterator[ast.expr]:
    """The outermost variables, and calls, of an expression by which it is that of one rank."""
    shown = bench.verdict.ways.shown()
    if id(node) in means or not isinstance(node, ast.expr) or not shown.varies(bench.file, node):
        return
    match node:
        case ast.Name() | ast.Attribute():
            parts: list[ast.AST] = []
        case ast.Call(func=ast.Attribute(value=holder)):
            parts = [holder, *arguments_of(node)]
        case ast.GeneratorExp() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            heads = [each.iter for each in node.generators]
            parts = [*heads] if any(shown.varies(bench.file, each) for each in heads) else [*ast.iter_child_nodes(node)]
        case _:
            parts = [*ast.iter_child_nodes(node)]
    inner = [each for part in parts for each in _of_one_rank(bench, part, means)]
    yield from inner or [node] * means.isdisjoint(map(id, ast.walk(node)))
