"""Programs and providers of NVIDIA named in strings: nvidia-smi, nvcc, the execution providers of ONNX Runtime."""

from __future__ import annotations

import ast
import re

from transplt.codemods.cuda_text import is_docstring
from transplt.flow import whole_value
from transplt.destinations import places
from transplt.finding import Effort
from transplt.scan import parent
from transplt.work import Work

_COMMAND = re.compile(r"(?:^|[\s/\\;|&`(])(nvidia-smi|nvcc)(?:\.exe)?(?=$|[\s;|&`)])")
_PROVIDER = "CUDAExecutionProvider"
_HELP = {
    "nvidia-smi": "npu-smi info shows the cards, in a format of its own; torch.npu.mem_get_info, torch.npu.utilization "
    "and torch.npu.get_device_name answer most questions without it",
    "nvcc": "there is no CUDA compiler: CANN has its own (bisheng), and torch_npu builds operators with NpuExtension",
}


def plan(work: Work) -> None:
    """Report commands of NVIDIA that are run, and providers that are asked for."""
    for node in work.scan.strings:
        value = node.value
        assert isinstance(value, str)
        if value == _PROVIDER:
            _provider(work, node)
        elif "nvidia-smi" in value or "nvcc" in value:
            _command(work, node)


def _provider(work: Work, node: ast.Constant) -> None:
    if not isinstance(parent(node), ast.Expr) and work.take(node):
        work.note(
            node,
            "NPU246",
            f"{_PROVIDER} needs a card of NVIDIA; ONNX Runtime has CANNExecutionProvider for NPUs",
            api=_PROVIDER,
            help="install the package onnxruntime-cann, name CANNExecutionProvider, and look at the options: device_id "
            "and arena_extend_strategy are there, gpu_mem_limit is npu_mem_limit, those of cuDNN are gone",
            effort=Effort.LOW,
        )


def _command(work: Work, node: ast.Constant) -> None:
    above = parent(node)
    outer: ast.expr = above if isinstance(above, ast.JoinedStr) else node
    matched = _COMMAND.search(whole_value(outer))
    if matched is None or id(outer) in work.taken or is_docstring(outer) or isinstance(parent(outer), ast.Expr):
        return
    if {place.kind for place in places(work.flow, outer)} == {"prose"} or not work.take(outer):
        return
    tool = matched.group(1)
    work.note(
        outer,
        "NPU245",
        f"{tool} is a program of NVIDIA",
        api=tool,
        help=_HELP[tool],
        effort=Effort.MEDIUM,
    )
