"""nvidia-smi and the execution provider of ONNX Runtime for CUDA: things of NVIDIA that are named in strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.device_strings import whole_value
from transplt.flow.gates import goes_on_without
from transplt.flow.reached import places
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU245", rank=510)

_COMMAND = re.compile(r"(?:^|[\s/\\;|&`(])nvidia-smi(?:\.exe)?(?=$|[\s;|&`)])")
_PROVIDER = "CUDAExecutionProvider"
#: What starting a program that is not installed raises, and what catches it.
_MISSING = frozenset({"FileNotFoundError", "OSError", "EnvironmentError", "Exception", "BaseException"})
_HELP = (
    "npu-smi info shows the cards, in a format of its own; torch.npu.mem_get_info, torch.npu.utilization and "
    "torch.npu.get_device_name answer most questions without it"
)


@fixer.on(ast.Constant)
def named_in_a_string(work: Work, node: ast.Constant) -> Finds:
    """Report commands of NVIDIA that are run, and providers that are asked for."""
    if node.value == _PROVIDER:
        yield from _provider(work, node)
    elif "nvidia-smi" in str(node.value):
        yield from _command(work, node)


def _provider(work: Work, node: ast.Constant) -> Finds:
    if not isinstance(parent(node), ast.Expr) and work.take(node):
        yield work.note(
            node,
            "NPU246",
            f"{_PROVIDER} needs a card of NVIDIA; ONNX Runtime has CANNExecutionProvider for NPUs",
            api=_PROVIDER,
            help="install the package onnxruntime-cann, name CANNExecutionProvider, and look at the options: device_id "
            "and arena_extend_strategy are there, gpu_mem_limit is npu_mem_limit, those of cuDNN are gone",
            effort=Effort.LOW,
        )


def _command(work: Work, node: ast.Constant) -> Finds:
    above = parent(node)
    outer: ast.expr = above if isinstance(above, ast.JoinedStr) else node
    if not _COMMAND.search(whole_value(outer)) or id(outer) in work.taken or isinstance(parent(outer), ast.Expr):
        return
    kinds = {place.kind for place in places(work.slots, outer)}
    if kinds == {"prose"} or kinds & {"key", "row", "named"} or not work.take(outer):
        return
    message, blocks = "nvidia-smi is a program of NVIDIA", ""
    if any(goes_on_without(above, _MISSING) for above in _tries(outer)):
        message, blocks = f"{message}; the program goes on where it is missing", "tidy"
    yield work.note(outer, "NPU245", message, api="nvidia-smi", help=_HELP, effort=Effort.MEDIUM, blocks=blocks)


def _tries(node: ast.AST) -> Iterator[ast.Try]:
    """Each `try` in whose body a node stands, up to its function."""
    inside = takewhile(lambda each: not isinstance(each, FUNCTIONS), chain(node))
    for below, above in pairwise([node, *inside]):
        if isinstance(above, ast.Try) and below in above.body:
            yield above
