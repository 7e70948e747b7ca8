"""What of a program looks past one sample: products over a batch, memories of earlier batches, a state carried on."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from transplt.base.closure import closure
from transplt.program.loops import Loop
from transplt.program.models import Models
from transplt.program.steps import is_backward_pass
from transplt.syntax.files import File
from transplt.syntax.nodes import (
    begins,
    by_place,
    callee_of,
    inner_nodes,
    is_none,
    last_name,
    of_kind,
    own_nodes,
    string_of,
)
from transplt.syntax.scan import FUNCTIONS, chain, statement

#: Methods that give a matrix of two axes the other way round; attention turns its last two.
_TURNS = frozenset({"t", "T"})
_PRODUCTS = frozenset({"torch.mm", "torch.matmul", "torch.cdist", "torch.einsum"})
_SIMILAR = frozenset({"torch.nn.functional.cosine_similarity", "torch.cosine_similarity"})
#: What tells a sample from the others of its batch.
_APART = frozenset({"eye", "arange", "fill_diagonal_", "diag", "diagonal", "eq"})
_BANKS = ("queue", "bank", "memory")


def memories(file: File, tables: Collection[str]) -> Iterator[ast.expr]:
    """Buffers that keep what earlier batches gave, but for the `tables` whose rows are spoken of by themselves."""
    made = [call for call in by_place(file.scan.calls) if last_name(call.func) == "register_buffer" and call.args]
    classes = {call: next(of_kind(ast.ClassDef, chain(call)), None) for call in made}
    learned = {cls: _learned(cls) if cls is not None else set[str]() for cls in {*classes.values()}}
    for call, cls in classes.items():
        name = string_of(call.args[0])
        named = (name or "").lower() if name not in tables else ""
        if named and (name in learned[cls] or any(word in named for word in _BANKS)):
            yield call


def _learned(cls: ast.ClassDef) -> set[str]:
    """The attributes that a forward pass changes in place by what it is given, as a codebook moved by averages; running
    statistics are spoken of by themselves."""
    methods = {each.name: _by_given(each) for each in cls.body if isinstance(each, FUNCTIONS)}
    run = closure(["forward"], lambda name: methods[name][1] if name in methods else ())
    changed = (methods[name][0] for name in run if name in methods)
    return {name for names in changed for name in names if not name.startswith("running_")}


def _by_given(method: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[set[str], list[str]]:
    """The attributes that a method changes in place by what it is given, and the methods that it calls."""
    given, changed, called = {each.arg for each in method.args.args[1:]}, set[str](), list[str]()
    for node in by_place(each for each in ast.walk(method) if isinstance(each, (ast.Assign, ast.Call))):
        of_batch = any(each.id in given for each in inner_nodes(node, ast.Name))
        match node:
            case ast.Assign(targets=targets) if of_batch:
                given |= {each.id for target in targets for each in inner_nodes(target, ast.Name)} - {"self"}
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                called.append(name)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if of_batch and name.endswith("_"):
                own = (each.attr for each in inner_nodes(owner, ast.Attribute) if last_name(each.value) == "self")
                changed.update([*own][:1])
    return changed, called


def over_the_batch(file: File) -> Iterator[ast.expr]:
    """Products of samples with all others of their batch, in functions and at the top, where these are told apart."""
    parts: list[list[ast.AST]] = []
    for function in file.scan.functions:
        named = [function.name, *(above.name for above in chain(function) if isinstance(above, ast.ClassDef))]
        if not any("attention" in name.lower() for name in named):
            parts.append(list(ast.walk(function)))
    parts.append([node for statement in file.scan.tree.body for node in own_nodes(statement)])
    for inside in parts:
        labels = any(_compares_labels(node) for node in inside)
        apart = labels or any(isinstance(node, ast.Call) and last_name(node.func) in _APART for node in inside)
        products = [node for node in inside if isinstance(node, ast.expr) and _compares(file, node, labels)]
        if apart and (products := _trained(inside, products)):
            yield min(products, key=begins)


def _trained(inside: list[ast.AST], products: list[ast.expr]) -> list[ast.expr]:
    """Those of some products of which losses are made, in code that goes back through some; all of them in other."""
    losses = [node for node in inside if isinstance(node, ast.Call) and is_backward_pass(node)]
    if not losses or not products:
        return products
    stores = [node for node in inside if isinstance(node, (ast.Assign, ast.AugAssign))]
    names, more = set[str](), {each.id for loss in losses for each in inner_nodes(loss, ast.Name)}
    while more:
        names |= more
        feeding = (node for node in stores if not names.isdisjoint(_changed(node)))
        more = {each.id for node in feeding for each in inner_nodes(node, ast.Name)} - names
    return [node for node in products if not names.isdisjoint(_changed(statement(node)))]


def _changed(stmt: ast.stmt) -> set[str]:
    """The names that an assignment stores; of any other statement all, since it may change what they hold."""
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt]
    return {each.id for target in targets for each in inner_nodes(target, ast.Name)}


def _compares_labels(node: ast.AST) -> bool:
    """True for `y[:, None] == y[None, :]`, and for `y[i] == others`, one after the other."""
    match node:
        case ast.Compare(left=ast.Subscript(slice=ast.Name()), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Name()]):
            return True
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            return _are_one(left, right)
    return False


def _are_one(left: ast.expr, right: ast.expr) -> bool:
    """True for one thing along two axes: `y[:, None]` and `y[None, :]`."""
    sides = _laid_out(left), _laid_out(right)
    return sides[0] is not None and sides[1] is not None and ast.dump(sides[0]) == ast.dump(sides[1])


def _laid_out(node: ast.expr) -> ast.expr | None:
    """What is laid along another axis: `y` of `y[:, None]`, `y.unsqueeze(1)` and `y.t()`; None for anything else."""
    match node:
        case ast.Subscript(value=value, slice=index) if any(map(is_none, ast.walk(index))):
            return value
        case ast.Call(func=ast.Attribute(value=value, attr="unsqueeze" | "view" | "reshape" | "t" | "expand")):
            return value
    return None


def _compares(file: File, node: ast.expr, labels: bool) -> bool:
    """Whether each sample meets each other one; by a difference only where labels are compared, since positions are
    taken from one another, too."""
    match node:
        case ast.BinOp(op=ast.MatMult(), left=left, right=right):  # by features: `a.T @ b / n`
            return _is_turned(right) or _is_turned(left)
        case ast.BinOp(op=ast.Sub()):
            return labels and _are_one(node.left, node.right)
        case ast.Call():
            name = file.names.qualified(node.func) or ""
            if name in _SIMILAR:
                return any(isinstance(each, ast.Call) and last_name(each.func) == "unsqueeze" for each in node.args)
            if name == "torch.cdist":
                return True
            product = name in _PRODUCTS or last_name(node.func) in ("mm", "matmul")
            return product and any(_is_turned(each) for each in node.args)
    return False


def _is_turned(node: ast.expr) -> bool:
    """True for `x.T`, `x.t()` and `x.transpose(0, 1)`, but not of a weight or a bank, of which we speak apart."""
    while isinstance(node, ast.Call) and last_name(node.func) == "contiguous" and isinstance(node.func, ast.Attribute):
        node = node.func.value
    func = callee_of(node)
    named = last_name(func.value).lower() if isinstance(func, ast.Attribute) else ""
    if not isinstance(func, ast.Attribute) or any(word in named for word in ("weight", *_BANKS)):
        return False
    axes = [each.value for each in getattr(node, "args", ()) if isinstance(each, ast.Constant)]
    return func.attr in _TURNS or (func.attr == "transpose" and sorted(map(str, axes)) == ["0", "1"])


# --- what a model gets from the batch before -------------------------------------------------------------------------


def carried(models: Models, file: File, loop: Loop) -> Iterator[ast.Name]:
    """What a model gets from the batch before: read in a round before the round has assigned it."""
    done = set[str]()
    for call in by_place(inner_nodes(loop, ast.Call)):
        around = chain(call)
        if models.origin(file, call.func) is None or any(
            isinstance(above, FUNCTIONS) for above in around[: around.index(loop)]
        ):
            continue
        for given in call.args[1:]:
            if not isinstance(given, ast.Name) or given.id in done:
                continue
            named = [node for node in inner_nodes(loop, ast.Name) if node.id == given.id]
            # `h = f(h)` and `y, h = model(x, h)`: what is assigned holds what was there before.
            stored = [statement(node) for node in named if isinstance(node.ctx, ast.Store)]
            if stored and all(
                isinstance(each, ast.Assign) and any(node.id == given.id for node in inner_nodes(each.value, ast.Name))
                for each in stored
            ):
                done.add(given.id)
                yield given
