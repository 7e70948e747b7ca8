"""Environment variables of CUDA and NVIDIA that a recipe sets: renamed where the value carries over, else reported."""

from __future__ import annotations

import re

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.edits.edit import Edit, Extent, Finds, Found, Kept, Note, extent_of
from transplt.engine.files.document import Document
from transplt.rules.containers import paths_text, variable_text
from transplt.rules.environment import counterpart, objection, variables, without_effect

RENAMED, REPORTED, IDLE, DEVICES = "NPU851", "NPU852", "NPU853", "NPU854"
#: Variables by which NVIDIA's container runtime is asked for cards.
_ASKS_FOR_CARDS = frozenset({"NVIDIA_VISIBLE_DEVICES"})
#: Where the toolkit lies and which it is, and what is logged: nothing that runs on an NPU misses them.
_STOPS_NOTHING = re.compile(
    r"(?:CUDA|CUDNN)_(?:HOME|PATH|ROOT|TOOLKIT_ROOT_DIR|VERSION|CACHE_PATH)|NVIDIA_(?:DRIVER_CAPABILITIES|REQUIRE_CUDA)"
    r"|NCCL_(?!SOCKET_IFNAME)\w+"
)
#: Folders of the toolkit in the value of a variable of any name.
_CUDA_FOLDER = re.compile(r"/usr/local/(?:cuda|nvidia)|/cuda(?:-\d[\d.]*)?/(?:bin|lib|include)|/opt/nvidia/")
#: What stands for another value: $X, ${X}, $(X), ${{ x }}.
_EXPANSION = re.compile(r"\$")
_ALLOCATOR, _OF_ALL_DEVICES = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
_FOR_NPU = re.compile(r"npu|ascend", re.IGNORECASE)
#: Variables by which a project chooses among its tests: RUN_ONLY_CUDA_TESTS, SKIP_GPU_TEST.
_OF_TESTS = re.compile(r"(?:^|_)TESTS?(?:_|$)")
_COMMENT = re.compile(rb"(?:^|[ \t])#")


def variable_set(
    document: Document, name: str, at: Extent, value: str | None, whole: Extent, fixed: bool = False
) -> Finds:
    """What becomes of a variable that a recipe sets.

    `at` is the place of the name, `whole` that of name and value, `value` the text without quotes (None: it is not
    known). `fixed`: others give it under this name, as the argument of a build.
    """
    fact = variables().get(name)
    if fact is not None and fact.npu and fact.npu != name and name not in _ASKS_FOR_CARDS:
        yield from _with_counterpart(document, name, at, value, whole, fixed)
    elif name in _ASKS_FOR_CARDS:
        yield Note(
            whole, DEVICES, Level.MANUAL, f"{name} requests cards from NVIDIA's container runtime", name,
            variable_text(name), Effort.LOW, blocks="tidy" if "dockerfile" in document.name else "",
        )  # fmt: skip
    elif without_effect(name):
        note = "" if fact is None or fact.note == "no counterpart" else fact.note
        yield Note(whole, IDLE, Level.INFO, f"{name} has no effect on NPU", name, note)
    elif advice := variable_text(name):
        blocks = "tidy" if _STOPS_NOTHING.fullmatch(name) else ""
        message = f"{name} is set for CUDA"
        yield Note(whole, REPORTED, Level.MANUAL, message, name, advice, Effort.LOW, blocks=blocks)
    elif value is not None and _CUDA_FOLDER.search(value):
        yield Note(
            whole, REPORTED, Level.MANUAL, f"{name} contains CUDA folders", name, paths_text(), Effort.LOW,
            blocks="tidy",
        )
    elif _OF_TESTS.search(name):
        yield Kept(at, "own-variable")


def _with_counterpart(
    document: Document, name: str, at: Extent, value: str | None, whole: Extent, fixed: bool
) -> Finds:
    fact = variables()[name]
    computed = value is None or _EXPANSION.search(value) is not None
    reason = objection(fact, document.target.version, value or "", computed)
    both = name == _ALLOCATOR and document.target.version in variables()[_OF_ALL_DEVICES].versions
    if not reason and both and re.search(rb"\b%s\b" % _OF_ALL_DEVICES.encode(), document.utf8) is not None:
        reason = "torch_npu refuses both, and PYTORCH_ALLOC_CONF is set too: remove one"
    if not reason and fixed:
        reason = "the place that sets its value also names it"
    if reason:
        yield _other_value(name, whole, reason, "" if computed else value or "")
    elif document.project.portable and not _FOR_NPU.search(document.path):
        yield Kept(whole, "project-beside")  # of a project that chooses by itself no configuration changes
    elif document.settings.style != "portable":
        message = f"environment variable {name} -> {fact.npu}"
        yield Edit(at, RENAMED, message, fact.npu, api=name, help=fact.note)


def _other_value(name: str, whole: Extent, reason: str, value: str = "") -> Note:
    fact = variables()[name]
    text = counterpart(name, value)
    help_ = variable_text(name) or (f"write {text}; {fact.note}" if text else f"write {fact.npu}: {reason}")
    message = f"{fact.npu}, the counterpart of {name}, does not accept this value unchanged"
    blocks = "tidy" if _STOPS_NOTHING.fullmatch(name) else ""
    return Note(whole, REPORTED, Level.MANUAL, message, name, help_, Effort.LOW, blocks=blocks)


def together(document: Document, finds: Finds) -> Finds:
    """What was found, without new names for a variable that the file sets and that keeps its old name in a place of it.

    What one command is given is decided with the rest: such a place is rare, and either name alone is wrong.
    """
    found = list(finds)
    edits = grouped((each.api, each) for each in found if isinstance(each, Edit) and each.api in variables())
    held = {name for name, same in edits.items() if _stays(document, name, same, found)}
    for each in found:
        if not isinstance(each, Edit) or each.api not in held:
            yield each
        elif each.code == RENAMED:
            reason = "the file also names it elsewhere, and all places must change together"
            yield _other_value(each.api, extent_of(each), reason)


def _stays(document: Document, name: str, edits: list[Edit], found: list[Found]) -> bool:
    """True when the old name of a variable that the file sets for all that it runs stays in a place."""
    reported = any(isinstance(each, Note) and each.code == REPORTED and each.api == name for each in found)
    if not reported and all(edit.code != RENAMED for edit in edits):
        return False
    extents = {edit.where for edit in edits}
    for match in re.finditer(rb"\b%s\b" % name.encode(), document.utf8):
        begin = document.utf8.rfind(b"\n", 0, match.start()) + 1
        comment = _COMMENT.search(document.utf8, begin, match.start())
        if comment is None and match.span() not in extents:
            return True
    return reported
