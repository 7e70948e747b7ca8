"""What of a program looks past one sample: products over a batch, memories of earlier batches, a state carried on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.loops import Loop
from transplt.program.models import Models
from transplt.program.program import Function
from transplt.syntax.asks import begins, by_place, last_name, own_nodes
from transplt.syntax.files import File
from transplt.syntax.scan import FUNCTIONS, chain

#: Methods that give a matrix of two axes the other way round; attention turns its last two.
_TURNS = frozenset({"t", "T"})
_PRODUCTS = frozenset({"torch.mm", "torch.matmul", "torch.cdist", "torch.einsum"})
_SIMILAR = frozenset({"torch.nn.functional.cosine_similarity", "torch.cosine_similarity"})
#: What tells a sample from the others of its batch.
_APART = frozenset({"eye", "arange", "fill_diagonal_", "diag", "diagonal", "eq"})
_BANKS = ("queue", "bank", "memory")


def memories(file: File) -> Iterator[ast.expr]:
    """Buffers that keep what earlier batches gave."""
    for call in by_place(file.scan.calls):
        first = call.args[0] if call.args else None
        named = str(first.value).lower() if isinstance(first, ast.Constant) else ""
        if last_name(call.func) == "register_buffer" and any(word in named for word in _BANKS):
            yield call


def over_the_batch(file: File) -> Iterator[ast.expr]:
    """Products of samples with all others of their batch, in functions and at the top, where these are told apart."""
    top = [node for statement in file.scan.tree.body for node in own_nodes(statement)]
    for inside in (*(list(ast.walk(function)) for function in file.scan.functions if not _attends(function)), top):
        labels = any(_compares_labels(node) for node in inside)
        apart = labels or any(isinstance(node, ast.Call) and last_name(node.func) in _APART for node in inside)
        products = [node for node in inside if isinstance(node, ast.expr) and _compares(file, node, labels)]
        if apart and products:
            yield min(products, key=begins)


def _compares_labels(node: ast.AST) -> bool:
    """True for `y[:, None] == y[None, :]`."""
    if not isinstance(node, ast.Compare) or len(node.comparators) != 1:
        return False
    return isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and _are_one(node.left, node.comparators[0])


def _are_one(left: ast.expr, right: ast.expr) -> bool:
    """True for one thing along two axes: `y[:, None]` and `y[None, :]`."""
    sides = _laid_out(left), _laid_out(right)
    return sides[0] is not None and sides[1] is not None and ast.dump(sides[0]) == ast.dump(sides[1])


def _laid_out(node: ast.expr) -> ast.expr | None:
    """What is laid along another axis: `y` of `y[:, None]`, `y.unsqueeze(1)` and `y.t()`; None for anything else."""
    if isinstance(node, ast.Subscript) and any(
        isinstance(each, ast.Constant) and each.value is None for each in ast.walk(node.slice)
    ):
        return node.value
    turns = ("unsqueeze", "view", "reshape", "t", "expand")
    func = node.func if isinstance(node, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and func.attr in turns else None


def _compares(file: File, node: ast.expr, labels: bool) -> bool:
    """Whether each sample meets each other one; by a difference only where labels are compared, since positions are
    taken from one another, too."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _is_turned(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return labels and _are_one(node.left, node.right)
    if not isinstance(node, ast.Call):
        return False
    name = file.names.qualified(node.func) or ""
    if name in _SIMILAR:
        return any(isinstance(each, ast.Call) and last_name(each.func) == "unsqueeze" for each in node.args)
    if name == "torch.cdist":
        return True
    turned = name in _PRODUCTS or last_name(node.func) in ("mm", "matmul")
    return turned and any(_is_turned(each) for each in node.args)


def _is_turned(node: ast.expr) -> bool:
    """True for `x.T`, `x.t()` and `x.transpose(0, 1)`, but not of a weight."""
    while isinstance(node, ast.Call) and last_name(node.func) == "contiguous" and isinstance(node.func, ast.Attribute):
        node = node.func.value
    func = node.func if isinstance(node, ast.Call) else node
    if not isinstance(func, ast.Attribute) or "weight" in last_name(func.value).lower():
        return False
    axes = [each.value for each in node.args if isinstance(each, ast.Constant)] if isinstance(node, ast.Call) else []
    return func.attr in _TURNS or (func.attr == "transpose" and sorted(map(str, axes)) == ["0", "1"])


def _attends(function: Function) -> bool:
    return "attention" in function.name.lower() or any(
        isinstance(above, ast.ClassDef) and "attention" in above.name.lower() for above in chain(function)
    )


# --- what a model gets from the batch before -------------------------------------------------------------------------


def carried(models: Models, file: File, loop: Loop) -> Iterator[ast.Name]:
    """What a model gets from the batch before: read in a round before the round has assigned it."""
    done = set[str]()
    for call in by_place(node for node in ast.walk(loop) if isinstance(node, ast.Call)):
        if models.origin(file, call.func) is None or any(
            isinstance(above, FUNCTIONS) for above in _within(call, loop)
        ):
            continue
        for given in call.args[1:]:
            if not isinstance(given, ast.Name) or given.id in done:
                continue
            named = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == given.id]
            stores = [node for node in named if isinstance(node.ctx, ast.Store)]
            if stores and all(_comes_from(store, given.id) for store in stores):
                done.add(given.id)
                yield given


def _within(node: ast.AST, loop: Loop) -> Iterator[ast.AST]:
    for above in chain(node):
        if above is loop:
            return
        yield above


def _comes_from(store: ast.Name, name: str) -> bool:
    """True for `h = f(h)` and `y, h = model(x, h)`: what is assigned holds what was there before."""
    stored = next((above for above in chain(store) if isinstance(above, ast.stmt)), None)
    value = stored.value if isinstance(stored, ast.Assign) else None
    return value is not None and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))
