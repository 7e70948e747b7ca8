"""The backend gloo with tensors on the device: it takes those of CUDA, and none of an NPU.

Source: torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (`all_reduce`, `broadcast` and others have a path for CUDA
tensors, any other device raises "unsupported device type"); torch_npu adds none.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.reductions import on_device
from transplt.rules.card_limits import limit_text
from transplt.syntax.nodes import keyword_of, last_name, string_of

fixer = Fixer(__name__, code="NPU276", rank=265, needs=(b"gloo",))

_COLLECTIVES = frozenset(
    "all_reduce reduce broadcast all_gather all_gather_into_tensor gather scatter reduce_scatter send recv isend "
    "irecv".split()
)
_WRAPPERS = ("DistributedDataParallel", "DDP")
#: Optimizers of libraries that sum gradients by the default group, with the parameters as their first argument
#: (cherry/optim.py of learnables/cherry: dist.all_reduce of each p.grad).
_OPTIMIZERS = ("cherry.optim.Distributed",)


@fixer.on(ast.Call, last="init_process_group")
def takes_tensors_of_the_cpu_alone(work: Work, call: ast.Call) -> Finds:
    """Report a group of gloo in a file that hands tensors of the device to it."""
    if not (work.names.qualified(call.func) or "").startswith("torch.distributed."):
        return
    given = keyword_of(call, "backend") or (call.args[0] if call.args else None)
    others = len(work.scan.calls_by_last_name(("init_process_group",))) > 1  # then the program chooses
    if given is None or string_of(given) != "gloo" or others or not _meets_the_device(work):
        return
    yield work.note(
        call,
        fixer.code,
        limit_text("gloo").message,
        api="torch.distributed.init_process_group",
        help=limit_text("gloo").help,
        effort=Effort.LOW,
    )


def _meets_the_device(work: Work) -> bool:
    for call in work.scan.calls:
        last = last_name(call.func)
        if last in _WRAPPERS:
            devices = keyword_of(call, "device_ids")
            if devices is not None and not (isinstance(devices, ast.Constant) and devices.value is None):
                return True
            if call.args and on_device(work, call.args[0]):
                return True
        elif last == "Distributed" and work.names.qualified(call.func) in _OPTIMIZERS:
            if any(word in work.source.utf8 for word in (b".cuda(", b"'cuda", b'"cuda', b".npu(", b"'npu", b'"npu')):
                return True  # whose parameters lie there after `model.to(device)`
        elif last in _COLLECTIVES and any(on_device(work, argument) for argument in call.args):
            return True
    return False
