"""What a command line flag says about itself: `help="use CUDA"` speaks of the NPU once the flag's values do."""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.project.marks import BACKEND, DEVICE
from transplt.syntax.asks import arguments_of
from transplt.syntax.scan import parent
from transplt.trees.literals import in_literals
from transplt.values.reached import places

fixer = Fixer(__name__, code="NPU207", rank=540)

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


@fixer.on(ast.Constant)
def text_of_a_flag(work: Work, node: ast.Constant) -> Finds:
    """Rewrite the words in `help=` of a flag; names of flags stay, and so does text on a choice that stays."""
    if not _WORD.search(str(node.value)) or isinstance(parent(node), ast.JoinedStr):
        return
    for place in places(work.slots, node):
        flag = place.other
        if place.kind == "help" and isinstance(flag, ast.Call) and not _names_a_choice(work, flag) and work.take(node):
            yield work.keep(node, "help-names")
            yield Edit(node, "NPU207", "the help of a flag speaks of the NPU", in_literals(swap_words))


def _names_a_choice(work: Work, call: ast.Call) -> bool:
    """True when the flag's name or its own values say cuda and mean no device: its text then speaks of those."""
    names = [str(arg.value).lower() for arg in call.args if isinstance(arg, ast.Constant)]
    if any(value in name and not _SWITCH.fullmatch(name) for name in names for value in _VALUES):
        return True
    for value in arguments_of(call):
        for node in ast.walk(value):
            if not isinstance(node, ast.Constant) or str(node.value).lower() not in _VALUES:
                continue
            reached = [place.detail for place in places(work.slots, node) if place.kind == "slot"]
            if any(not work.slots.marks_of(slot) & {DEVICE, BACKEND} for slot in reached):
                return True
    return False


def swap_words(text: str) -> str:
    """The text with CUDA's words replaced, names of flags, variables and paths left alone."""
    return _WORD.sub(lambda match: _NEW[match.group()], text)
