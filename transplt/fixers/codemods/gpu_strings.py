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
from transplt.edits.work import Work
from transplt.syntax.asks import last_name
from transplt.syntax.scan import parent
from transplt.trees.literals import words_in_literal

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
    above = parent(node)
    if not isinstance(above, ast.Assign) or above.value is not node:
        return [node]
    target = above.targets[0]
    if len(above.targets) > 1 or not isinstance(target, ast.Name):
        return []
    held = work.names.lookup(target.id, work.scan.scope_of(target))
    if held is None or len(held[1]) != 1:
        return []
    return [
        use
        for use in work.scan.names.get(target.id, ())
        if isinstance(use.ctx, ast.Load) and work.names.lookup(use.id, work.scan.scope_of(use)) == held
    ]


def _is_device(work: Work, use: ast.expr) -> bool:
    """True where torch reads a device."""
    above = parent(use)
    call = parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call) or call.func is use:
        return False
    full = work.names.qualified(call.func) or ""
    if isinstance(above, ast.keyword):
        return above.arg in ("device", "map_location") and full.startswith("torch.")
    if call.args[:1] != [use]:
        return False
    moves = isinstance(call.func, ast.Attribute) and last_name(call.func) in ("to", "cuda")
    return full in _TAKES_DEVICES or (moves and not full)
