"""`int32`: indices that only look something up in an embedding are made in 32 bits.

torch.nn.Embedding, torch.nn.functional.embedding and torch.index_select take int32 and int64 indices, on NPU as in
PyTorch (documentation of torch_npu, 2.6 to 2.13). Targets of cross_entropy and nll_loss, indices of gather, scatter and
of `x[i]` stay int64: PyTorch refuses other types there. The Ascend porting guide casts targets
(`target.to(torch.int32)`), for torch 1.5 and 1.8; who asks for this tuning with that in mind is told so at the loss.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.syntax.asks import by_place, call_of, keyword_of
from transplt.syntax.names import Names
from transplt.syntax.scan import parent
from transplt.syntax.scopes import Scope
from transplt.themes.tunings.writer import rewrite_unless_gone, writer_for
from transplt.trees.names import attribute_named

_NEEDS = (b"mbedding", b"index_select", b"cross_entropy", b"nll_loss", b"CrossEntropyLoss", b"NLLLoss")
fixer = Fixer(__name__, code="NPU771", rank=520, theme="tune:int32", needs=_NEEDS)

_MESSAGE = "32-bit indices: the embedding takes them, and they are half the size"
_LONG = {"torch.int64": "int32", "torch.long": "int"}
#: Losses whose targets are numbers of classes.
_LOSSES = frozenset(
    {*(f"torch.nn.functional.{name}" for name in ("cross_entropy", "nll_loss")),
     *(f"torch.nn.{name}" for name in ("CrossEntropyLoss", "NLLLoss"))}
)  # fmt: skip
#: Methods that hand on the type of a tensor.
_SHAPES = frozenset("unsqueeze expand view reshape repeat contiguous to cuda npu expand_as squeeze transpose t".split())


@fixer.on(ast.Module)
def indices(work: Work, tree: ast.Module) -> Finds:
    """Look at the casts and the ranges of a file."""
    writer = writer_for(work, fixer)
    if writer is None:
        return
    for node in by_place(work.scan.attributes.get("long", ())):
        call = call_of(node)
        if call is not None and not call.args and _only_looks_up(work, call):
            rewrite_unless_gone(writer, node, fixer.code, _MESSAGE, attribute_named("int"), api="torch.Tensor.long")
    for name, new in _LONG.items():
        last = name.rpartition(".")[2]
        for node in by_place(work.scan.attributes.get(last, ())):
            if work.names.qualified(node) != name:
                continue
            above = parent(node)
            made = parent(above) if isinstance(above, ast.keyword) and above.arg == "dtype" else above
            if not isinstance(made, ast.Call) or not _makes_index(work.names, made, node):
                continue
            if _only_looks_up(work, made):
                rewrite_unless_gone(writer, node, fixer.code, _MESSAGE, attribute_named(new), api=name)
    loss = next((call for call in by_place(work.scan.calls) if work.names.qualified(call.func) in _LOSSES), None)
    if loss is not None:
        why = "the targets of this loss stay 64-bit: the cast to int32 of the porting guide, for torch 1.5 and 1.8,"
        help_ = "nothing is to be done; a script that casts them already may stop doing so"
        writer.remark(loss, fixer.code, f"{why} is not needed since torch 2.1", help_)
    yield from writer.found


def _makes_index(names: Names, call: ast.Call, dtype: ast.expr) -> bool:
    """True for `torch.arange(..., dtype=torch.long)` and `x.to(torch.long)`."""
    if dtype in call.args:
        return getattr(call.func, "attr", "") in ("to", "type") and len(call.args) == 1 and not call.keywords
    return names.qualified(call.func) == "torch.arange"


def _only_looks_up(work: Work, node: ast.expr) -> bool:
    """True when a value goes to embeddings and index_select alone, directly or through one local name."""
    above = parent(node)
    while isinstance(above, ast.Attribute) and above.attr in _SHAPES and isinstance(parent(above), ast.Call):
        node = parent(above)  # type: ignore[assignment]
        assert isinstance(node, ast.Call)
        if any(work.names.qualified(given) in _LONG for given in node.args) or keyword_of(node, "dtype") is not None:
            return False
        above = parent(node)
    if _is_index(work, node):
        return True
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
        return False
    target = above.targets[0]
    scope: Scope = work.scan.scope_of(target)
    if scope.kind != "function" or len(scope.bindings.get(target.id, ())) != 1:
        return False
    reads = []
    for read in work.scan.names.get(target.id, ()):
        found = work.names.lookup(read.id, work.scan.scope_of(read))
        if found is not None and found[0] is scope:
            reads.append(read)
    return bool(reads) and all(_is_index(work, read) for read in reads)


def _is_index(work: Work, node: ast.expr) -> bool:
    """True for the indices of an embedding or of index_select."""
    call = parent(node)
    if not isinstance(call, ast.Call) or node not in call.args:
        return False
    full = work.names.qualified(call.func) or ""
    if full == "torch.nn.functional.embedding":
        return call.args[0] is node and not call.keywords and len(call.args) <= 3
    if full == "torch.index_select":
        return len(call.args) == 3 and call.args[2] is node
    return len(call.args) == 1 and not call.keywords and _is_embedding(work, call.func)


def _is_embedding(work: Work, func: ast.expr) -> bool:
    """True for an attribute of the object in which its class stores nn.Embedding layers and nothing else."""
    if not isinstance(func, ast.Attribute):
        return False
    if isinstance(func.value, ast.Name) and func.value.id == "self":
        stored = [node for node in work.scan.stores if node.attr == func.attr and _of_self(node)]
        values = [getattr(parent(node), "value", None) for node in stored]
    elif isinstance(func.value, ast.Attribute) and getattr(func.value.value, "id", "") == "self":
        # self.transformer = nn.ModuleDict(dict(wte=nn.Embedding(...), ...))
        holders = [node for node in work.scan.stores if node.attr == func.value.attr and _of_self(node)]
        values = []
        for holder in holders:
            made = getattr(parent(holder), "value", None)
            if not isinstance(made, ast.Call) or work.names.qualified(made.func) != "torch.nn.ModuleDict":
                return False
            values += [each.value for each in ast.walk(made) if isinstance(each, ast.keyword) and each.arg == func.attr]
    else:
        return False
    return bool(values) and all(isinstance(value, ast.Call) and _plain(work, value) for value in values)


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _plain(work: Work, call: ast.Call) -> bool:
    """True for nn.Embedding without the options that do more than look up."""
    if work.names.qualified(call.func) != "torch.nn.Embedding":
        return False
    return len(call.args) <= 3 and all(
        keyword.arg in ("num_embeddings", "embedding_dim", "padding_idx", "device", "dtype")
        for keyword in call.keywords
    )
