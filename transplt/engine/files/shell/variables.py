"""Variables of the environment in a shell script: set, exported, given to one command, read, removed.

The decision is that of Python code (fixers/codemods/environment.py): a name is changed where the new one does with
the same value what the old one did. What a script sets for itself and reads again changes together or stays together;
what one command is given (`X=0 python ...`, `env X=0`) is decided by itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Edit, Extent, Finds, Kept, Note
from transplt.engine.files.shell.launches import takes_the_module
from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_words import WRAPPERS, Word, behind_options
from transplt.rules.environment import (
    Variable,
    counterpart,
    objection,
    refused,
    variables,
    without_effect,
)

RENAMED, OTHER_VALUE, NO_EFFECT = "NPU810", "NPU811", "NPU812"
#: What the module of the accelerator takes over (transplt/helper/accelerator.py).
SHOWN = "CUDA_VISIBLE_DEVICES"
_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_GIVES = re.compile(r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=|$)")
#: Options of launchers and containers behind which the name of a variable stands, with its value or alone.
_HANDS_ON = frozenset({"-e", "--env", "-x", "-genv", "-env"})
_HANDING = re.compile(r"(?:.*/)?(?:docker|podman|nerdctl|singularity|apptainer|mpirun|mpiexec|orterun|prun|horovodrun)")
#: Names that a build or a library of CUDA reads, under which no project keeps something of its own.
_OF_CUDA = re.compile(r"(?:CUDA|CUDNN|NVIDIA|NVCC|CUPTI|NVTX|TORCH_|PYTORCH_|CMAKE_)|FORCE_CUDA|\w*CUDA_?ARCH\w*")
#: What finds devices by NVIDIA's driver.
_ASKS_DRIVER = re.compile(rb"nvidia-smi|gpustat|nvidia_smi|nvml|\buuid\b|GPU-|MIG-", re.I)
#: The variable whose value is a list of devices.
_LIST = "CUDA_VISIBLE_DEVICES"
_DEFAULTS = frozenset({":-", "-", ":=", "="})
_READS = frozenset({"simple_expansion", "expansion"})
#: What a reason is handed to: a value, the inside of a node, and a variable where it is the whole value or a part.
_VALUE, _INSIDE, _WHOLE, _PART = "value", "inside", "whole", "part"
_Key = tuple[str, Hashable]


@dataclass(frozen=True, slots=True)
class Use:
    """A place that names a variable. `role`: set, given (to one command), read, removed. `value`: what it gets there.

    `doubt`: why a value that the shell works out (`computed`) is none for an NPU, where that can be seen. `whole`: the
    assignment.
    """

    name: str
    extent: Extent
    role: str
    sound: bool
    value: str | None = None
    computed: bool = False
    doubt: str = ""
    whole: Extent = (0, 0)


def variable_changes(script: Script, elsewhere: frozenset[int]) -> Finds:
    """What becomes of the variables of CUDA; `elsewhere`: nodes (their ids) of which somebody else speaks."""
    by_name = grouped((use.name, use) for use in _uses(script, elsewhere))
    own = {name for name, uses in by_name.items() if any(use.role == "set" for use in uses)}
    portable = script.for_both
    for name, uses in by_name.items():
        variable = variables().get(name)
        if variable is not None and variable.npu and variable.npu != name:
            yield from _for_both(script, variable, uses) if portable else _known(script, variable, uses)
        elif name == "DS_ACCELERATOR" and not portable:
            yield from _accelerator(script, uses)
        elif without_effect(name):
            yield from _idle(name, variable, uses)
        elif variable is None and mentions_cuda(name.lower().encode()) and (name in own or not _OF_CUDA.match(name)):
            for use in uses:
                yield Kept(use.extent, "own-variable")


def _uses(script: Script, elsewhere: frozenset[int]) -> Iterator[Use]:
    """Every place that names a variable as the shell does, then those that hand one on as a word."""
    doubts = Doubts(script)
    for node in script.walk("variable_name", "command", "unary_expression", but=elsewhere):
        if node.type == "command":
            yield from _handed_on(script, node)
        elif node.type == "unary_expression":
            tested = node.named_children[-1] if node.named_children else node
            if script.text(node).startswith("-v") and _NAME.fullmatch(script.text(tested)):
                extent = (tested.start_byte, tested.end_byte)
                yield Use(script.text(tested), extent, "read", script.sound(node))
        elif (name := script.text(node)).isascii():
            yield _use(script, node, name, doubts)


def _use(script: Script, node: Node, name: str, doubts: Doubts) -> Use:
    above = script.above(node)
    extent, sound = (node.start_byte, node.end_byte), script.sound(node)
    if above is None:
        return Use(name, extent, "read", sound)
    if above.type == "variable_assignment" and above.child_by_field_name("name") == node:
        value = above.child_by_field_name("value")
        text = script.plain(value)
        outer = script.above(above)
        given = outer is not None and outer.type == "command"
        doubt = "" if text is not None or value is None or name not in variables() else doubts.why(name, value)
        if any(child.type == "+=" for child in above.children):
            doubt = "something is appended to its value"
        whole = (above.start_byte, above.end_byte)
        return Use(name, extent, "given" if given else "set", sound, text, text is None, doubt, whole)
    if above.type == "unset_command":
        return Use(name, extent, "removed", sound)
    if above.type == "expansion" and (default := default_of(above)) is not None:
        text = script.plain(default)
        doubt = "" if text is not None or name not in variables() else doubts.why(name, default)
        return Use(name, extent, "read", sound, text, text is None, doubt)
    return Use(name, extent, "read", sound)


def _handed_on(script: Script, command: Node) -> Iterator[Use]:
    """`env X=0 python ...`, `docker run -e X=0`, `mpirun -x X`, `printenv X`."""
    words = words_of(script, command)
    if not words:
        return
    sound = script.sound(command)
    for at, word in enumerate(words):
        name = (word.value or "").rpartition("/")[2]
        before = words[at - 1].value if at else ""
        if name in ("env", "sudo"):
            for assigned in behind_options(words[at + 1 :], WRAPPERS[name]):
                if not re.match(r"[A-Za-z_]\w*=", assigned.source):
                    break
                yield from _use_of(script, assigned, sound)
        elif before in _HANDS_ON and any(_HANDING.fullmatch(each.value or "") for each in words[: at - 1]):
            yield from _use_of(script, word, sound)
        elif before in ("printenv", "-v") and _NAME.fullmatch(word.source):
            yield Use(word.source, word.extent, "read", sound)


def _use_of(script: Script, word: Word, sound: bool) -> Iterator[Use]:
    quoted = word.source[:1] in "\"'"
    source = word.source[1:-1] if quoted else word.source
    match = _GIVES.match(source)
    if match is None:
        return
    start = word.extent[0] + quoted
    extent = (start, start + len(match[1]))
    if "=" not in match.group():
        yield Use(match[1], extent, "read", sound)
        return
    value = None if word.value is None else word.value.partition("=")[2]
    doubt = asked_of_driver(source) if value is None else ""
    yield Use(match[1], extent, "given", sound, value, value is None, doubt)


# --- what becomes of one variable ------------------------------------------------------------------------------------


def _known(script: Script, variable: Variable, uses: Sequence[Use]) -> Finds:
    """A variable with a counterpart of another name."""
    together = [use for use in uses if use.role != "given"]
    reasons = {use.extent: _refusal(script, variable, use) for use in uses}
    blocked = any(reasons[use.extent] for use in together)
    reported = False
    for use in uses:
        reason = reasons[use.extent]
        if use.role == "given" or not blocked:
            if reason:
                yield _other_value(variable, use, reason)
            else:
                group = "" if use.role == "given" else f"variable {variable.name}"
                message = f"environment variable {variable.name} -> {variable.npu}"
                yield Edit(
                    use.extent, RENAMED, message, variable.npu, api=variable.name, help=variable.note, group=group
                )
            reported = reported or bool(reason)
        elif reason and (use.role == "set" or not reported):
            yield _other_value(variable, use, reason)
            reported = True
        elif use.role == "set":
            yield _other_value(variable, use, "this script also sets it to a value that does not carry over")
        else:
            yield Kept(use.extent, "reported-beside")


def _for_both(script: Script, variable: Variable, uses: Sequence[Use]) -> Finds:
    """The cards of a program that imports the module of the accelerator: that sets the variable of NPUs, as some
    scripts do themselves. All others as for NPUs alone, which is what a script for NPUs has.
    """
    if script.document.host is not None:
        return
    done = re.search(rb"\b%s=" % variable.npu.encode(), script.document.utf8) is not None
    refused = variable.name != SHOWN or any(_refusal(script, variable, use) for use in uses)
    if done or (not refused and takes_the_module(script)):
        for use in uses:
            yield Kept(use.extent, "both")
    else:
        yield from _known(script, variable, uses)


def _refusal(script: Script, variable: Variable, use: Use) -> str:
    """Why the name cannot change in one place; empty where it can."""
    version = script.document.settings.torch_version
    if not use.sound:
        return "the shell code around it cannot be parsed"
    if use.doubt:
        return use.doubt
    if use.role == "removed" or (use.role == "read" and use.value is None and not use.computed):
        return objection(variable, version)
    return objection(variable, version, use.value or "", use.computed)


def _other_value(variable: Variable, use: Use, reason: str) -> Note:
    text = counterpart(variable.name, use.value) if use.value and not use.computed else ""
    paste = f"write {text}" if text else ""
    parts = [paste, reason, variable.note if variable.note != reason else ""]
    return Note(
        use.whole if any(use.whole) else use.extent,
        OTHER_VALUE,
        Level.MANUAL,
        f"{variable.npu}, the counterpart of {variable.name}, does not accept this value unchanged",
        variable.name,
        "; ".join(filter(None, parts)),
        Effort.LOW,
    )


def _idle(name: str, variable: Variable | None, uses: Sequence[Use]) -> Finds:
    note = "" if variable is None or variable.note == "no counterpart" else variable.note
    for use in uses:
        if use.role in ("set", "given"):
            yield Note(use.extent, NO_EFFECT, Level.INFO, f"{name} has no effect on NPU", name, note)
        else:
            yield Kept(use.extent, "idle-variable")


def _accelerator(script: Script, uses: Sequence[Use]) -> Finds:
    """`DS_ACCELERATOR=cuda`, by which DeepSpeed chooses its device."""
    for use in uses:
        if use.sound and use.value == "cuda" and use.role in ("set", "given"):
            start = script.document.utf8.find(b"cuda", use.extent[1])
            yield Edit((start, start + 4), RENAMED, "DeepSpeed runs on npu", "npu", api=use.name)


class Doubts:
    """Why values that a script works out are none for an NPU: what NVIDIA's driver gives for them.

    They are worked out when the first one is asked for. What is known of one value goes to all that read it, once for
    the whole script: those in which a thousand variables hand on one value are read as fast as others.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._values: list[Node] = []
        self._questions: list[Extent] = []
        self._goes_to: dict[_Key, list[_Key]] = {}
        self._reasons: dict[bool, dict[_Key, str]] = {}

    def why(self, name: str, value: Node) -> str:
        """Why the value, which the variable `name` gets, is none for an NPU; empty where nothing is seen."""
        is_list = name == _LIST
        if is_list not in self._reasons:
            self._reasons[is_list] = self._work_out(is_list)
        return self._reasons[is_list].get((_VALUE, value.id), "")

    def _work_out(self, is_list: bool) -> dict[_Key, str]:
        """The reasons of all values; `is_list`: a list of devices that is none is a reason too."""
        if not self._goes_to:
            text = self._script.document.utf8
            self._questions = [match.span() for match in _ASKS_DRIVER.finditer(text)]
            for node in self._script.walk():
                self._read(node)
        found: dict[_Key, str] = {}
        for value in self._values:
            if why := self._own(value, is_list):
                found[_VALUE, value.id] = why
        waiting = deque(found)
        while waiting:
            key = waiting.popleft()
            for other in self._goes_to.get(key, ()):
                if other not in found:
                    found[other] = found[key]
                    waiting.append(other)
        return found

    def _own(self, value: Node, is_list: bool) -> str:
        """The reason in the text of a value by itself."""
        at = bisect_left(self._questions, (value.start_byte, 0))
        if at < len(self._questions) and self._questions[at][1] <= value.end_byte:
            start, end = self._questions[at]
            return _from_driver(self._script.document.utf8[start:end].decode())
        text = self._script.plain(value) if is_list else None
        return "" if text is None else refused(_LIST, text)

    def _read(self, node: Node) -> None:
        for child in node.named_children:
            self._leads((_INSIDE, child.id), (_INSIDE, node.id))
        if node.type in _READS:
            for name in self._name(node):
                self._leads((_PART, name), (_INSIDE, node.id))
        if node.type == "variable_assignment":
            target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if target is not None and value is not None:
                self._value(value)
                name = self._script.text(target)
                self._leads((_VALUE, value.id), (_WHOLE, name))
                # Of a part of the value, or of a changed one, the list is not the value.
                if self._script.plain(value) is None:
                    self._leads((_VALUE, value.id), (_PART, name))
        elif node.type == "expansion" and (value := default_of(node)) is not None:
            self._value(value)

    def _value(self, value: Node) -> None:
        self._values.append(value)
        self._leads((_INSIDE, value.id), (_VALUE, value.id))
        for read in (value, *value.named_children):
            if read.type in _READS:
                for name in self._name(read):
                    self._leads((_WHOLE, name), (_VALUE, value.id))

    def _name(self, read: Node) -> Iterator[str]:
        """The variable that an expansion reads."""
        inner = next((child for child in read.named_children if child.type == "variable_name"), None)
        if inner is not None:
            yield self._script.text(inner)

    def _leads(self, one: _Key, other: _Key) -> None:
        self._goes_to.setdefault(one, []).append(other)


def asked_of_driver(text: str) -> str:
    """Why a text is none for an NPU, by itself; empty where nothing is seen."""
    match = _ASKS_DRIVER.search(text.encode())
    return "" if match is None else _from_driver(match[0].decode())


def _from_driver(word: str) -> str:
    """The reason for a value that NVIDIA's driver gives; `word` is what asks it."""
    return f"its value comes from NVIDIA's driver ({word})"


def default_of(expansion: Node) -> Node | None:
    """The word that stands in for a variable: `0` in `${X:-0}`."""
    if not any(child.type in _DEFAULTS for child in expansion.children):
        return None
    children = expansion.named_children
    return children[-1] if len(children) > 1 else None
