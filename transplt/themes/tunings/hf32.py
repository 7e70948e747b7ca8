"""The TF32 flags of CUDA -> the HF32 flags of the NPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.edits.rewrite import Change
from transplt.edits.writing import Writer, written
from transplt.finding import Effort
from transplt.syntax.scan import parent, statement
from transplt.themes.tunings.spelling import torch_name
from transplt.themes.tunings.unused import drop_unused

CODE = "NPU754"
#: Flags that take True and False. Both sides have the same default: matrix products off, convolutions on.
_FLAGS = {
    "torch.backends.cuda.matmul.allow_tf32": "npu.matmul.allow_hf32",
    "torch.backends.cudnn.allow_tf32": "npu.conv.allow_hf32",
}
#: Flags of torch 2.9 and newer that take "tf32" or "ieee".
_PRECISIONS = {
    "torch.backends.cuda.matmul.fp32_precision": "npu.matmul.allow_hf32",
    "torch.backends.cudnn.conv.fp32_precision": "npu.conv.allow_hf32",
}
_SETTER = "torch.set_float32_matmul_precision"
_LEVELS = {"highest": False, "high": True, "medium": True}
_HELP = "the flags of torch.npu take True or False only"


def plan(writer: Writer, value: str) -> None:
    """Change what sets the flags; what reads them stays."""
    work = writer.work
    for store in sorted(work.scan.stores, key=lambda node: (node.lineno, node.col_offset)):
        full = work.names.qualified(store) or ""
        assign = parent(store)
        if not isinstance(assign, ast.Assign) or (full not in _FLAGS and full not in _PRECISIONS):
            continue
        if len(assign.targets) > 1:
            writer.left(store, f"{full} is set together with others", "set the HF32 flag on a line of its own", CODE)
        elif full in _FLAGS:
            _flag(writer, store, full, assign.value)
        else:
            _precision(writer, store, full, assign.value)
    for call in sorted(work.scan.calls, key=lambda node: (node.lineno, node.col_offset)):
        if work.names.qualified(call.func) == _SETTER:
            _setter(writer, call)
    drop_unused(writer, list(_names(work.changes)), CODE)
    for gone in work.deletions:
        if gone.code == CODE:
            _forget_between(writer, gone.start, gone.end)


def _names(changes: list[Change]) -> Iterator[ast.expr]:
    """The expressions that named what was replaced."""
    for change in changes:
        if change.code == CODE:
            node = change.node
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                yield node.value.func
            elif isinstance(node, ast.expr):
                yield node


def _flag(writer: Writer, store: ast.Attribute, full: str, value: ast.expr) -> None:
    if _is_bool(value):
        _change(writer, store, _FLAGS[full], full)
    else:
        writer.left(store, f"whether {full} gets True or False cannot be seen", _HELP, CODE)


def _is_bool(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, bool)
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", "") == "bool"
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.Not)
    return isinstance(value, ast.Compare)


def _precision(writer: Writer, store: ast.Attribute, full: str, value: ast.expr) -> None:
    given = value.value if isinstance(value, ast.Constant) else None
    if given not in ("tf32", "ieee"):
        writer.left(store, f"which precision {full} gets cannot be seen", _HELP, CODE)
        return
    _change(writer, store, _PRECISIONS[full], full)
    _append(writer, value, f"the flag of torch.npu takes {given == 'tf32'}", str(given == "tf32"))


def _setter(writer: Writer, call: ast.Call) -> None:
    given = call.args[0] if call.args else next((keyword.value for keyword in call.keywords), None)
    level = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    if level not in _LEVELS or not isinstance(parent(call), ast.Expr):
        message = f"which precision {_SETTER} gets cannot be seen"
        writer.left(call, message, "set torch.npu.matmul.allow_hf32 where it is not highest", CODE, Effort.LOW)
        return
    text = f"{torch_name(writer)}.npu.matmul.allow_hf32 = {_LEVELS[level]}"
    _forget(writer, call)
    _append(writer, statement(call), "HF32 for matrix products, the NPU's counterpart of TF32", text)


def _change(writer: Writer, store: ast.Attribute, new: str, full: str) -> None:
    _forget(writer, store)
    _append(writer, store, f"{full} becomes torch.{new}, the NPU's counterpart", f"{torch_name(writer)}.{new}")


def _append(writer: Writer, node: ast.expr | ast.stmt, message: str, text: str) -> None:
    """A change of a node that the migration has looked at already: it only said that the flag does nothing."""
    writer.work.changes.append(
        Change(node, CODE, message, written(text), writer.level, writes_npu=True, asked=writer.asked)
    )


def _forget(writer: Writer, node: ast.expr) -> None:
    """Take back what the migration says about a flag that has an effect now."""
    _forget_between(writer, *writer.work.source.extent(node))


def _forget_between(writer: Writer, start: int, end: int) -> None:
    work = writer.work
    work.notes = [
        note for note in work.notes if not (note.code == "NPU504" and start <= note.extent[0] and note.extent[1] <= end)
    ]
