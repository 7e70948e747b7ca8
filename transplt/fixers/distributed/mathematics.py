"""What is other mathematics on several cards, whatever is written: each card sees its share of a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.fixers.distributed.bench import Bench
from transplt.program.carried import carried
from transplt.program.program import Function
from transplt.program.wraps import buffers_apart
from transplt.syntax.asks import begins, by_place, last_name
from transplt.syntax.files import File
from transplt.syntax.scan import chain

_LOSS = (
    "NPU353",
    "this compares each sample with the others of its batch, which is that of one card",
    "gather what is compared over the ranks, with gradients, or leave it if the batch of a card is meant",
)
_MEMORY = (
    "NPU353",
    "a memory of earlier batches: the wrapper sends rank 0's to all ranks, and what the others have stored is lost",
    "a memory of earlier batches: each rank keeps what its own batches gave",
    "gather the new entries over the ranks before they are stored, so that all ranks store the same",
)
_TWO_STEPS = (
    "NPU354",
    "an optimizer of two steps: gradients are averaged in front of both, as in one process with the batch of all",
    "to look around by the gradient of a card's own batch, average in front of the second step alone",
)
_NORM = (
    "NPU355",
    "a batch norm takes the statistics of a card's share of the batch",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) takes those of all cards, and is slower",
)
_CARRIED = (
    "NPU356",
    "{name} is carried from batch to batch, and each card goes through batches of its own",
    "see that the samples which follow one another lie on one card, or begin each batch without it",
)
#: Methods that give a matrix of two axes the other way round; attention turns its last two.
_TURNS = frozenset({"t", "T"})
_PRODUCTS = frozenset({"torch.mm", "torch.matmul", "torch.cdist", "torch.einsum"})
_SIMILAR = frozenset({"torch.nn.functional.cosine_similarity", "torch.cosine_similarity"})
#: What tells a sample from the others of its batch.
_APART = frozenset({"eye", "arange", "fill_diagonal_", "diag", "diagonal", "eq"})
_BANKS = ("queue", "bank", "memory")


def remark_mathematics(bench: Bench) -> None:
    """One remark for each of these in the file on the bench."""
    file = bench.file
    for node in _memories(file):
        each = bool(bench.verdict.averaging) or all(buffers_apart(bench.models, origin) for origin in bench.wraps)
        code, lost, own, help_ = _MEMORY
        bench.remark(node, code, own if each else lost, help_)
        break
    for node in _over_the_batch(file):
        bench.remark(node, *_LOSS)
        break
    for call in by_place(file.scan.calls):
        if last_name(call.func) == "first_step" and bench.training.in_region(file, call):
            bench.remark(call, *_TWO_STEPS)
            break
    norms = (call for call in by_place(file.scan.calls) if last_name(call.func).startswith("BatchNorm"))
    if (norm := next(norms, None)) is not None:
        bench.remark(norm, *_NORM)
    for at, loop, loaders in bench.training.loops:
        if at is file and any(id(loader.call) in bench.verdict.shares.places for loader in loaders):
            for node in carried(bench.models, file, loop):
                code, message, help_ = _CARRIED
                bench.remark(node, code, message.format(name=node.id), help_)


def _memories(file: File) -> Iterator[ast.expr]:
    """Buffers that keep what earlier batches gave."""
    for call in by_place(file.scan.calls):
        first = call.args[0] if call.args else None
        named = str(first.value).lower() if isinstance(first, ast.Constant) else ""
        if last_name(call.func) == "register_buffer" and any(word in named for word in _BANKS):
            yield call


def _over_the_batch(file: File) -> Iterator[ast.expr]:
    """Products of samples with all others of their batch, in functions that tell each from the others."""
    for function in file.scan.functions:
        inside = list(ast.walk(function))
        apart = any(isinstance(node, ast.Call) and last_name(node.func) in _APART for node in inside)
        products = [node for node in inside if isinstance(node, ast.expr) and _compares(file, node)]
        if apart and products and not _attends(function):
            yield min(products, key=begins)


def _compares(file: File, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _is_turned(node.right)
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
