"""Tools and folders of NVIDIA in a shell script: nvidia-smi, nvcc, modules of a cluster, /usr/local/cuda in a path.

npu-smi: the npu-smi command reference of Ascend (`npu-smi info`: all devices; `npu-smi info -l`: a list of them). Where
set_env.sh lies, and what it sets: the installation guide of CANN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Extent, Finds, Kept, Note
from transplt.files.shell.script import Script
from transplt.files.shell.words import words_of
from transplt.flow.command_words import Word, base, unwrapped

SMI, TOOLKIT = "NPU815", "NPU816"
SET_ENV = "source /usr/local/Ascend/ascend-toolkit/set_env.sh"
_TOOLKIT_PATH = re.compile(r"/cuda\b|/cuda-\d|\$\{?CUDA_(?:HOME|PATH|ROOT|DIR|TOOLKIT\w*)\b|/cudnn\b|/nccl\b", re.I)
#: Variables that hold where programs and libraries lie.
_SEARCHED = frozenset(
    "PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH CMAKE_PREFIX_PATH LD_PRELOAD "
    "MANPATH PKG_CONFIG_PATH".split()
)
#: Nodes in which the output or the result of a command is used.
_READ = ("command_substitution", "process_substitution", "pipeline", "negated_command")
#: Calls that show something to people, by their arguments.
_INFORMS = {(): "npu-smi info", ("-L",): "npu-smi info -l", ("--list-gpus",): "npu-smi info -l"}
_LOOKS_FOR = frozenset({"command", "which", "type", "hash", "whereis"})


def tool_changes(script: Script, elsewhere: frozenset[int]) -> Iterator[tuple[Node | None, Edit | Kept | Note]]:
    """What becomes of NVIDIA's tools; with the node of which nobody else needs to speak, where there is one."""
    for node in script.walk("command", "variable_assignment", but=elsewhere):
        if node.type == "variable_assignment":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is None or value is None or script.text(name) not in _SEARCHED:
                continue
            if _TOOLKIT_PATH.search(script.text(value)):
                yield node, _folders(node, script.text(name))
            continue
        words = words_of(script, node)
        for found in _tool(script, node, words, unwrapped(words)):
            yield None, found


def _tool(script: Script, node: Node, words: Sequence[Word], run: Sequence[Word]) -> Finds:
    called = base(run[0]) if run else ""
    if words and base(words[0]) in _LOOKS_FOR and (asked := _asked(words)) is not None:
        new = {"nvidia-smi": "npu-smi", "nvcc": "atc"}[asked.value or ""]
        help_ = f"look for {new}, and see what is done where it is found"
        message = f"the script asks whether {asked.value} is there"
        yield Note(asked.extent, TOOLKIT, Level.MANUAL, message, asked.value or "", help_, Effort.LOW)
    elif called == "nvidia-smi":
        yield _smi(script, node, words, run)
    elif called == "nvcc" and all((word.value or "").lstrip("-") in ("version", "V") for word in run[1:]):
        extent = (run[0].extent[0], run[-1].extent[1])
        help_ = "the version of CANN stands in $ASCEND_HOME_PATH/version.cfg; npu-smi info shows that of the driver"
        yield _note(extent, "nvcc", "nvcc is CUDA's compiler", help_)
    elif called in ("module", "ml"):
        for word in run[1:]:
            if re.search(r"cuda|cudnn|nccl|nvhpc|nvidia", word.source, re.I):
                help_ = f"load the module of CANN that your site has, or {SET_ENV}"
                yield _note(word.extent, word.source, f"the module {word.source} of the cluster is CUDA's", help_)
    elif called in ("source", "."):
        for word in run[1:]:
            if _TOOLKIT_PATH.search(word.source):
                yield _note(word.extent, word.source, "a script of the CUDA toolkit is read", SET_ENV)


def _asked(words: Sequence[Word]) -> Word | None:
    return next((word for word in words[1:] if word.value in ("nvidia-smi", "nvcc")), None)


def _smi(script: Script, node: Node, words: Sequence[Word], run: Sequence[Word]) -> Edit | Note:
    """`nvidia-smi` for people becomes npu-smi; where a program reads its output or its result, a person decides."""
    arguments = tuple(word.value or "" for word in run[1:])
    extent = (run[0].extent[0], run[-1].extent[1])
    watched = base(words[0]) == "watch"
    new = _INFORMS.get(arguments, "")
    quoted = run[0].source[:1] in "\"'"
    if new and (not quoted or watched) and run[0].value == "nvidia-smi" and script.sound(node) and not _is_read(node):
        if quoted:
            extent = (extent[0] + 1, extent[1] - 1)
        return Edit(extent, SMI, f"{script.document.source.slice(*extent)} -> {new}", new, api="nvidia-smi")
    help_ = "npu-smi info is its counterpart on NPU, and prints a table of its own"
    if any(each in ("-L", "--list-gpus") or each.startswith("--query") for each in arguments):
        help_ += "; ls /dev/davinci[0-9]* lists the NPUs, npu-smi info -t usages -i 0 what one of them does"
    if "topo" in arguments:
        help_ = "npu-smi info -t topo"
    read = _is_read(node)
    message = "a program reads what nvidia-smi says" if read else "nvidia-smi is called with options of its own"
    return Note(extent, TOOLKIT, Level.MANUAL, message, "nvidia-smi", help_, Effort.LOW)


def _is_read(node: Node) -> bool:
    """True for a command whose output goes to a program, or whose result decides something."""
    below, above = node, node.parent
    while above is not None:
        if above.type in _READ or below.type in _READ:
            return True
        if above.type in ("if_statement", "elif_clause", "while_statement") and (
            above.child_by_field_name("condition") == below or _is_condition(above, below)
        ):
            return True
        below, above = above, above.parent
    return False


def _is_condition(above: Node, below: Node) -> bool:
    """True for what stands before `then` or `do`."""
    starts = next((child.start_byte for child in above.children if child.type in ("then", "do", "do_group")), None)
    return starts is not None and below.end_byte <= starts


def _folders(node: Node, name: str) -> Note:
    help_ = f"{SET_ENV} puts the folders of CANN into PATH and LD_LIBRARY_PATH; leave those of CUDA out"
    return _note((node.start_byte, node.end_byte), name, f"{name} gets folders of the CUDA toolkit", help_)


def _note(extent: Extent, api: str, message: str, help_: str) -> Note:
    return Note(extent, TOOLKIT, Level.MANUAL, message, api, help_, Effort.LOW)
