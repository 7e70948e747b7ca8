"""Weights that were saved on a GPU, loaded without a word about the device.

`torch.load` puts tensors back where they were saved, and raises where torch has no CUDA (torch/serialization.py,
"Attempting to deserialize object on a CUDA device"); torch_npu leaves that as it is (torch_npu/utils/serialization.py).
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.finding import Level

fixer = Fixer(__name__, code="NPU152", rank=170, needs=(b"torch",))

_MESSAGE = "torch.load without map_location cannot read a file that was saved on a GPU"
_HELP = "add map_location='cpu' (or the device) where the file may come from a GPU; files saved on an NPU need nothing"


@fixer.on(ast.Call, name="torch.load")
def says_nothing_of_a_device(work: Work, call: ast.Call) -> Finds:
    if b".load(" in work.source.utf8 and not _says_where(call):
        yield work.note(call.func, "NPU152", _MESSAGE, level=Level.INFO, api="torch.load", help=_HELP)


def _says_where(call: ast.Call) -> bool:
    starred = any(isinstance(arg, ast.Starred) for arg in call.args)
    return starred or len(call.args) > 1 or any(word.arg in (None, "map_location") for word in call.keywords)
