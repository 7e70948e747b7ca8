"""Losses that are shown are those of all ranks; gradients are exchanged once for each step of the optimizer."""

from __future__ import annotations

import ast

from transplt.program.program import enclosing_function, text_of
from transplt.program.training import Loop, lifted, loops_around
from transplt.syntax.asks import begins, block_of, by_place, call_of, ends, keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent
from transplt.themes.distributed.bench import Bench
from transplt.themes.distributed.effects import Effects
from transplt.themes.distributed.epochs import loader_name


def write_means(bench: Bench, effects: Effects) -> None:
    """Before a loss is read in a training loop, or below it, all ranks take the mean of it."""
    done: set[int] = set()
    for region, names in _losses(bench):
        for loop in (region, *(above for above in chain(region) if isinstance(above, (ast.For, ast.While)))):
            if enclosing_function(loop) is not enclosing_function(region):
                break
            found = [node for name in names for node in bench.file.scan.names.get(name, ()) if loop in chain(node)]
            readers = [
                node
                for node in found
                if id(node) not in done and _is_read(node) and enclosing_function(node) is enclosing_function(region)
            ]
            if loop is not region:
                readers = [node for node in readers if begins(node) >= ends(region)]
            done.update(id(node) for node in readers)
            if readers:
                _average(bench, effects, loop.body, by_place(readers), loop)


def write_counts(bench: Bench) -> None:
    """A sum over the share of the rank is divided by the length of the share; sums as losses are a finding."""
    names = {
        name
        for file, loop, _ in bench.training.loops
        if file is bench.file and (name := loader_name(bench, loop)) is not None
    }
    for node in bench.file.scan.attributes.get("dataset", ()):
        length = parent(node)
        over = parent(length)
        if (
            isinstance(length, ast.Call)
            and getattr(length.func, "id", "") == "len"
            and isinstance(over, ast.BinOp)
            and isinstance(over.op, ast.Div)
            and over.right is length
            and text_of(bench.file, node.value) in names
            and enclosing_function(node) in bench.training.functions
        ):
            text = f"{text_of(bench.file, node.value)}.sampler"
            bench.change(node, "NPU345", "a sum over the share of the rank, divided by its length", text)
    for call in bench.file.scan.calls:
        value = keyword_of(call, "reduction")
        if isinstance(value, ast.Constant) and value.value == "sum" and _in_training(bench, call):
            bench.remark(
                call,
                "NPU346",
                "this loss is a sum, and gradients are averaged over the ranks",
                "its gradients are 1/W of those of the global batch; the sum over a card's batch is as before",
            )


def _in_training(bench: Bench, call: ast.Call) -> bool:
    """True for a call in a function that trains, or in one that is called there."""
    function = enclosing_function(call)
    if function is None or function in bench.training.functions:
        return True
    return any(bench.training.in_region(file, site) for file, site in bench.program.call_sites.get(function, ()))


def _losses(bench: Bench) -> list[tuple[Loop, set[str]]]:
    """(innermost loop, names of its losses)."""
    found: dict[int, tuple[Loop, set[str]]] = {}
    for file, call in bench.training.backwards:
        loop = next(iter(loops_around(call)), None)
        if file is not bench.file or loop is None:
            continue
        assert isinstance(call.func, ast.Attribute)
        names = {node.id for node in ast.walk(call.func.value) if isinstance(node, ast.Name)}
        if isinstance(call.func.value, ast.Call):
            inner = call.func.value.args
            names = {node.id for argument in inner for node in ast.walk(argument) if isinstance(node, ast.Name)}
        found.setdefault(id(loop), (loop, set()))[1].update(names)
    return [(loop, _related(loop, names)) for loop, names in found.values()]


def _related(loop: Loop, names: set[str]) -> set[str]:
    """Also the sums that losses make, and the losses of which a sum is made."""
    sums: list[tuple[str, set[str]]] = []
    for node in ast.walk(loop):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
            continue
        inside = list(ast.walk(node.value))
        if isinstance(node.targets[0], ast.Name) and not any(isinstance(n, (ast.Call, ast.Compare)) for n in inside):
            sums.append((node.targets[0].id, {n.id for n in inside if isinstance(n, ast.Name)}))
    for _ in range(len(sums) + 1):
        for name, parts in sums:
            if name in names:
                names = names | parts
            elif parts & names:
                names = names | {name}
    return names


def _is_read(node: ast.Name) -> bool:
    """`loss.item()`, `float(loss)`: the number is taken out."""
    if not isinstance(node.ctx, ast.Load):
        return False
    above = parent(node)
    if isinstance(above, ast.Attribute):
        return above.attr == "item" and call_of(above) is not None
    return isinstance(above, ast.Call) and getattr(above.func, "id", "") == "float" and node in above.args


def _average(bench: Bench, effects: Effects, block: list[ast.stmt], readers: list[ast.Name], loop: Loop) -> None:
    """Average before the first reader of a block; readers in conditions of their own are averaged there."""
    here = [node for node in readers if _direct(node, block)]
    rest = [node for node in readers if node not in here]
    if here:
        first = min(lifted(node, block) or 0 for node in here)
        followers = [node for node in readers if (lifted(node, block) or 0) >= first]
        rest = [node for node in readers if (lifted(node, block) or 0) < first]
        _put_mean(bench, effects, block[first], followers)
    inner: dict[int, list[ast.Name]] = {}
    for node in rest:
        index = lifted(node, block)
        if index is not None:
            inner.setdefault(index, []).append(node)
    for index, nodes in inner.items():
        holder = block[index]
        for branch in _branches(holder):
            inside = [node for node in nodes if lifted(node, branch) is not None]
            if not inside:
                continue
            if isinstance(holder, ast.If) and not _same_everywhere(holder.test, loop):
                bench.remark(
                    inside[0],
                    "NPU346",
                    f"{inside[0].id} is that of one rank here",
                    "the condition may differ between ranks, so the ranks cannot take the mean inside of it",
                )
                continue
            _average(bench, effects, branch, inside, loop)


def _branches(node: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list) and block and isinstance(block[0], ast.stmt)]


def _direct(node: ast.AST, block: list[ast.stmt]) -> bool:
    """True for a reader that runs whenever the block does: not inside of a condition or loop of it."""
    index = lifted(node, block)
    if index is None:
        return False
    holder = block[index]
    if isinstance(holder, (ast.If, ast.For, ast.While, ast.Try)):
        return False
    if isinstance(holder, ast.With):
        return True
    return not isinstance(holder, (*FUNCTIONS, ast.ClassDef))


def _same_everywhere(test: ast.expr, loop: Loop) -> bool:
    """True for a condition that all ranks decide alike: counters, constants, arguments."""
    counted = (
        {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        if not isinstance(loop, ast.While)
        else set()
    )
    counted |= {
        n.target.id
        for n in ast.walk(loop)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and isinstance(n.value, ast.Constant)
    }
    assigned = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") != "len":
            return False
        if isinstance(node, ast.Name) and node.id in assigned and node.id not in counted:
            return False
    return True


def _put_mean(bench: Bench, effects: Effects, before: ast.stmt, readers: list[ast.Name]) -> None:
    if not bench.fits(before):
        bench.remark(
            readers[0], "NPU346", f"{readers[0].id} is that of one rank here", "take the mean over the ranks by hand"
        )
        return
    dist = bench.dist
    lines = []
    means: dict[str, str] = {}
    for node in readers:
        if node.id not in means:
            mean = means[node.id] = bench.free_name(f"mean_{node.id}")
            lines += [
                f"{mean} = {node.id}.detach().clone()",
                f"{dist}.all_reduce({mean})",
                f"{mean} /= {dist}.get_world_size()",
            ]
        mean = means[node.id]
        bench.change(node, "NPU345", f"the mean of {node.id} over the ranks", mean)
    bench.before(before, lines, "NPU345", f"the mean of {', '.join(means)} over the ranks")
    for item in block_of(before):
        effects.averaged.add(id(item))


# --- steps -----------------------------------------------------------------------------------------------------------


def write_accumulation(bench: Bench) -> None:
    """`with model.no_sync()` around the passes between which the optimizer makes no step."""
    for file, call in bench.training.backwards:
        loop = next((loop for loop in loops_around(call) if not isinstance(loop, ast.AsyncFor)), None)
        if file is not bench.file or loop is None:
            continue
        step = next((node for node in loop.body if _is_conditional_step(node)), None)
        backward = lifted(call, loop.body)
        if step is None or backward is None or loop.body.index(step) <= backward:
            continue
        assert isinstance(step, ast.If)
        _without_sync(bench, loop, step, backward)


def _is_conditional_step(node: ast.stmt) -> bool:
    """`if (i + 1) % n == 0: optimizer.step()`."""
    if not isinstance(node, ast.If) or not any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(node.test)
    ):
        return False
    for inner in node.body:
        for call in ast.walk(inner):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step":
                name = last_name(call.func.value).lower()
                if "opt" in name or "scaler" in name:
                    return True
    return False


def _without_sync(bench: Bench, loop: Loop, step: ast.If, backward: int) -> None:
    runs = [
        (index, node.func)
        for index, item in enumerate(loop.body[: backward + 1])
        for node in ast.walk(item)
        if isinstance(node, ast.Call) and bench.models.origin(bench.file, node.func) is not None
    ]
    names = {text_of(bench.file, func) for _, func in runs}
    nodes = loop.body[runs[0][0] : backward + 1] if runs else []
    counted = {n.id for n in ast.walk(step.test) if isinstance(n, ast.Name)}
    assigned = {
        n.id for item in nodes for n in ast.walk(item) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    if len(names) != 1 or not bench.fits(*nodes) or counted & assigned or _counts_later(loop, step, counted):
        bench.left(
            step,
            "gradients are accumulated here, and every backward pass exchanges them",
            "run the passes without a step of the optimizer under `with model.no_sync():`",
        )
        return
    test = text_of(bench.file, step.test)
    if "\n" in test:
        test = " ".join(line.strip() for line in test.splitlines())
    header = f"with {bench.standard('contextlib')}.nullcontext() if {test} else {names.pop()}.no_sync():"
    bench.wrap(nodes, header, "NPU349", "gradients are exchanged once for each step of the optimizer")


def _counts_later(loop: Loop, step: ast.If, counted: set[str]) -> bool:
    """True when a counter of the condition changes between the passes and the step."""
    for item in loop.body[: loop.body.index(step)]:
        for node in ast.walk(item):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in counted:
                return True
    return False
