"""Integers as devices: `.to(rank)`, `torch.device(0)`, `device=0`.

From torch 2.3 on an integer means the device of the backend that is registered, so that it is an NPU once torch_npu is
imported. Up to 2.2 it means CUDA whatever is registered, and the program stops there. Source: torch/csrc/utils/
python_arg_parser.h (toDevice) in the headers of the torch wheels 2.2.2, 2.3.1 and 2.13.0; pytorch/pytorch#117966.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.rules.versions import version_key
from transplt.syntax.nodes import last_name

fixer = Fixer(__name__, code="NPU247", rank=430)

#: The last torch for which an integer is a device of CUDA.
_LAST = "2.2"
_NUMBERED = re.compile(r"(?:^|_)(?:local_?rank|rank|gpu|gpu_?id|device_?id|dev_?id|device_?index|gpu_?idx)$", re.I)
_CURRENT = ("torch.cuda.current_device", "torch.npu.current_device")


@fixer.on(ast.Module)
def takes_a_number(work: Work, tree: ast.Module) -> Finds:
    """Give bare numbers the name of the device."""
    for call in work.scan.calls if version_key(work.settings.torch_version) <= version_key(_LAST) else ():
        if call.keywords or last_name(call.func) in ("device", "to"):
            for value in _devices(work, call):
                yield from _device(work, value)


def _devices(work: Work, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that are devices."""
    func = call.func
    last = last_name(func)
    found = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    if found or last == "device":
        full = work.names.qualified(func) or ""
        if not full.startswith("torch.") and last != "to" and not last.startswith("new_"):
            found = []
        if full == "torch.device" and len(call.args) == 1:
            found.append(call.args[0])
    if last == "to" and isinstance(func, ast.Attribute) and call.args:
        found.append(call.args[0])
    return found


def _device(work: Work, value: ast.expr) -> Finds:
    if isinstance(value, ast.Constant):
        if type(value.value) is int and work.take(value):
            text = f'"npu:{value.value}"'
            yield Edit(
                value,
                "NPU247",
                f"device {value.value} -> {text}",
                text,
                help="up to torch 2.2 an integer means a CUDA device",
                writes_npu=True,
            )
        return
    if isinstance(value, ast.Call):
        numbered = (work.names.qualified(value.func) or "") in _CURRENT
    else:
        last = last_name(value)
        numbered = bool(_NUMBERED.search(last))
    if numbered:
        shown = work.source.slice(*work.source.extent(value))
        kind = "{DEVICE_TYPE}" if work.settings.style == "portable" else "npu"
        yield work.note(
            value,
            "NPU248",
            f"up to torch 2.2 the integer {shown} means a CUDA device",
            help=f'write f"{kind}:{{{shown}}}" if it is an integer: from torch 2.3 on it is the index of an NPU',
            effort=Effort.LOW,
        )
