"""Text for people, with `--texts`: what is printed, logged or raised, and the help of flags, speaks of the NPU.

Without that option no text for people is edited: tests, parsers of logs and documents of the project match it. With
it a text follows the code: not where the code that it speaks of stays with CUDA.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Extent, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import in_literals
from transplt.edits.work import Work
from transplt.flow.destinations import places
from transplt.flow.device_strings import whole_value
from transplt.flow.marks import BACKEND, DEVICE
from transplt.syntax.nodes import arguments_of, of_kind
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(__name__, code="NPU207", rank=620)

WORD = re.compile(
    r"(?<![\w./$-])(?:CUDA|Cuda|cuda|NCCL|nccl)(?![\w/]|-\w|\.\w)"
    r"(?! (?:v?\d|versions?|toolkit|kernels?|graphs?|drivers?|runtime|extensions?|compute|capabilit|architecture"
    r"|sources?|compiler|library|libraries|code|operators?|ops?\b))",
    re.I,
)
#: Text on NVIDIA's own things: nothing in it is the NPU's.
OF_NVIDIA = re.compile(r"nvidia|nvcc|cudnn|cublas|\bapex\b|\.cuh?\b|tensor ?rt", re.I)
_VALUES = ("cuda", "nccl")
#: Flags that are named for CUDA and turn the device on or off; `--cuda-graph`, `--cuda_ray` switch something else.
_SWITCH = re.compile(
    r"-*(?:(?:no|use|not|on|with|without|enable|disable|is|gpu|force)[-_]?)*(?:cuda|nccl)"
    r"(?:[-_]?(?:devices?|ids?|gpus?|num|backend))*"
)
_NEW = {"CUDA": "NPU", "Cuda": "NPU", "cuda": "npu", "NCCL": "HCCL", "nccl": "hccl"}
#: Arguments that take text which is looked for, or stands for a value.
_NO_TEXT = ("match", "metavar")
#: Calls that write for programs as well as for people.
_TO_FILES = ("write", "log")


@fixer.on(ast.Module)
def texts_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Rewrite the words in text for people, when that is asked for."""
    if not work.settings.texts:
        return
    for outer in work.strings_left():
        value = whole_value(outer)
        if not WORD.search(value) or OF_NVIDIA.search(value):
            continue
        if (_is_help(work, outer) or (" " in value.strip() and _is_message(work, outer))) and work.take(outer):
            yield Edit(outer, "NPU207", "a message mentions the NPU", in_literals(swap_words))


def _is_help(work: Work, node: ast.expr) -> bool:
    """True for the help of a flag; not where the flag's values stay."""
    found = places(work.slots, node)
    flags = [place.other for place in found if place.kind == "help" and isinstance(place.other, ast.Call)]
    return len(flags) == len(found) > 0 and not any(_names_a_choice(work, flag) for flag in flags)


def _names_a_choice(work: Work, call: ast.Call) -> bool:
    """True when the flag's name or its own values hold cuda and mean no device: its text then speaks of those."""
    names = [str(arg.value).lower() for arg in of_kind(ast.Constant, call.args)]
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


def _is_message(work: Work, node: ast.expr) -> bool:
    """True for what is printed, logged or raised, and speaks of code that moves."""
    found = places(work.slots, node)
    if not found or any(place.kind != "prose" for place in found) or isinstance(parent(node), ast.Expr):
        return False
    current: ast.AST = node
    while not isinstance(current, ast.stmt):
        current = parent(current)
        match current:
            case ast.keyword(arg=name) if name in _NO_TEXT:
                return False
            case ast.Call(func=ast.Attribute(attr=method)) if method in _TO_FILES:
                return False
    around = [work.source.extent(current), *_conditions(work, current)]
    stays = [note.extent for note in work.notes if note.level is not Level.INFO]
    stays += [work.source.extent(edit.node) for edit in work.rewrites if edit.level is not Level.SAFE]
    moves = any(edit.level is Level.SAFE for edit in work.rewrites)
    return moves and not any(start <= inner[0] and inner[1] <= end for inner in stays for start, end in around)


def _conditions(work: Work, node: ast.AST) -> list[Extent]:
    """The conditions under which a statement runs, up to its function."""
    found = []
    while not isinstance(node, (ast.Module, *FUNCTIONS)):
        node = parent(node)
        if isinstance(node, (ast.If, ast.While)):
            found.append(work.source.extent(node.test))
    return found


def swap_words(text: str) -> str:
    """The text with CUDA's words replaced, names of flags, variables and paths left alone."""
    return WORD.sub(lambda match: _NEW.get(match.group(), match.group()), text)
