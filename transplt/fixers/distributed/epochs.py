"""The epoch is set on the samplers, so that each epoch shuffles anew."""

from __future__ import annotations

import ast

from transplt.edits.rewrite import rendered
from transplt.fixers.distributed.bench import Bench
from transplt.fixers.distributed.data import enclosing_lambda, plain_attribute
from transplt.program.loops import Loop, loop_head, repeated
from transplt.program.program import enclosing_function, text_of
from transplt.program.training import Loader, loaders_of
from transplt.syntax.scan import FUNCTIONS, chain, statement

_EPOCHS = ("epoch", "ep", "epoch_idx", "i_epoch", "epoch_i", "current_epoch", "epoch_num", "e")


def write_epochs(bench: Bench, shuffled: set[int]) -> None:
    """`loader.sampler.set_epoch(epoch)` in the epoch loop, or at the top of the function that is one epoch."""
    training = bench.training
    done: set[tuple[int, str]] = set()
    for file, loop, loaders in training.loops:
        if file is not bench.file or not any(id(loader.call) in shuffled for loader in loaders):
            continue
        name = loader_name(bench, loop)
        new = None if name is not None else _named_loader(bench, loop, loaders)
        if name is None and new is None:
            if not any(
                id(inner) != id(loop) and at is file and _inside(inner, loop) for at, inner, _ in training.loops
            ):
                _set_where_it_begins(bench, loop, loaders)
            continue
        _set_epoch(bench, loop, name or new or "", done, here=new is not None)


def _named_loader(bench: Bench, loop: Loop, loaders: tuple[Loader, ...]) -> str | None:
    """A name for the loader that is made in the header of a loop, by which the epoch can be set on its sampler."""
    call = loaders[0].call
    if len(loaders) > 1 or isinstance(loop, ast.While) or not any(inner is call for inner in ast.walk(loop.iter)):
        return None
    if not bench.fits(loop) or enclosing_lambda(call):
        return None
    text = rendered(bench.file.source, call, [edit for edit in bench.edits if edit.rewrites])
    bench.withdraw(call)
    name = bench.new_name("train_loader", "loader_of_rank")
    bench.before(loop, [f"{name} = {text}"], "NPU341", "the loader gets a name")
    bench.rewrite(call, "NPU341", "the loader by its name", name)
    return name


def _inside(node: ast.AST, loop: ast.AST) -> bool:
    return loop in chain(node)


def loader_name(bench: Bench, loop: Loop) -> str | None:
    """The source by which the loop names its loader: inside of enumerate, tqdm, zip and the like."""
    if isinstance(loop, ast.While):
        return None
    pending: list[ast.expr] = [loop.iter]
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.Name, ast.Attribute)) or plain_attribute(node):
            if loaders_of(bench.program, bench.file, node):
                return _without_progress(bench, node)
        elif isinstance(node, ast.Call):
            pending += node.args
        elif isinstance(node, ast.IfExp):
            pending += [node.body, node.orelse]
    return None


def _without_progress(bench: Bench, node: ast.expr) -> str:
    """`bar = tqdm(loader)` is no loader: the name of what is inside."""
    slot = bench.program.slot(bench.file, node)
    values = bench.program.values.get(slot, []) if slot else []
    if len(values) == 1 and isinstance(values[0].node, ast.Call) and values[0].file is bench.file:
        call = values[0].node
        if not isinstance(bench.program.callee(bench.file, call), FUNCTIONS) and call.args:
            inner = call.args[0]
            if isinstance(inner, (ast.Name, ast.Attribute)) and loaders_of(bench.program, bench.file, inner):
                return text_of(bench.file, inner)
            deeper = inner.args[0] if isinstance(inner, ast.Call) and inner.args else None
            named = isinstance(deeper, (ast.Name, ast.Attribute))
            if deeper is not None and named and loaders_of(bench.program, bench.file, deeper):
                return text_of(bench.file, deeper)
    return text_of(bench.file, node)


def _set_epoch(bench: Bench, loop: Loop, name: str, done: set[tuple[int, str]], *, here: bool) -> None:
    """In the loop that counts the epochs; with `here` right before the loop over the data, where the loader is made."""
    for above in chain(loop):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, (ast.For, ast.AsyncFor)):
            epoch = _counter(bench, above)
            if epoch:
                place = loop if here or _made_in(bench, above, name) else above.body[0]
                if (id(above), name) not in done and bench.fits(place):
                    done.add((id(above), name))
                    _put(bench, place, name, epoch)
                return
        if isinstance(above, ast.While):
            counted = next(
                (
                    n.target.id
                    for n in ast.walk(above)
                    if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and "epoch" in n.target.id
                ),
                "",
            )
            place = loop if here or _made_in(bench, above, name) else above.body[0]
            if counted and bench.fits(place):
                _put(bench, place, name, counted)
                return
    function = enclosing_function(loop)
    if function is not None:
        every = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        epoch = next((arg for arg in _EPOCHS if arg in every), "")
        if epoch and bench.fits(loop):
            _put(bench, loop, name, epoch)
            return
        if here and repeated(bench.program, loop):
            _remark_no_epoch(bench, loop)  # made anew each time, and known to nobody who counts
            return
        if _at_call_sites(bench, function, loop, name, done):
            return
        # `self.epoch` and the like
        stored = [node.attr for node in bench.file.scan.stores if node.attr in ("epoch", "current_epoch", "cur_epoch")]
        if stored and every[:1] == ["self"] and bench.fits(loop):
            _put(bench, loop, name, f"self.{sorted(stored)[0]}")
            return
    if bench.fits(loop):
        _put(bench, loop, name, _next_epoch(name))
        return
    _remark_no_epoch(bench, loop)


def _next_epoch(name: str) -> str:
    """The sampler counts where the program does not."""
    return f"{name}.sampler.epoch + 1"


def _set_where_it_begins(bench: Bench, loop: Loop, loaders: tuple[Loader, ...]) -> None:
    """Before each `iter(loader)` and each loop of a generator over the loader that a loop reads by `next`."""
    wanted = {id(loader.call) for loader in loaders}
    begins = [call.args[0] for call in bench.file.scan.calls if getattr(call.func, "id", "") == "iter" and call.args]
    for function in bench.file.scan.functions:
        for node in ast.walk(function):
            yields = isinstance(node, ast.For) and any(isinstance(inner, ast.Yield) for inner in ast.walk(node))
            if yields and isinstance(node, ast.For) and loop not in chain(node):
                begins.append(node.iter)
    placed = False
    for each in begins:
        node = statement(each)
        same = wanted & {id(loader.call) for loader in loaders_of(bench.program, bench.file, each)}
        if same and plain_attribute(each) and bench.fits(node):
            name = text_of(bench.file, each)
            _put(bench, node, name, _next_epoch(name))
            placed = True
    if not placed:
        _remark_no_epoch(bench, loop)


def _remark_no_epoch(bench: Bench, loop: Loop) -> None:
    bench.remark(
        loop_head(loop),
        "NPU342",
        "the sampler of this loop's loader is told no epoch: each pass over the data has one order",
        "call sampler.set_epoch(epoch) at the beginning of each epoch",
    )


def _made_in(bench: Bench, loop: Loop, name: str) -> bool:
    """True for a loader that is made anew in each epoch."""
    nodes = [node for node in ast.walk(loop) if isinstance(node, (ast.Name, ast.Attribute))]
    return any(isinstance(node.ctx, ast.Store) and text_of(bench.file, node) == name for node in nodes)


def _at_call_sites(bench: Bench, function: ast.AST, loop: Loop, name: str, done: set[tuple[int, str]]) -> bool:
    """In the epoch loop of the caller, when it has the loader under a name of its own."""
    program, placed = bench.program, False
    sites = program.call_sites.get(function, [])
    for file, call in sites:
        outer = next((above for above in chain(call) if isinstance(above, (ast.For, ast.AsyncFor))), None)
        if file is not bench.file or outer is None or enclosing_function(outer) is not enclosing_function(call):
            return placed
        epoch = _counter(bench, outer)
        given = dict(program.arguments(call, function)).get(name)
        spelled = text_of(file, given) if given is not None and plain_attribute(given) else name
        if given is None and (name.startswith("self.") or program.slot(file, loop_head(loop)) is None):
            spelled = name if not name.startswith("self.") else _on_object(bench, call, name)
        if not epoch or not spelled or not bench.fits(outer.body[0]):
            return placed
        if (id(outer), spelled) not in done:
            done.add((id(outer), spelled))
            _put(bench, outer.body[0], spelled, epoch)
        placed = True
    return placed


def _on_object(bench: Bench, call: ast.Call, name: str) -> str:
    """`trainer.loader` where the method has `self.loader`."""
    if isinstance(call.func, ast.Attribute):
        return f"{text_of(bench.file, call.func.value)}.{name.partition('.')[2]}"
    return ""


def _counter(bench: Bench, loop: ast.For | ast.AsyncFor) -> str:
    """The name that counts a loop over range or enumerate; `_` is given one."""
    target = loop.target
    call = loop.iter
    while isinstance(call, ast.Call) and getattr(call.func, "id", "") not in ("range", "trange", "enumerate"):
        if not call.args:
            return ""
        call = call.args[0]
    if not isinstance(call, ast.Call):
        slot = bench.program.slot(bench.file, call)
        values = bench.program.values.get(slot, []) if slot else []
        counted = [value.node for value in values if isinstance(value.node, ast.Call)]
        if not any(getattr(node.func, "id", "") in ("range", "trange", "tqdm") for node in counted):
            return ""
    elif getattr(call.func, "id", "") == "enumerate":
        if loaders_of(bench.program, bench.file, call):
            return ""
        target = target.elts[0] if isinstance(target, ast.Tuple) else target
    if not isinstance(target, ast.Name):
        return ""
    if target.id == "_":
        name = bench.free_name("epoch", "epoch_index")
        bench.change(target, "NPU341", f"the epochs are counted by {name}", name)
        return name
    return target.id


def _put(bench: Bench, node: ast.stmt, name: str, epoch: str) -> None:
    lines = bench.together([f"{name}.sampler.set_epoch({epoch})"])
    bench.before(node, lines, "NPU341", "the sampler is told the epoch")
