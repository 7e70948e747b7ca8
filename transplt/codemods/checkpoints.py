"""Weights that were saved on a GPU, loaded without a word about the device.

`torch.load` puts tensors back where they were saved, and raises where torch has no CUDA (torch/serialization.py,
"Attempting to deserialize object on a CUDA device"); torch_npu leaves that as it is (torch_npu/utils/serialization.py).
"""

from __future__ import annotations

import ast

from transplt.edits.work import Work
from transplt.finding import Level
from transplt.syntax.scan import parent

_MESSAGE = "torch.load without map_location cannot read a file that was saved on a GPU"
_HELP = "add map_location='cpu' (or the device) where the file may come from a GPU; files saved on an NPU need nothing"


def plan(work: Work) -> None:
    """Say where a file saved on a GPU cannot be read on an NPU."""
    if b".load(" not in work.source.utf8 or b"torch" not in work.source.utf8:
        return
    for node in work.scan.attributes.get("load", ()):
        call = parent(node)
        if not isinstance(call, ast.Call) or call.func is not node or _says_where(call):
            continue
        if work.names.qualified(node) == "torch.load":
            work.note(node, "NPU152", _MESSAGE, level=Level.INFO, api="torch.load", help=_HELP)


def _says_where(call: ast.Call) -> bool:
    starred = any(isinstance(arg, ast.Starred) for arg in call.args)
    return starred or len(call.args) > 1 or any(word.arg in (None, "map_location") for word in call.keywords)
