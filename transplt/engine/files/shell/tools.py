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
from transplt.engine.files.shell.outcomes import FALLS_BACK, GOES_ON, UNREACHED, answer, guarded, is_test, outcome
from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_words import Word, base, unwrapped

SMI, TOOLKIT = "NPU815", "NPU816"
NOT_THERE = "the script continues without it"
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
                help_ = f"{SET_ENV} adds the folders of CANN to PATH and LD_LIBRARY_PATH; remove those of CUDA"
                message = f"{script.text(name)} gets CUDA toolkit folders"
                yield node, _note((node.start_byte, node.end_byte), script.text(name), message, help_)
            continue
        words = words_of(script, node)
        for found in _tool(script, node, words, unwrapped(words)):
            yield None, found


def _tool(script: Script, node: Node, words: Sequence[Word], run: Sequence[Word]) -> Finds:
    first, called = base(words[0]) if words else "", base(run[0]) if run else ""
    sought = [word for word in words[1:] if word.value in ("nvidia-smi", "nvcc")] if first in _LOOKS_FOR else []
    if sought:
        yield _question(script, node, sought[0])
    elif first == "whereis" and not _is_read(script, node):
        yield from (Kept(word.extent, "text") for word in words[1:])
    elif called == "nvidia-smi":
        yield _smi(script, node, words, run)
    elif called == "nvcc" and all((word.value or "").lstrip("-") in ("version", "V") for word in run[1:]):
        yield _nvcc(script, node, run)
    elif called in ("module", "ml"):
        for word in run[1:]:
            if re.search(r"cuda|cudnn|nccl|nvhpc|nvidia", word.source, re.I):
                help_ = f"load your site's CANN module, or {SET_ENV}"
                yield _note(word.extent, word.source, f"the cluster's module {word.source} is for CUDA", help_)
    elif called in ("source", "."):
        for word in run[1:]:
            if _TOOLKIT_PATH.search(word.source):
                yield _note(word.extent, word.source, "a script of the CUDA toolkit is sourced", SET_ENV)


def _nvcc(script: Script, node: Node, run: Sequence[Word]) -> Note:
    """`nvcc --version`."""
    extent = (run[0].extent[0], run[-1].extent[1])
    help_ = "$ASCEND_HOME_PATH/version.cfg holds the version of CANN; npu-smi info shows the version of the driver"
    comes = outcome(script, node, "nvcc")
    if comes == UNREACHED or (comes == GOES_ON and not _is_read(script, node)):
        return Note(extent, TOOLKIT, Level.INFO, f"an NPU host has no nvcc; {NOT_THERE}", "nvcc", help_)
    return _note(extent, "nvcc", "nvcc is CUDA's compiler", help_)


def _question(script: Script, node: Node, sought: Word) -> Edit | Note:
    """`command -v nvidia-smi`: the question is that of npu-smi where all that depends on it becomes npu-smi too."""
    tool = sought.value or ""
    new = {"nvidia-smi": "npu-smi", "nvcc": "atc"}[tool]
    depends = [words_of(script, each) if each.type == "command" else [] for each in guarded(script, node)]
    shown = [words for words in depends if words and _becomes(unwrapped(words))]
    shows = [words for words in depends if words and base(words[0]) in ("echo", "printf")]
    if tool == "nvidia-smi" and shown and len(shown) + len(shows) == len(depends) and script.sound(node):
        return Edit(sought.extent, SMI, f"{tool} -> {new}: only its output is shown", new, api=tool)
    message = f"the script tests whether {tool} exists"
    if goes_on := answer(script, node) == GOES_ON:
        message += f"; {NOT_THERE}"
    help_ = f"test for {new}, and check what the script does if it exists"
    blocks = "later" if goes_on else ""
    return Note(sought.extent, TOOLKIT, Level.MANUAL, message, tool, help_, Effort.LOW, blocks=blocks)


def _becomes(run: Sequence[Word]) -> str:
    """The call of npu-smi that shows people what a call of nvidia-smi does; empty where there is none."""
    arguments = tuple(word.value or "" for word in run[1:])
    return _INFORMS.get(arguments, "") if run and run[0].value == "nvidia-smi" else ""


def _smi(script: Script, node: Node, words: Sequence[Word], run: Sequence[Word]) -> Edit | Note:
    """`nvidia-smi` for people becomes npu-smi; where a program reads its output or its result, a person decides."""
    arguments = tuple(word.value or "" for word in run[1:])
    extent = (run[0].extent[0], run[-1].extent[1])
    watched = base(words[0]) == "watch"
    new = _becomes(run)
    quoted = run[0].source[:1] in "\"'"
    if new and (not quoted or watched) and script.sound(node) and not _is_read(script, node):
        if quoted:
            extent = (extent[0] + 1, extent[1] - 1)
        return Edit(extent, SMI, f"{script.document.source.slice(*extent)} -> {new}", new, api="nvidia-smi")
    help_ = "npu-smi info is its counterpart on NPU, and prints a different table"
    if any(each in ("-L", "--list-gpus") or each.startswith("--query") for each in arguments):
        help_ += "; ls /dev/davinci[0-9]* lists the NPUs, npu-smi info -t usages -i 0 shows the load of one"
    if "topo" in arguments:
        help_ = "npu-smi info -t topo"
    read, comes = _is_read(script, node), outcome(script, node, "nvidia-smi")
    if comes == UNREACHED:
        message = "nvidia-smi is only called where it exists"
        return Note(extent, TOOLKIT, Level.INFO, message, "nvidia-smi", help_)
    if comes == GOES_ON and not read:
        message = f"an NPU host has no nvidia-smi; {NOT_THERE}"
        return Note(extent, TOOLKIT, Level.INFO, message, "nvidia-smi", help_)
    message = "a program reads the output of nvidia-smi" if read else "nvidia-smi is called with its own options"
    blocks = ""
    if comes in (GOES_ON, FALLS_BACK):
        message, blocks = f"{message}; {NOT_THERE}", "later"
    return Note(extent, TOOLKIT, Level.MANUAL, message, "nvidia-smi", help_, Effort.LOW, blocks=blocks)


def _is_read(script: Script, node: Node) -> bool:
    """True for a command whose output goes to a program, or whose result decides something."""
    below, above = node, script.above(node)
    while above is not None:
        if above.type in _READ or below.type in _READ:
            return True
        if above.type in ("if_statement", "elif_clause", "while_statement") and (
            above.child_by_field_name("condition") == below or is_test(above, below)
        ):
            return True
        below = script.whole_list(above)
        above = script.above(below)
    return False


def _note(extent: Extent, api: str, message: str, help_: str) -> Note:
    return Note(extent, TOOLKIT, Level.MANUAL, message, api, help_, Effort.LOW)
