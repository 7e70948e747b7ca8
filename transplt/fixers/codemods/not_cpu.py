"""Tests for "not the CPU" that lead to what runs on CUDA alone: an NPU passes them as a card of NVIDIA does.

`use_gpu = device != "cpu"` needs no edit, and is true of `npu:0`; what it chooses may be the CUDA platform of another
library. Nothing is taken back here: such a test is reported where `CudaSide` finds what it leads to.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.gates.cuda_side import CudaSide
from transplt.flow.gates.not_cpu import asked_beside_cuda, refuses_the_cpu, truth_off_the_cpu

fixer = Fixer(__name__, code="NPU272", rank=620)


@fixer.on(ast.Module)
def tests_for_another_device_than_the_cpu(work: Work, tree: ast.Module) -> Finds:
    """Report the tests that an NPU passes in front of code for CUDA."""
    if b"cpu" not in work.source.utf8:
        return
    side: CudaSide | None = None
    for node in work.scan.compares:
        truth = truth_off_the_cpu(work.slots, node)
        if truth is None or asked_beside_cuda(work.slots, node) or refuses_the_cpu(node, truth):
            continue
        side = side or CudaSide(work.slots, work.rules, work.project)
        answer = side.of(node, truth, of_a_tensor=True)
        if answer is not None and answer.followed:
            yield work.note(
                node,
                fixer.code,
                f"an NPU is not the CPU: this condition leads to code that needs CUDA ({answer.why})",
                help='test for what that code needs (for example, device.type == "cuda", or that its library finds a '
                     "CUDA device), so that NPUs take the CPU path",
                effort=Effort.LOW,
                details=(("needs", answer.why),),
            )
