"""Code that handles the NPU already: it stays as it is, and what is left for CUDA alone is said.

A file is *portable* when it chooses between CUDA and the NPU (transplt/project/npu_choices.py). A project is when a
tenth of its CUDA-bound files are. What they do on CUDA, on the CPU and on an NPU must not change, so nothing in them
is edited but what the user's own rules say. An edit that was planned is dropped where the code is CUDA's side of such
a choice, and becomes a finding everywhere else. A file that merely uses the NPU (`torch.npu.set_device(0)` next to a
forgotten `.cuda()`) makes no choice: it is edited.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Extent, Kept, Note
from transplt.edits.work import Work
from transplt.finding import Effort, Level
from transplt.project import npu_choices
from transplt.project.npu_choices import mentions_npu, npu_places
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.text.source import Source

REASON = "CUDA's side of code that handles the NPU too"
CODE = "NPU200"


def leave_npu_code(work: Work) -> None:
    """Take back what was planned in a portable file or project; say what is left for CUDA alone."""
    mentions = mentions_npu(work.source.utf8)
    if not mentions and not work.project.portable:
        return
    places = npu_places(work.source) if mentions else []
    choices = npu_choices.choices(work.source, work.scan, places) if places else []
    if not work.project.portable and not (places and npu_choices.chooses(work.scan, choices)):
        return
    where = "file" if places else "project"
    sides = [side for choice in choices for side in npu_choices.sides(work.source, choice)]
    planned = work.rewrites
    said = [work.source.extent(edit.node)[0] for edit in planned]
    work.edits = [edit for edit in planned if edit.user]
    for edit in planned:
        extent = work.source.extent(edit.node)
        if edit.user:
            continue
        if _inside(extent, sides):
            work.add(Kept(extent, REASON))
        elif edit.code == "NPU207":
            work.add(Kept(extent, "text for people"))
        elif _under_a_cuda_condition(work.source, edit.node, said):
            work.add(Kept(extent, "under a condition that asks for CUDA"))
        else:
            work.add(_left(edit, extent, where))
    work.withdraw_notes(lambda note: note.code != CODE and _inside(note.extent, sides))
    for side in sides:
        work.add(Kept(side, REASON))


def _left(edit: Edit, extent: Extent, where: str) -> Note:
    return Note(
        extent,
        CODE,
        Level.MANUAL,
        f"{edit.api or edit.message} is for CUDA alone, in a {where} that handles the NPU",
        edit.api,
        f"if the NPU needs it too, add its case beside it (for an NPU alone: {edit.message})",
        Effort.LOW,
    )


def _inside(extent: Extent, areas: list[Extent]) -> bool:
    return any(start <= extent[0] and extent[1] <= end for start, end in areas)


def _under_a_cuda_condition(source: Source, node: ast.AST, said: list[int]) -> bool:
    """True for code that runs only where a condition around it has asked for CUDA; the condition is reported itself."""
    while not isinstance(node, (ast.Module, *FUNCTIONS, ast.ClassDef)):
        above = parent(node)
        if isinstance(above, ast.If) and node in above.body:
            start, end = source.extent(above.test)
            if any(start <= at < end for at in said):
                return True
        node = above
    return False
