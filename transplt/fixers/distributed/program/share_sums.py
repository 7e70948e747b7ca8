"""Sums over the share of a rank: by what they are divided, and where what is counted or kept in a share is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from transplt.fixers.distributed.program.datasets import dataset_of, has_own_sampler, iterates, samplers_of
from transplt.fixers.distributed.program.divergence import Divergence
from transplt.fixers.distributed.program.divergent_values import KEEPS, is_mask
from transplt.program.loaders import Shares
from transplt.program.loops import Loop
from transplt.program.phases import chosen_by_key
from transplt.program.program import File, Program, Variable, enclosing_function, text_of
from transplt.program.training import Loader, loaders_of
from transplt.program.variable_values import assigned
from transplt.syntax.nodes import by_place, call_of, inner_nodes, is_plain, keyword_of, last_name, own_nodes, plain_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: What is of one size, however many samples it is taken over.
_MEANS = frozenset("mean nanmean average fmean median std var max min amax amin quantile softmax enumerate".split())
#: What makes of a sum no multiple of it.
_PARTED = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.IfExp, ast.Lambda, ast.Compare)
#: Seconds in a minute and in an hour.
_OF_TIME = (60, 3600)
#: Losses that are a mean if nothing else is said.
_TORCH_LOSS = r"torch\.nn\.(?:\w+Loss|functional\.(?:\w+_loss|\w*cross_entropy\w*|kl_div))"
_TENSORS = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file of a program whose training data are shared out."""

    divergence: Divergence
    shares: Shares
    file: File

    @property
    def program(self) -> Program:
        return self.divergence.program

    def slot(self, node: ast.AST) -> Variable | None:
        """The variable that an expression of the file is."""
        return self.program.slot(self.file, node)

    def varies(self, node: ast.expr) -> bool:
        """True for an expression that may have another value on each rank."""
        return self.divergence.varying.varies(self.file, node)

    def loops(self) -> list[Loop]:
        """The loops of the file whose loaders are all shared out."""
        every = self.divergence.training.loops
        return [loop for at, loop, loaders in every if at is self.file and all(map(self.shares.has, loaders))]

    def is_undivided(self, loop: Loop) -> bool:
        """True where the share is taken in the head of a loop: the loader that it names there is that of all data."""
        heads = {place.loader for places in self.shares.places.values() for place in places if place.stored is None}
        return not isinstance(loop, ast.While) and any(each in heads for each in ast.walk(loop.iter))


@dataclass(frozen=True, slots=True)
class Ratio:
    """A division of a sum over a share by how many data there are in all: `counts`, for which `instead` is right; empty
    where that is not known. `total` is the sum, and `undivided` a loader whose share has no name."""

    node: ast.expr | ast.stmt
    total: ast.expr
    counts: ast.expr
    instead: str
    undivided: str = ""


def by_length_of_all(own: SharedFile) -> Iterator[Ratio]:
    """Divisions of a sum over a share by the length of all of the data: by `len(...)`, and by `sizes[phase]` below a
    loop over `loaders[phase]`."""
    sums = _sums(own.file)
    for at, loop, loaders in own.divergence.training.loops:
        if at is own.file and any(map(own.shares.has, loaders)):
            yield from _by_sizes(own, sums, loop, loaders)
    for node in own.file.scan.names.get("len", ()):
        length = call_of(node)
        over = parent(length) if length is not None and length.args else None
        parts = _divided(over) if over is not None else None
        if length is not None and parts is not None and parts[2] is length:
            summed = _loop_of_sum(own, sums, parts[1], length.args[0])
            if summed is not None and (name := _loader_name(own, summed[0])):
                undivided = name if own.is_undivided(summed[0]) else ""
                yield Ratio(*parts[:2], length.args[0], f"{name}.{summed[1]}", undivided)


def _by_sizes(own: SharedFile, sums: list[ast.AugAssign], loop: Loop, loaders: tuple[Loader, ...]) -> Iterator[Ratio]:
    """Divisions below a loop whose loader is an entry of a table: by an entry of a table of lengths, by the length of
    one, and by what the loop counts, which is right as it is."""
    by, _ = chosen_by_key(own.program, own.file, loop)
    name = _loader_name(own, loop)
    if by is None or name is None:
        return
    for read in own.file.scan.names.get(by.id, ()):
        for over, total, divisor in _divisions_below(own, sums, loop, parent(read)):
            known = _has_share(own, loaders) and _sizes_of(own, loaders, divisor)
            undivided = name if own.is_undivided(loop) else ""
            yield Ratio(over, total, divisor, f"len({name}.sampler)" if known else "", undivided)
    for count in {plain_name(each.target): None for each in sums if loop in chain(each)}:
        for read in own.file.scan.names.get(count, ()):
            for over, total, divisor in _divisions_below(own, sums, loop, read):
                yield Ratio(over, total, divisor, text_of(own.file, divisor))


def _divisions_below(
    own: SharedFile, sums: list[ast.AugAssign], loop: Loop, entry: ast.AST
) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr, ast.expr]]:
    """The division of what a loop sums up by an entry or its length, if it is one."""
    divisor = above if measured(above := parent(entry)) is entry else entry
    parts = _divided(parent(divisor))
    if parts is not None and parts[2] is divisor:
        summed = _last_sum(own, sums, _slots(own, parts[1]), parts[2])
        if summed is not None and loop in chain(summed):
            yield parts


def _sizes_of(own: SharedFile, loaders: tuple[Loader, ...], divisor: ast.expr) -> bool:
    """True for the length of the data of some loaders: `len(data[phase])`, or an entry of a table of such lengths."""
    match divisor:
        case ast.Subscript(value=table):
            sizes = [each for _, value in assigned(own.program, own.file, table) for each in _entries(value)]
        case _:
            sizes = [divisor]
    counted = {_table(own, own.file, measured(each)) for each in sizes}
    return (
        bool(counted)
        and None not in counted
        and counted <= {_table(own, each.file, dataset_of(each.call)) for each in loaders}
    )


def _entries(node: ast.expr) -> list[ast.expr]:
    """The values of a dict that is written out, or made by one expression."""
    match node:
        case ast.Dict(values=values):
            return values
        case ast.DictComp(value=value):
            return [value]
    return []


def _table(own: SharedFile, file: File, node: ast.expr | None) -> Variable | None:
    """The variable that an expression is, or an entry of which it is: `data` of `data[key]`, and in a comprehension of
    what it gives for `key, each in data.items()`."""
    around = chain(node) if node is not None else ()
    for part in (part for above in around for part in getattr(above, "generators", ())):
        match part:
            case ast.comprehension(
                target=ast.Tuple(elts=[_, ast.Name(id=name)]),
                iter=ast.Call(func=ast.Attribute(value=whole, attr="items")),
            ) if name == plain_name(node):
                node = whole
    held = node.value if isinstance(node, ast.Subscript) else node
    return own.program.slot(file, held) if held is not None else None


def tells_time(name: str) -> bool:
    """True for the name of a variable that holds a time."""
    return "time" in name.lower() or "elapsed" in name.lower()


def _sums(file: File) -> list[ast.AugAssign]:
    added = list(inner_nodes(file.scan.tree, ast.AugAssign))
    return [node for node in by_place(added) if isinstance(node.op, ast.Add)]


def _divided(node: ast.AST) -> tuple[ast.expr | ast.stmt, ast.expr, ast.expr] | None:
    """`a / b` and `a /= b`, with what is divided, and by what."""
    match node:
        case ast.BinOp(op=ast.Div()):
            return node, node.left, node.right
        case ast.AugAssign(op=ast.Div()):
            return node, node.target, node.value
    return None


def _slots(own: SharedFile, node: ast.AST) -> set[Variable]:
    parts = [each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))]
    return {slot for each in parts if (slot := own.slot(each)) is not None}


def _last_sum(own: SharedFile, sums: list[ast.AugAssign], slots: set[Variable], node: ast.expr) -> ast.AugAssign | None:
    """The last `total += ...` of the function above a place, for any of some variables; the first where none is."""
    function = enclosing_function(node)
    found = [each for each in sums if own.slot(each.target) in slots and enclosing_function(each) is function]
    above = [each for each in found if each.lineno < node.lineno]
    return above[-1] if above else next(iter(found), None)


def _loop_of_sum(
    own: SharedFile, sums: list[ast.AugAssign], total: ast.expr, counted: ast.expr
) -> tuple[Loop, str] | None:
    """The loop over the share that a sum goes over, where what is counted is all of its data, or what draws them, and
    what of its loader is as long as its part of that; None for other sums.

    `total` has to be summed up in that loop, except in a function that trains: there it is, by the name of the loader.
    """
    function, slot = enclosing_function(counted), own.slot(counted)
    of = counted.value if isinstance(counted, ast.Attribute) and counted.attr == "dataset" else None
    summed = _last_sum(own, sums, _slots(own, total), counted)
    for at, loop, loaders in own.divergence.training.loops:
        name = _loader_name(own, loop) if at is own.file else None
        if name is None:
            continue
        named = of is not None and text_of(own.file, of) == name
        trains = named and function in own.divergence.training.functions
        adds = summed is not None and loop in chain(summed)
        if adds and (drawn := _draws(own, loaders, slot)) and all(map(own.shares.has, loaders)):
            return loop, drawn
        if trains or (adds and (named or all(slot in _alike(own, each) for each in loaders))):
            return (loop, "sampler") if _has_share(own, loaders) else None
    return None


def _draws(own: SharedFile, loaders: tuple[Loader, ...], slot: Variable | None) -> str:
    """As what some loaders are given a variable that draws for them, `sampler` or `batch_sampler`; empty for none."""
    given = ((kind, own.program.slot(each.file, value)) for each in loaders for kind, value in samplers_of(each.call))
    return next((kind for kind, known in given if known == slot is not None), "")


def _has_share(own: SharedFile, loaders: tuple[Loader, ...]) -> bool:
    """True where one of some loaders is shared out, and all have as many samples as their sampler says: not those with
    a sampler of their own, and no stream."""
    counted = not any(has_own_sampler(each.call) or iterates(own.program, each) for each in loaders)
    return counted and any(map(own.shares.has, loaders))


def _alike(own: SharedFile, loader: Loader) -> set[Variable]:
    """The variables that are as long as the data of a loader: its dataset, and the tensors of a TensorDataset."""
    data = dataset_of(loader.call)
    if data is None:
        return set()
    slot = own.program.slot(loader.file, data)
    made = assigned(own.program, loader.file, data) if slot is not None else [(loader.file, data)]
    found = {slot} if slot is not None else set[Variable]()
    for file, call in made if len(made) == 1 else ():
        if isinstance(call, ast.Call) and file.names.qualified(call.func) in _TENSORS:
            for each in call.args:  # names that get their values in one place
                given = own.program.slot(file, each)
                if len(file.names.bindings_of(each)) == 1 and given is not None:
                    found.add(given)
    return found


def _loader_name(own: SharedFile, loop: Loop) -> str | None:
    """The source by which the loop names its loader: inside of enumerate, tqdm, zip and the like."""
    if isinstance(loop, ast.While):
        return None
    pending: list[ast.expr] = [loop.iter]
    while pending:
        node = pending.pop(0)
        by_key = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and is_plain(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)) or is_plain(node) or by_key:
            if loaders_of(own.program, own.file, node):
                return _without_progress(own, node)
        elif isinstance(node, ast.Call):
            pending += node.args
        elif isinstance(node, ast.IfExp):
            pending += [node.body, node.orelse]
    return None


def _without_progress(own: SharedFile, node: ast.expr) -> str:
    """`bar = tqdm(loader)` is no loader: the name of what is inside."""
    slot = own.slot(node)
    values = own.program.values.get(slot, []) if slot else []
    call = values[0].node if len(values) == 1 and values[0].file is own.file else None
    if isinstance(call, ast.Call) and call.args and not isinstance(own.program.callee(own.file, call), FUNCTIONS):
        inner = call.args[0]
        for each in (inner, *(inner.args[:1] if isinstance(inner, ast.Call) else ())):
            if isinstance(each, (ast.Name, ast.Attribute)) and loaders_of(own.program, own.file, each):
                return text_of(own.file, each)
    return text_of(own.file, node)


def means_of_share(own: SharedFile) -> Iterator[ast.expr]:
    """What is the mean of a share, as all shares are of one length: a sum over it, divided by what is the same on all
    ranks (`correct / seen`, `total / len(loader)`), and the mean of a list of numbers."""
    grown = {slot: kept for slot, (_, kept) in filled(own, parts=True)}
    known = {id(each.node) for each in by_length_of_all(own)} | {id(over) for over, _, _ in by_other_lengths(own)}
    for node in inner_nodes(own.file.scan.tree, ast.expr) if grown else ():
        kept, parts = _averaged(own, node)
        slots = [slot for each in parts if (slot := own.slot(each)) in grown]
        if len(slots) == 1 and grown[slots[0]] == kept and id(node) not in known and own.varies(node):
            yield node


def _averaged(own: SharedFile, node: ast.expr) -> tuple[bool, Iterable[ast.AST]]:
    """What an expression is the mean of: a list (True), or one of the parts of what it divides."""
    match node:
        case ast.BinOp(left=ast.Call(func=ast.Name("sum"), args=[held]), op=ast.Div(), right=by):
            of = measured(by)
            return True, [held] if of is not None and own.slot(of) == own.slot(held) else []
        case ast.Call(func=ast.Attribute(attr="mean" | "average" | "fmean"), args=[held], keywords=[]):
            return True, [held]
        case ast.BinOp(left=total, op=ast.Div(), right=by) if not own.varies(by):
            parts = [*ast.walk(total)]
            return False, [] if any(isinstance(each, _PARTED) for each in parts) else parts
    return False, []


# --- other divisors --------------------------------------------------------------------------------------------------


def by_other_lengths(own: SharedFile) -> Iterator[tuple[ast.expr | ast.stmt, str, ast.expr]]:
    """Divisions of a sum over a share, below its loop, by a number or a length that does not depend on the share."""
    loops, sums = own.loops(), _sums(own.file)
    for node in ast.walk(own.file.scan.tree) if loops else ():
        parts = _divided(node)
        if parts is None or any(isinstance(each, (ast.Div, ast.FloorDiv)) for each in ast.walk(parts[1])):
            continue
        summed = _last_sum(own, sums, _slots(own, parts[1]), parts[2])
        loop = next((each for each in loops if summed is not None and each in chain(summed)), None)
        if loop is None or summed is None or loop in chain(node) or loop.lineno > parts[2].lineno:
            continue
        figure = (
            not isinstance(summed.value, ast.Constant)
            and measured(summed.value) is None
            and not any(tells_time(last_name(each)) for each in ast.walk(summed))
        )
        # A sum over some batches is set to zero within the loop.
        anew = (each for inside in inner_nodes(loop, ast.Assign) for each in inside.targets)
        wanted = own.slot(summed.target)
        if figure and all(own.slot(each) != wanted for each in anew) and _is_fixed(own, sums, parts[2], set()):
            yield parts[0], text_of(own.file, summed.target), parts[2]


def _is_fixed(own: SharedFile, sums: list[ast.AugAssign], node: ast.expr, seen: set[Variable]) -> bool:
    """True for a number, and for the length of what is no loader and is the same on all ranks; through variables."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and value > 1 and value not in _OF_TIME
        case ast.BinOp():
            return _is_fixed(own, sums, node.left, seen) and _is_fixed(own, sums, node.right, seen)
        case ast.Name():
            slot = own.slot(node)
            if slot is None or slot in seen or _last_sum(own, sums, {slot}, node) is not None:
                return False
            values = assigned(own.program, own.file, node)
            here = all(file is own.file for file, _ in values)
            return bool(values) and here and all(_is_fixed(own, sums, each, seen | {slot}) for _, each in values)
    counted = measured(node)
    if counted is None or last_name(counted) in ("sampler", "batch_sampler"):
        return False
    return not own.varies(counted) and not loaders_of(own.program, own.file, counted)


def measured(node: ast.AST) -> ast.expr | None:
    """x of `len(x)`, `x.shape[0]` and `x.size(0)`."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=sized, attr="shape"), slice=ast.Constant(value=0)):
            return sized
        case ast.Call(func=ast.Attribute(value=sized, attr="size"), args=[ast.Constant(value=0)], keywords=[]):
            return sized
        case ast.Call(func=ast.Name(id="len"), args=[sized], keywords=[]):
            return sized
    return None


def is_mean(program: Program, file: File, node: ast.expr, seen: frozenset[object] = frozenset()) -> bool:
    """True for a single number that is a mean over what there is: `x.mean()`, `torch.mean(x).item()`, a loss of torch,
    sums and multiples of these; in a variable, or from a function of the program."""
    match node:
        case ast.Call(func=ast.Attribute(attr="mean") as func, args=args, keywords=[]):
            return len(args) == (file.names.qualified(func) in ("torch.mean", "numpy.mean"))
        case ast.BinOp(op=ast.Div(), right=right) if is_count(program, file, right):
            return True
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return any(is_mean(program, file, each, seen) for each in (left, right))
        case ast.Call() if _is_torch_loss(program, file, node):
            return True
    source = program.slot(file, node) or (program.callee(file, node) if isinstance(node, ast.Call) else None)
    if source is not None and source in seen:
        return True
    parts, inside = _made_of(program, file, node), (seen | {source}) - {None}
    return bool(parts) and all(is_mean(program, at, each, inside) for at, each in parts)


def _made_of(program: Program, file: File, node: ast.expr) -> list[tuple[File, ast.expr]]:
    """What has to be a mean if a number is to be one."""
    match node:
        case (
            ast.Call(func=ast.Attribute(value=inner, attr="item" | "detach" | "cpu" | "numpy"), args=[])
            | ast.Attribute(value=inner, attr="data")
            | ast.Call(func=ast.Name("float"), args=[inner])
            | ast.UnaryOp(op=ast.USub(), operand=inner)
            | ast.BinOp(left=inner, op=ast.Div())
        ):
            return [(file, inner)]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return [(file, each) for each in (left, right) if not isinstance(each, ast.Constant)]
        case ast.Subscript(value=whole):
            return [(at, each) for at, value in assigned(program, file, whole) for each in _elements(value)]
        case ast.Call() if isinstance(function := program.callee(file, node), FUNCTIONS):
            return [(program.owner[function], each) for each in program.returns(function)]
    return _given(program, file, node)


def _elements(node: ast.expr) -> list[ast.expr]:
    """What a list or tuple is written with; itself for anything else."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return items
        case ast.ListComp(elt=item):
            return [item]
    return [node]


def is_count(program: Program, file: File, node: ast.expr, seen: frozenset[object] = frozenset()) -> bool:
    """True for how many there are of something: `(x != 0).sum()`, `len(x)`, `x.numel()`; in a variable."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="sum")):
            return is_mask(inner) or any(is_mask(each) for _, each in assigned(program, file, inner))
        case (
            ast.Call(func=ast.Attribute(value=inner, attr="item" | "float" | "clamp" | "clamp_min" | "detach"))
            | ast.Call(func=ast.Name(id="int"), args=[inner])
        ):
            return is_count(program, file, inner, seen)
        case ast.Call(func=ast.Attribute(attr="numel")):
            return True
        case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp(elt=each) | ast.ListComp(elt=each)]):
            return is_count(program, file, each, seen)
    slot = program.slot(file, node)
    given = _given(program, file, node) if slot not in seen else []
    return measured(node) is not None or (
        bool(given) and all(is_count(program, at, each, seen | {slot}) for at, each in given)
    )


def _given(program: Program, file: File, node: ast.expr) -> list[tuple[File, ast.expr]]:
    """What a variable was given; of a tuple that a function of the program returns, its part."""
    slot = program.slot(file, node)
    found: list[tuple[File, ast.expr]] = []
    for value in program.values.get(slot, ()) if slot is not None else ():
        made = program.callee(value.file, value.node) if isinstance(value.node, ast.Call) else None
        if value.index is not None and isinstance(made, FUNCTIONS):
            for each in program.returns(made):
                parts = each.elts if isinstance(each, ast.Tuple) else []
                found.append((program.owner[made], parts[value.index] if value.index < len(parts) else each))
        else:
            found.append((value.file, value.node))
    return found


def _is_torch_loss(program: Program, file: File, call: ast.Call) -> bool:
    """True for `F.cross_entropy(...)`, and for a call of what `nn.CrossEntropyLoss()` made, which take the mean."""
    made: list[tuple[File, ast.expr]] = [(file, call), *assigned(program, file, call.func)]
    return any(
        isinstance(each, ast.Call)
        and re.fullmatch(_TORCH_LOSS, at.names.qualified(each.func) or "")
        and keyword_of(each, "reduction") is None
        for at, each in made
    )


# --- what is counted or kept -----------------------------------------------------------------------------------------


def filled(
    own: SharedFile, *, sizes: bool = False, parts: bool = False, means: Collection[int] = ()
) -> Iterator[tuple[Variable, tuple[Loop, bool]]]:
    """The variables that grow by what differs between ranks, each with its loop over a share, and whether it holds
    items; with `sizes` those that grow by how many samples there are, with `parts` those, too, that begin anew in their
    loop. `means`: ids of what is that of all ranks."""

    def differs(node: ast.AST) -> bool:
        inside = [*ast.walk(node)]
        named = (own.varies(each) for each in inside if isinstance(each, (ast.Name, ast.Attribute)))
        return not any(id(each) in means for each in inside) and any(named)

    for loop in own.loops():
        inside = [node for item in loop.body for node in own_nodes(item)]
        stores = (node.targets for node in inside if isinstance(node, ast.Assign))
        anew = {own.slot(each) for targets in stores for each in targets}
        for node in inside:
            target: ast.expr | None = None
            match node:
                case ast.AugAssign(op=ast.Add(), target=ast.Subscript(value=whole)):
                    target = whole if differs(node.value) or differs(node.target) else None
                case ast.AugAssign(op=ast.Add()):
                    counted = not sizes or measured(node.value) is not None
                    target = node.target if counted and differs(node.value) else None
                case ast.Call(func=ast.Attribute(value=whole, attr=name)) if name in KEEPS:
                    known = own.program.callee(own.file, node) is not None
                    target = whole if not known and any(map(differs, node.args)) else None
            slot = own.slot(target) if target is not None else None
            if slot is not None and (parts or slot not in anew) and not tells_time(slot[2]):
                yield slot, (loop, isinstance(node, ast.Call))


def read_whole(own: SharedFile, value: ast.expr) -> Iterator[tuple[ast.expr, Variable]]:
    """The variables that an expression reads, but for those of which it takes a ratio or a mean."""
    for node in ast.walk(value):
        slot = own.slot(node)
        if slot is not None and isinstance(node, ast.expr) and not _is_ratio(node, value):
            yield node, slot


def _is_ratio(node: ast.AST, whole: ast.expr) -> bool:
    for above in (node, *chain(node)):
        match above:
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mod()):
                if not isinstance(left, (ast.Constant, ast.JoinedStr)):
                    return True
            case ast.Subscript():  # one item of what is kept is that of a batch
                return True
            case ast.Call() if last_name(above.func) in _MEANS:
                return True
        if above is whole:
            break
    return False
