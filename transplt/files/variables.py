"""Environment variables of CUDA, NCCL and NVIDIA that a recipe sets: renamed where the value carries over, else said."""

from __future__ import annotations

import re

from transplt.edits.edit import Edit, Extent, Finds, Note
from transplt.files.document import Document
from transplt.finding import Effort, Level
from transplt.rules.containers import paths_text, variable_text
from transplt.rules.environment import conditional, refused, variables

RENAMED, REPORTED, IDLE, DEVICES = "NPU851", "NPU852", "NPU853", "NPU854"
#: Variables by which NVIDIA's container runtime is asked for cards.
_ASKS_FOR_CARDS = frozenset({"NVIDIA_VISIBLE_DEVICES"})
#: Folders of the toolkit in the value of a variable of any name.
_CUDA_FOLDER = re.compile(r"/usr/local/(?:cuda|nvidia)|/cuda(?:-\d[\d.]*)?/(?:bin|lib|include)|/opt/nvidia/")
#: What stands for another value: $X, ${X}, $(X), ${{ x }}.
_EXPANSION = re.compile(r"\$")
_CARDS = "CUDA_VISIBLE_DEVICES"


def variable_set(document: Document, name: str, at: Extent, value: str | None, whole: Extent, read: bool) -> Finds:
    """What becomes of a variable that a recipe sets.

    `at` is the place of the name, `whole` that of name and value, `value` the text without quotes (None: it is not
    known). `read`: the file itself reads the variable under this name.
    """
    fact = variables().get(name)
    if fact is not None and fact.npu and fact.npu != name and name not in _ASKS_FOR_CARDS:
        yield from _with_counterpart(document, name, at, value, whole, read)
    elif name in _ASKS_FOR_CARDS:
        yield Note(
            whole, DEVICES, Level.MANUAL, f"{name} asks NVIDIA's container runtime for cards", name,
            variable_text(name), Effort.LOW,
        )  # fmt: skip
    elif fact is not None and not fact.npu:
        note = fact.note if fact.note != "no counterpart" else ""
        yield Note(whole, IDLE, Level.INFO, f"{name} has no effect on NPU", name, note)
    elif said := variable_text(name):
        yield Note(whole, REPORTED, Level.MANUAL, f"{name} is set for CUDA", name, said, Effort.LOW)
    elif value is not None and _CUDA_FOLDER.search(value):
        yield Note(
            whole, REPORTED, Level.MANUAL, f"{name} names folders of CUDA", name, paths_text(), Effort.LOW
        )


def _with_counterpart(
    document: Document, name: str, at: Extent, value: str | None, whole: Extent, read: bool
) -> Finds:
    fact = variables()[name]
    reason = _objection(name, value, document.target.version)
    if not reason and read:
        reason = "the file also reads it under its old name: both are to be changed together"
    if reason:
        help_ = variable_text(name) or f"write {fact.npu}: {reason}"
        message = f"{fact.npu}, the counterpart of {name}, does not take this value as it is"
        yield Note(whole, REPORTED, Level.MANUAL, message, name, help_, Effort.LOW)
    elif document.settings.style != "portable":
        message = f"environment variable {name} -> {fact.npu}"
        yield Edit(at, RENAMED, message, fact.npu, api=name, help=fact.note)


def _objection(name: str, value: str | None, version: str) -> str:
    """Why a variable cannot be renamed with this value; empty when it can. As `transplt.codemods.environment` has it."""
    fact = variables()[name]
    if not fact.known(version):
        return f"torch_npu for torch {version} does not read {fact.npu}"
    if not conditional(name):
        return "" if fact.renamed(version) else fact.note
    if value is None or _EXPANSION.search(value):
        # A computed list of devices is a list of devices; the options of an allocator have to be looked at.
        return "" if name == _CARDS else "the value is computed"
    return refused(name, value)
