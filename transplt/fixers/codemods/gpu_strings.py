"""`"gpu"` and `"gpu:0"` where torch reads a device.

torch knows no device of that name; guides and ports write it all the same, and mean the card. The word is common, so
that a string moves only where nothing but devices is made of it: a variable that is also compared, printed or handed to
others stays, and so does every other library's (`tf.device("/gpu:0")`, `jax.devices("gpu")`).
"""

from __future__ import annotations

import ast
import re

from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.syntax.nodes import attribute_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU201", rank=540, needs=(b"torch",), words=('"gpu', "'gpu"))

_GPU = re.compile(r"gpu(?::\d+)?")
_TAKES_DEVICES = ("torch.device", "torch.cuda.set_device", "torch.cuda.device")


@fixer.on(ast.Module)
def devices_called_gpu(work: Work, tree: ast.Module) -> Finds:
    """Name the NPU where a string for a GPU is a device of torch."""
    if not any(word.encode() in work.source.utf8 for word in fixer.words):
        return
    for node in work.scan.texts:
        if not _GPU.fullmatch(str(node.value)):
            continue
        uses = _uses(work, node)
        if not uses or not all(_is_device(work, use) for use in uses) or not work.take(node):
            continue
        if one_plain_literal(work.text(node), ["gpu"]):
            new = words_in_literal({"gpu": "npu"})
            yield Edit(node, fixer.code, f"device string {node.value!r} -> string 'npu'", new, writes_npu=True)


def _uses(work: Work, node: ast.expr) -> list[ast.expr]:
    """Where a string goes: the string itself, or all reads of the one variable that holds it."""
    match parent(node):
        case ast.Assign(targets=[ast.Name() as target], value=value) if value is node:
            held = work.names.bindings_of(target)
            reads = [use for use in work.scan.names.get(target.id, ()) if isinstance(use.ctx, ast.Load)]
            return [use for use in reads if len(held) == 1 and work.names.bindings_of(use) is held]
        case ast.Assign(value=value) if value is node:
            return []
    return [node]


def _is_device(work: Work, use: ast.expr) -> bool:
    """True where torch reads a device."""
    match parent(use):
        case ast.keyword(arg="device" | "map_location") as keyword:
            call = parent(keyword)
            return isinstance(call, ast.Call) and (work.names.qualified(call.func) or "").startswith("torch.")
        case ast.Call(func=func, args=[first, *_]) if first is use:
            full = work.names.qualified(func) or ""
            return full in _TAKES_DEVICES or (not full and attribute_of(func) in ("to", "cuda"))
    return False
