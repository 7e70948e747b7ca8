"""Losses that are shown are those of all ranks; gradients are synchronised once per optimizer step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.base.grouped import grouped
from transplt.fixers.distributed.counts import remark_progress, tell_shown, write_lengths
from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.program.losses import loss_readers
from transplt.fixers.distributed.program.share_sums import is_count, measured
from transplt.program.gradients import without_gradients
from transplt.program.loops import Loop, lifted, loops_around
from transplt.program.program import File, enclosing_function, text_of
from transplt.program.variable_values import values_of
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import (
    by_place,
    callee_of,
    inner_nodes,
    is_none,
    keyword_of,
    last_name,
    of_kind,
    plain_name,
    string_of,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_OWN_COUNT = "the ranks take the mean of losses, each divided by {0} of its own batch"
#: Losses that divide by the weights of the classes in the batch.
_WEIGHED = frozenset({"CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss"})
_MEAN_COUNT = "the mean of the ranks' counts: together they divide by the count of all, as one process does"
_COUNT = (
    "if the counts of the ranks differ, divide by npu_port.sum_over_ranks(count) / npu_port.world_size(), "
    "as one process does with the global batch"
)
#: What counts each of several: `sum(len(x) for x in batch)` is no size of a batch.
_EACH = (ast.GeneratorExp, ast.ListComp)
#: A size by its name, and no number of batches.
_BATCH = re.compile(r"(?<!num_)(?<!n_)batch(?!es)", re.I)


def write_means(bench: Bench, effects: Effects) -> None:
    """Before a loss is read in a training loop, or below it, all ranks take the mean of it."""
    for loop, readers in loss_readers(bench.training, bench.file):
        _average(bench, effects, loop.body, readers)


def write_counts(bench: Bench, means: set[int]) -> None:
    """A sum over the share of the rank is divided by the length of the share; sums as losses are a finding."""
    write_lengths(bench)
    tell_shown(bench, means)
    remark_progress(bench)
    sums = [call for call in bench.file.scan.calls if _is_sum(call) and _in_training(bench, call)]
    own = [(file, call) for file, call in bench.training.backwards if file is bench.file]
    divided, counts = _divided(bench, bench.training.backwards if sums else own)
    if bench.verdict.shares.places:
        _divide_by_all(bench, counts)
    weighed = [call for call in bench.file.scan.calls if last_name(call.func) in _WEIGHED and _in_training(bench, call)]
    for call in weighed if bench.verdict.shares.places else ():
        weight, reduction = keyword_of(call, "weight"), keyword_of(call, "reduction")
        if weight is not None and not is_none(weight) and reduction is None:
            bench.remark(call, "NPU346", _OWN_COUNT.format("the class weights"), _COUNT)
    for call in sums:
        if call not in divided:
            why = "this loss is a sum, but gradients are averaged over the ranks"
            help_ = "its gradients are 1/W of those of the global batch; the sum over one card's batch is unchanged"
            bench.decide(call, "NPU346", why, help_)


def _divide_by_all(bench: Bench, ratios: list[ast.BinOp]) -> None:
    """Sums are divided by the mean of the ranks' counts, where all ranks come; one of the others is told."""
    sure = [over for over in ratios if is_count(bench.program, bench.file, over.right) and bench.alike(over)]
    for over in sure:
        bench.put_around(over.right, "NPU345", _MEAN_COUNT, bench.call("mean_over_ranks"))
    for over in [each for each in ratios if each not in sure][:1]:
        bench.decide(over, "NPU346", _OWN_COUNT.format(text_of(bench.file, over.right)), _COUNT)


def _is_sum(call: ast.Call) -> bool:
    return string_of(keyword_of(call, "reduction")) == "sum"


def _divided(bench: Bench, backwards: list[tuple[File, ast.Call]]) -> tuple[set[ast.Call], list[ast.BinOp]]:
    """The sums that are divided on each way to a backward pass: by the size of their batch, which makes a mean of them,
    or by a count of the batch, which the divisions tell of."""
    sums: dict[bool, set[ast.Call]] = {True: set(), False: set()}
    counts: list[ast.BinOp] = []
    pending: list[tuple[File, ast.AST, bool]] = [(file, call.func, False) for file, call in backwards]
    seen: set[tuple[ast.AST, bool]] = set()
    while pending:
        file, node, divided = pending.pop()
        if (node, divided) in seen or (isinstance(node, ast.Attribute) and node.attr in ("detach", "item")):
            continue
        seen.add((node, divided))
        inner = list(ast.iter_child_nodes(node))
        slot = bench.program.slot(file, node)
        match node:
            case ast.BinOp(left=total, op=ast.Div(), right=by):
                inner, sized = [total], _is_size_of_batch(bench, file, by)
                itself = plain_name(total) in {each.id for each in inner_nodes(by, ast.Name)}
                counted = not sized and not itself and _is_of_batch(bench, file, by)
                counts += [node] * (counted and file is bench.file)
                divided |= sized or counted
            case ast.Call():
                sums[divided].update({node} if _is_sum(node) else ())
                runs = bench.program.callee(file, node) or bench.program.object_runs(file, node.func, "forward")
                if isinstance(runs, FUNCTIONS):
                    pending += [(bench.program.owner[runs], each, divided) for each in bench.program.returns(runs)]
        pending += [(file, each, divided) for each in inner]
        pending += [(value.file, value.node, divided) for value in (bench.program.values.get(slot, ()) if slot else ())]
    return sums[True] - sums[False], by_place(counts)


def _is_of_batch(bench: Bench, file: File, by: ast.expr) -> bool:
    """True for what another batch has another of; in a function for a count that is no size."""
    made = (by, *(value for _, value in values_of(bench.program, file, by)))
    sized = any(measured(each) is not None or last_name(callee_of(each)) == "numel" for each in made)
    inside = not sized and enclosing_function(by) is not None and is_count(bench.program, file, by)
    return inside or bench.verdict.ways.varying.varies(file, by)


def _is_size_of_batch(bench: Bench, file: File, by: ast.expr) -> bool:
    """True for `len(x)` of a batch, through variables, and for what is named after it: `args.batch_size`."""
    parts: list[tuple[File, ast.AST]] = [(file, each) for each in inner_nodes(by, ast.expr)]
    parts += [value for each in inner_nodes(by, ast.Name) for value in values_of(bench.program, file, each)]
    one = ((at, each) for at, each in parts if not any(isinstance(above, _EACH) for above in chain(each)))
    counts = ((at, count) for at, each in one if (count := measured(each)) is not None)
    named = any(isinstance(each, ast.expr) and _BATCH.search(last_name(each)) for _, each in parts)
    return named or any(bench.verdict.ways.varying.varies(at, count) for at, count in counts)


def _in_training(bench: Bench, call: ast.Call) -> bool:
    """True for a call in a function that trains, or in one that is called there."""
    function = enclosing_function(call)
    if without_gradients(call) or _evaluates_alone(bench, call):
        return False
    if function is None or function in bench.training.functions:
        return True
    sites = [(at, site) for at, site in bench.program.call_sites.get(function, ()) if not without_gradients(site)]
    return any(bench.training.in_region(at, site) for at, site in sites)


def _evaluates_alone(bench: Bench, call: ast.Call) -> bool:
    """True for a loss that is kept in a variable, and called without gradients only."""
    stored = parent(call)
    slot = bench.program.slot(bench.file, stored.targets[0]) if isinstance(stored, ast.Assign) else None
    reads = [node for node in names_and_attributes(bench.file) if slot and bench.program.slot(bench.file, node) == slot]
    runs = [node for node in reads if isinstance(node.ctx, ast.Load)]
    called = all(isinstance(above := parent(node), ast.Call) and above.func is node for node in runs)
    return bool(runs) and called and all(map(without_gradients, runs))


def _average(bench: Bench, effects: Effects, block: list[ast.stmt], readers: list[ast.Name]) -> None:
    """Average before the first reader of a block; readers in conditions of their own are averaged there."""
    apart = [node for node in readers if id(node) not in bench.verdict.ways.varying.same]
    if apart:
        do = "the condition may differ between ranks, so they cannot take the mean inside it"
        bench.remark(apart[0], "NPU346", f"{apart[0].id} is the value of one rank here", do)
        readers = [node for node in readers if node not in apart]
    first = min((lifted(node, block) or 0 for node in readers if _direct(node, block)), default=len(block))
    if here := [node for node in readers if (lifted(node, block) or 0) >= first]:
        _put_mean(bench, effects, block[first], here)
    for index, nodes in grouped((lifted(node, block), node) for node in readers if node not in here).items():
        holder = block[index] if index is not None else None
        for name in ("body", "orelse", "finalbody"):
            branch = getattr(holder, name, [])
            _average(bench, effects, branch, [node for node in nodes if lifted(node, branch) is not None])


def _direct(node: ast.AST, block: list[ast.stmt]) -> bool:
    """True for a reader before which the block can take the mean: not inside of a condition or loop of it.

    What a condition or the header of a `for` reads is read whenever the block runs; of an `elif`, all ranks can take
    the mean above the `if`, too.
    """
    index = lifted(node, block)
    if index is None:
        return False
    match block[index]:
        case ast.If() as holder:
            return any(node in ast.walk(test) for test in _tests(holder))
        case ast.For(iter=each) | ast.AsyncFor(iter=each):
            return node in ast.walk(each)
        case ast.With() as holder:  # `with autocast(): loss = ...` has the loss of this round within
            stored = (at for at in inner_nodes(holder, ast.Name) if isinstance(at.ctx, ast.Store))
            return isinstance(node, ast.Name) and all(at.id != node.id for at in stored)
        case ast.While() | ast.Try() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return False
    return True


def _tests(node: ast.If) -> Iterator[ast.expr]:
    """The condition of an `if`, and those of its `elif`."""
    yield node.test
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        yield node.test


def _put_mean(bench: Bench, effects: Effects, before: ast.stmt, readers: list[ast.Name]) -> None:
    if not bench.fits(before):
        why = f"{readers[0].id} is the value of one rank here"
        bench.remark(readers[0], "NPU346", why, "take the mean over the ranks by hand")
        return
    lines: list[str] = []
    means: dict[str, str] = {}
    for node in readers:
        what = "sum" if _is_counted(bench, node) else "mean"
        if node.id not in means:
            mean = means[node.id] = bench.free_name(f"{what}_{node.id}")
            lines.append(f"{mean} = {bench.call(f'{what}_over_ranks')}({node.id})")
        bench.change(node, "NPU345", f"the {what} of {node.id} over the ranks", means[node.id])
    kinds = grouped((mean.partition("_")[0], name) for name, mean in means.items())
    why = " and ".join(f"the {kind} of {', '.join(names)}" for kind, names in kinds.items())
    bench.before(before, lines, "NPU345", f"{why} over the ranks")
    effects.averaged.add(id(before))


def _is_counted(bench: Bench, node: ast.Name) -> bool:
    """True for a count that a sum is divided by for a loss, and for that sum: one process has those of the batch of all
    ranks."""
    if is_count(bench.program, bench.file, node):
        return True
    for ratio in inner_nodes(enclosing_function(node) or bench.file.scan.tree, ast.BinOp):
        match ratio, statement(ratio):
            case _, ast.Assign(targets=[ast.Name(id=stored)]) if stored == node.id:
                continue  # it is the mean from there on
            case ast.BinOp(left=ast.Name(id=summed), op=ast.Div(), right=by), _ if summed == node.id:
                if bench.varies(by) and is_count(bench.program, bench.file, by):
                    return True
    return False


# --- steps -----------------------------------------------------------------------------------------------------------


def write_accumulation(bench: Bench) -> None:
    """`with model.no_sync()` around the passes between which the optimizer makes no step."""
    for file, call in bench.training.backwards:
        loop = next((loop for loop in loops_around(call) if not isinstance(loop, ast.AsyncFor)), None)
        if file is not bench.file or loop is None:
            continue
        backward = lifted(call, loop.body)
        for node in of_kind(ast.If, loop.body):
            # `if (i + 1) % n == 0: optimizer.step()`; with a backward pass in it, it goes on from no other
            counted = any(isinstance(each, ast.Mod) for each in ast.walk(node.test))
            own = any(node in chain(each) for _, each in bench.training.backwards)
            if counted and not own and any(node in chain(step.call) for step in bench.verdict.steps):
                if backward is not None and loop.body.index(node) > backward:
                    _without_sync(bench, loop, node, backward)
                break


def _without_sync(bench: Bench, loop: Loop, step: ast.If, backward: int) -> None:
    runs = [
        (index, node.func)
        for index, item in enumerate(loop.body[: backward + 1])
        for node in inner_nodes(item, ast.Call)
        if bench.models.origin(bench.file, node.func) is not None
    ]
    names = {text_of(bench.file, func) for _, func in runs}
    nodes = loop.body[runs[0][0] : backward + 1] if runs else []
    counted = {n.id for n in inner_nodes(step.test, ast.Name)}
    assigned = {n.id for item in nodes for n in inner_nodes(item, ast.Name) if isinstance(n.ctx, ast.Store)}
    # a counter of the condition may change between the passes and the step
    between = (at for item in loop.body[: loop.body.index(step)] for at in of_kind(ast.AugAssign, ast.walk(item)))
    counts_later = any(plain_name(at.target) in counted for at in between)
    if len(names) != 1 or not bench.fits(*nodes) or counted & assigned or counts_later:
        why = "gradients are accumulated here, and every backward pass synchronises them"
        bench.left(step, why, "run the passes without a step of the optimizer under `with model.no_sync():`")
        return
    test = text_of(bench.file, step.test)
    if "\n" in test:
        test = " ".join(line.strip() for line in test.splitlines())
    header = f"with {bench.standard('contextlib')}.nullcontext() if {test} else {names.pop()}.no_sync():"
    bench.wrap(nodes, header, "NPU349", "gradients are synchronised once per optimizer step")
