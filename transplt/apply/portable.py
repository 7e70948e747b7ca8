"""The portable style: an edit is made only if the program does on CUDA and on the CPU what it did before.

The fixers plan as for NPUs alone; then each edit is either replaced by one that holds everywhere, or becomes a
finding. `torch.accelerator` names exist since torch 2.6 (memory statistics since 2.11, native API lists of
Ascend/pytorch); from 2.5 on torch loads torch_npu by itself, so no import is added.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit
from transplt.edits.work import Work
from transplt.rules.versions import version_key
from transplt.syntax.scan import parent
from transplt.trees.expressions import left_side

#: torch.cuda name -> (torch.accelerator name, first torch version).
ACCELERATOR = {
    "torch.cuda.is_available": ("is_available", "2.6"),
    "torch.cuda.device_count": ("device_count", "2.6"),
    "torch.cuda.current_device": ("current_device_index", "2.6"),
    "torch.cuda.set_device": ("set_device_index", "2.6"),
    "torch.cuda.synchronize": ("synchronize", "2.6"),
    "torch.cuda.current_stream": ("current_stream", "2.6"),
    "torch.cuda.set_stream": ("set_stream", "2.6"),
    "torch.cuda.empty_cache": ("empty_cache", "2.11"),
    "torch.cuda.memory_allocated": ("memory_allocated", "2.11"),
    "torch.cuda.max_memory_allocated": ("max_memory_allocated", "2.11"),
    "torch.cuda.memory_reserved": ("memory_reserved", "2.11"),
    "torch.cuda.max_memory_reserved": ("max_memory_reserved", "2.11"),
    "torch.cuda.memory_stats": ("memory_stats", "2.11"),
    "torch.cuda.reset_peak_memory_stats": ("reset_peak_memory_stats", "2.11"),
}
#: Changes that keep what is there beside what they add: the text of both memory errors.
_EVERYWHERE = ("NPU230",)
#: Names of torch.cuda that stand for a name of torch itself, and become it: the same class since torch 2.5.
_ALIASES = ("torch.cuda.OutOfMemoryError",)
CURRENT = "torch.accelerator.current_accelerator()"
_HELP = "choose the device once (npu, else cuda, else cpu) and pass it on, or migrate with the style npu"
_BOTH = "both"


def adapt(work: Work) -> None:
    """Turn planned changes into portable ones or into findings; lines and edits apart of a theme stay."""
    planned = [edit for edit in work.rewrites if not edit.apart]
    work.edits = [edit for edit in work.edits if edit.group and (edit.apart or not edit.rewrites)]
    for edit in planned:
        portable = _portable(work, edit)
        if portable is not None:
            work.add(portable)
            work.add(work.keep(portable.node, _BOTH))
        else:
            message = f"not portable: {edit.message} would change what the program does on CUDA"
            work.add(work.note(edit.node, edit.code, message, api=edit.api, help=_HELP))


def _portable(work: Work, edit: Edit) -> Edit | None:
    if edit.user or edit.code in _EVERYWHERE or edit.api in _ALIASES:
        return edit
    if edit.api in ACCELERATOR:
        return _accelerator(work, edit)
    if edit.code == "NPU201" and isinstance(edit.node, ast.Constant):
        return _device_string(work, edit, edit.node)
    return None


def _accelerator(work: Work, edit: Edit) -> Edit | None:
    """`torch.cuda.x` written out -> `torch.accelerator.y`; not where an existing chain asks for mps or xpu too."""
    name, since = ACCELERATOR[edit.api]
    node = edit.node
    text = work.source.slice(*work.source.extent(node))
    if version_key(work.settings.torch_version) < version_key(since) or not text.startswith("torch.cuda."):
        return None
    if _beside_other_accelerators(work, node):
        return None
    new = f"torch.accelerator.{name}"
    return Edit(node, "NPU260", f"{edit.api} -> {new}", new, api=edit.api)


def _beside_other_accelerators(work: Work, node: ast.AST) -> bool:
    """True inside an if chain or expression that also asks for mps or xpu: torch.accelerator answers for these too."""
    top: ast.AST = node
    while not isinstance(parent(top), ast.Module):
        top = parent(top)
        if isinstance(top, (ast.If, ast.IfExp, ast.BoolOp, ast.FunctionDef)):
            text = work.source.slice(*work.source.extent(top))
            if "mps" in text or "xpu" in text:
                return True
    return False


def _device_string(work: Work, edit: Edit, node: ast.Constant) -> Edit | None:
    above = parent(node)
    if isinstance(above, ast.Compare):
        return _comparison(work, above, node)
    if node.value == "cuda" and _guarded(work, node) and version_key(work.settings.torch_version) >= (2, 6):
        if work.names.resolve("torch", work.scan.scope_of(node)) != "torch":
            return None
        new = f"{CURRENT}.type"
        return Edit(node, "NPU261", f"device string 'cuda' -> {new}", new, api=edit.api)
    return None


def _comparison(work: Work, compare: ast.Compare, node: ast.Constant) -> Edit | None:
    """`d.type == "cuda"` -> `d.type in ("cuda", "npu")`; what is compared must be a type, no full device."""
    if len(compare.ops) != 1 or node.value != "cuda" or not isinstance(compare.ops[0], (ast.Eq, ast.NotEq)):
        return None
    if compare.comparators[0] is not node:
        return None
    word = "in" if isinstance(compare.ops[0], ast.Eq) else "not in"
    left = work.source.slice(*work.source.extent(compare.left))
    quote = work.source.slice(*work.source.extent(node))[-1]
    tail = f" {word} ({quote}cuda{quote}, {quote}npu{quote})"

    message = f"{left} == 'cuda' -> {left}{tail}"
    return Edit(compare, "NPU262", message, left_side(tail), api=f"device string {node.value!r}")


def _guarded(work: Work, node: ast.AST) -> bool:
    """True for the value of `X if torch.cuda.is_available() else Y`: it is evaluated only with an accelerator."""
    above = parent(node)
    if not isinstance(above, ast.IfExp) or above.body is not node:
        return False
    test = above.test
    calls = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(
        isinstance(call, ast.Call) and work.names.qualified(call.func) == "torch.cuda.is_available" for call in calls
    ) and not _beside_other_accelerators(work, node)
