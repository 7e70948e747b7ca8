"""The TF32 flags of CUDA -> the HF32 flags of the NPU."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Found
from transplt.edits.fixer import Fixer
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import torch_name, writer_for
from transplt.syntax.nodes import by_place
from transplt.syntax.scan import parent, statement

fixer = Fixer(__name__, code="NPU754", rank=230, theme="tune:hf32")

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


@on_file(fixer, writer_for)
def flags(work: Work, writer: Writer) -> None:
    """Change what sets the flags; what reads them stays."""
    for store in by_place(work.scan.stores):
        full = work.names.qualified(store) or ""
        assign = parent(store)
        if not isinstance(assign, ast.Assign) or (full not in _FLAGS and full not in _PRECISIONS):
            continue
        if len(assign.targets) > 1:
            help_ = "set the HF32 flag on a separate line"
            writer.left(store, f"{full} is set together with others", help_, fixer.code)
        elif full in _FLAGS:
            if _is_bool(assign.value):
                _change(writer, store, _FLAGS[full], full)
            else:
                writer.left(store, f"the value of {full} is not known here", _HELP, fixer.code)
        else:
            _precision(writer, store, full, assign.value)
    for call in by_place(work.scan.calls):
        if work.names.qualified(call.func) == _SETTER:
            _setter(writer, call)
    drop_unused(writer, list(_names(writer.found)), fixer.code)
    for edit in writer.found:
        if isinstance(edit, Edit) and isinstance(edit.where, tuple):
            _forget(work, *edit.where)


def _names(found: Iterable[Found]) -> Iterator[ast.expr]:
    """The expressions that named what was replaced."""
    for edit in found:
        match edit:
            case Edit(where=ast.Expr(value=ast.Call(func=func))):
                yield func
            case Edit(where=ast.expr() as node):
                yield node


def _is_bool(value: ast.expr) -> bool:
    match value:
        case (
            ast.Constant(value=bool()) | ast.Call(func=ast.Name(id="bool")) | ast.UnaryOp(op=ast.Not()) | ast.Compare()
        ):
            return True
    return False


def _precision(writer: Writer, store: ast.Attribute, full: str, value: ast.expr) -> None:
    given = value.value if isinstance(value, ast.Constant) else None
    if given not in ("tf32", "ieee"):
        writer.left(store, f"the precision for {full} is not known here", _HELP, fixer.code)
        return
    _change(writer, store, _PRECISIONS[full], full)
    _replace(writer, value, f"the flag of torch.npu takes {given == 'tf32'}", str(given == "tf32"))


def _setter(writer: Writer, call: ast.Call) -> None:
    given = call.args[0] if call.args else next((keyword.value for keyword in call.keywords), None)
    level = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    if level not in _LEVELS or not isinstance(parent(call), ast.Expr):
        message = f"the precision for {_SETTER} is not known here"
        writer.left(call, message, "set torch.npu.matmul.allow_hf32 unless it is highest", fixer.code, Effort.LOW)
        return
    text = f"{torch_name(writer)}.npu.matmul.allow_hf32 = {_LEVELS[level]}"
    _forget(writer.work, *writer.work.source.extent(call))
    _replace(writer, statement(call), "HF32 for matrix products, the NPU's counterpart of TF32", text)


def _change(writer: Writer, store: ast.Attribute, new: str, full: str) -> None:
    _forget(writer.work, *writer.work.source.extent(store))
    _replace(writer, store, f"{full} becomes torch.{new}, the NPU's counterpart", f"{torch_name(writer)}.{new}")


def _replace(writer: Writer, node: ast.expr | ast.stmt, message: str, text: str) -> None:
    """An edit of a node that the migration has looked at already: it only reported that the flag does nothing."""
    writer.rewrite(node, fixer.code, message, text, writes_npu=True)


def _forget(work: Work, start: int, end: int) -> None:
    """Withdraw what the migration reports between two places about flags that have an effect now."""
    work.withdraw_notes(lambda note: note.code == "NPU504" and start <= note.extent[0] and note.extent[1] <= end)
