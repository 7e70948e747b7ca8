"""What a command line flag says about itself: `help="use CUDA"` speaks of the NPU once the flag's values do."""

from __future__ import annotations

import ast
import re

from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.syntax.scan import parent
from transplt.trees import swaps
from transplt.values.links import BACKEND, DEVICE
from transplt.values.reached import places

_WORD = re.compile(
    r"(?<![\w./$-])(?:CUDA|Cuda|cuda|NCCL|nccl)(?![\w/]|-\w|\.\w)(?! (?:[vV]ersion|[Tt]oolkit|[Kk]ernel))"
)
_VALUES = ("cuda", "nccl")
#: Flags that are named for CUDA and turn the device on or off; `--cuda-graph`, `--cuda_ray` switch something else.
_SWITCH = re.compile(
    r"-*(?:(?:no|use|not|on|with|without|enable|disable|is|gpu|force)[-_]?)*(?:cuda|nccl)"
    r"(?:[-_]?(?:devices?|ids?|gpus?|num|backend))*"
)
_NEW = {"CUDA": "NPU", "Cuda": "NPU", "cuda": "npu", "NCCL": "HCCL", "nccl": "hccl"}


def plan(work: Work) -> None:
    """Rewrite the words in `help=` of flags; names of flags stay, and so does text on a choice that stays."""
    for node in work.scan.strings:
        if isinstance(node.value, str) and _WORD.search(node.value) and not isinstance(parent(node), ast.JoinedStr):
            for place in places(work.flow, node):
                flag = place.other
                if place.kind == "help" and isinstance(flag, ast.Call) and not _names_a_choice(work, flag):
                    _rewrite(work, node)


def _names_a_choice(work: Work, call: ast.Call) -> bool:
    """True when the flag's name or its own values say cuda and mean no device: its text then speaks of those."""
    names = [str(arg.value).lower() for arg in call.args if isinstance(arg, ast.Constant)]
    if any(value in name and not _SWITCH.fullmatch(name) for name in names for value in _VALUES):
        return True
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        for node in ast.walk(value):
            if not isinstance(node, ast.Constant) or str(node.value).lower() not in _VALUES:
                continue
            slots = [place.detail for place in places(work.flow, node) if place.kind == "slot"]
            if any(not work.flow.marks_of(slot) & {DEVICE, BACKEND} for slot in slots):
                return True
    return False


def _rewrite(work: Work, node: ast.Constant) -> None:
    if not work.take(node):
        return
    work.keep(node, "names of flags, variables and packages in the text stay")
    work.changes.append(Change(node, "NPU207", "the help of a flag speaks of the NPU", swaps.in_literals(swap_words)))


def swap_words(text: str) -> str:
    """The text with CUDA's words replaced, names of flags, variables and paths left alone."""
    return _WORD.sub(lambda match: _NEW[match.group()], text)
