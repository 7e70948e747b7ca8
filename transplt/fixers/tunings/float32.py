"""`float32`: float64 tensors on the device become float32 where a meter or a sum over the ranks needs no more.

HCCL sums no float64 (codemods.reductions finds where), and float64 is not generally available on NPU (documentation of
torch_npu, torch.Tensor.double). float32 counts exactly up to 2**24 = 16 777 216. What stays on the host stays float64.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Extent
from transplt.edits.fixer import Fixer
from transplt.edits.trees import names
from transplt.edits.trees.expressions import between, receiver
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import rewrite_unless_gone, rewrites, switched_off, writer_for
from transplt.fixers.tunings.values import is_closed_over
from transplt.program.cards import MOVES, is_device
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import arguments_of, by_place, call_of, keyword_of, last_name
from transplt.syntax.scan import parent
from transplt.syntax.scopes import Binding

fixer = Fixer(__name__, code="NPU770", rank=510, theme="tune:float32", needs=(b"double", b"float64", b"from_numpy"))

_DOUBLE = {"torch.float64": "float32", "torch.double": "float"}
_SUMMED = "float32 instead of float64, which HCCL cannot sum; exact for whole numbers up to 16 777 216"
_METER = "float32 instead of float64, which NPUs mostly lack; exact for whole numbers up to 16 777 216"
_EARLY = "the values become float32 on the host: the same values, and no float64 on the device"
_MAKERS = frozenset("tensor zeros ones full empty zeros_like ones_like as_tensor scalar_tensor".split())
#: What reads a value, for whom float32 is as good.
_READ = names_of(TENSOR, "to_host", "reads", "shape", "same_tensor")
_COLLECTIVES = frozenset("all_reduce reduce broadcast all_gather gather reduce_scatter".split())


@on_file(fixer, writer_for)
def tensors_of_float64(work: Work, writer: Writer) -> None:
    """Look at the float64 tensors of a file."""
    _sums(writer)
    _meters(writer)
    if b"from_numpy" in work.source.utf8:
        _early(writer)


def _sums(writer: Writer) -> None:
    """What codemods.reductions reports as a float64 that HCCL refuses."""
    work = writer.work
    settled = []
    doubles: list[ast.expr] = [node for name in ("float64", "double") for node in work.scan.attributes.get(name, ())]
    doubles += [node for name in ("float64", "double") for node in work.scan.names.get(name, ())]
    doubles += [node for node in work.scan.calls if getattr(node.func, "attr", "") == "double"]
    for note in work.notes:
        if note.code == "NPU314":
            node = next((each for each in doubles if work.source.extent(each) == note.extent), None)
            if node is not None and _to_float32(writer, node, _SUMMED) and not switched_off(work, node, fixer.code):
                settled.append(note)
    work.withdraw_notes(lambda note: note in settled)


def _to_float32(writer: Writer, node: ast.expr, message: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="double") as func):
            return _renamed(writer, func, "float", message, "torch.Tensor.double")
        case ast.Attribute() if new := _DOUBLE.get(writer.work.names.qualified(node) or ""):
            return _renamed(writer, node, new, message, "torch.float64")
    return False


def _renamed(writer: Writer, node: ast.Attribute, name: str, message: str, api: str) -> bool:
    return rewrite_unless_gone(writer, node, fixer.code, message, names.attribute_named(name), api=api)


# --- meters ----------------------------------------------------------------------------------------------------------


def _meters(writer: Writer) -> None:
    """`total = torch.zeros(2, dtype=torch.float64, device="cuda")` that is summed up, reduced and read."""
    work = writer.work
    taken = [edit.node for edit in rewrites(writer) if edit.code == fixer.code]
    for name in _DOUBLE:
        for node in by_place(work.scan.attributes.get(name.rpartition(".")[2], ())):
            if node in taken or work.names.qualified(node) != name:
                continue
            made = _made_on_device(work, node)
            if made is None or not _only_counts(work, made) or not _to_float32(writer, node, _METER):
                continue
            if not switched_off(work, node, fixer.code):
                _forget(work, work.source.extent(node))


def _forget(work: Work, extent: Extent) -> None:
    """Withdraw what the migration reports about a dtype that is another one now."""
    work.withdraw_notes(lambda note: note.code == "NPU127" and note.extent == extent)


def _made_on_device(work: Work, dtype: ast.expr) -> ast.Name | None:
    """The local name of a tensor that is made on the device with this dtype."""
    keyword = parent(dtype)
    call = parent(keyword)
    if not isinstance(keyword, ast.keyword) or keyword.arg != "dtype" or not isinstance(call, ast.Call):
        return None
    module, _, maker = (work.names.qualified(call.func) or "").rpartition(".")
    if module != "torch" or maker not in _MAKERS:
        return None
    device, whole = keyword_of(call, "device"), call
    there = device is not None and is_device(work.names, device)
    match parent(call), parent(parent(call)):
        case ast.Attribute(attr=move), ast.Call(args=args) as moved if move in MOVES:
            there, whole = move != "to" or (len(args) == 1 and is_device(work.names, args[0])), moved
    match parent(whole):
        case ast.Assign(targets=[ast.Name() as target]) if there:
            return target
    return None


def _only_counts(work: Work, target: ast.Name) -> bool:
    """True when a tensor is only added up, summed over the ranks and read: nothing else sees its dtype."""
    scope = work.scan.scope_of(target)
    if scope.kind != "function":
        return False
    reads = [node for node in work.scan.names.get(target.id, ()) if work.scan.scope_of(node) is scope]
    if any(
        binding.kind != "assign" or not _stores_itself(binding.node, target) for binding in scope.bindings[target.id]
    ):
        return False
    if is_closed_over(work, target.id, scope):
        return False
    last = _becomes_list(scope.bindings[target.id], target)
    reads = [node for node in reads if node.lineno <= last]
    return bool(reads) and all(_counts(work, node, target.id) for node in reads)


def _becomes_list(bindings: list[Binding], target: ast.Name) -> float:
    """The line of `x = x.tolist()` in the block of the first store: below it the name is no tensor."""
    for binding in bindings:
        above = parent(binding.node)
        beside = binding.node is not target and parent(above) is parent(parent(target))
        match getattr(above, "value", None):
            case ast.Call(func=ast.Attribute(attr="tolist" | "item"), lineno=line) if beside:
                return float(line)
    return float("inf")


def _stores_itself(node: ast.AST, target: ast.Name) -> bool:
    """True for the first store, for `x += ...`, and for `x = x.tolist()` and the like."""
    if node is target:
        return True
    match parent(node):
        case ast.AugAssign():
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.NamedExpr(value=value):
            match value:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                    return method in _READ and name == target.id
    return False


def _counts(work: Work, node: ast.expr, name: str) -> bool:
    above = parent(node)
    while isinstance(above, ast.Subscript) and above.value is node:
        if isinstance(above.ctx, ast.Store):
            return True
        node, above = above, parent(above)
    match above:
        case ast.AugAssign(target=target) if target is node:
            return True
        case ast.Attribute(attr=attribute):
            return attribute in _READ
        case ast.Call(func=func):
            last, full = last_name(func), work.names.qualified(func)
            if last in ("float", "int", "print"):
                return True
            return full == f"torch.distributed.{last}" and last in _COLLECTIVES and last != "gather"
        case ast.BinOp(left=left, op=ast.Div(), right=right):  # total / count, both parts of it
            return all(
                name in {each.id for each in ast.walk(side) if isinstance(each, ast.Name)} for side in (left, right)
            )
    return isinstance(above, ast.FormattedValue)


# --- what is float32 in the end anyway --------------------------------------------------------------------------------


def _early(writer: Writer) -> None:
    """`torch.from_numpy(a).to(device)[t].float()`: the cast goes in front of the copy."""
    work = writer.work
    for method in by_place(work.scan.attributes.get("float", ())):
        call, moved = call_of(method), method.value
        if call is None or call.args or call.keywords:
            continue
        while isinstance(moved, ast.Subscript):
            moved = moved.value
        match moved:
            case ast.Call(func=ast.Attribute(value=ast.Call() as source, attr=move)) if move in MOVES:
                if work.names.qualified(source.func) != "torch.from_numpy" or not _only_moves(work, moved):
                    continue
            case _:
                continue
        if switched_off(work, source, fixer.code) or switched_off(work, call, fixer.code):
            continue
        start, end = work.source.extent(source)
        if any(start <= work.source.extent(edit.node)[0] < end for edit in rewrites(writer)):
            continue
        if rewrite_unless_gone(writer, source, fixer.code, _EARLY, between("", ".float()"), api="torch.Tensor.float"):
            writer.rewrite(call, fixer.code, _EARLY, receiver(), holes=(method.value,))


def _only_moves(work: Work, call: ast.Call) -> bool:
    """True for a copy to a device that gives no dtype."""
    assert isinstance(call.func, ast.Attribute)
    given = arguments_of(call)
    if any(keyword.arg not in ("device", "non_blocking") for keyword in call.keywords) or len(call.args) > 1:
        return False
    return call.func.attr != "to" or (bool(given) and is_device(work.names, given[0]))
