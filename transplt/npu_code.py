"""Code that handles the NPU already stays as it is."""

from __future__ import annotations

import ast
import re

from transplt.rewrite import Change
from transplt.scan import FUNCTIONS
from transplt.tokens import literal_areas
from transplt.work import Work

_NPU = re.compile(rb"(?<![A-Za-z0-9])npu(?![A-Za-z0-9])|torch_npu|_npu_|(?<![A-Za-z0-9])hccl(?![A-Za-z0-9])", re.I)


def leave_npu_code(work: Work) -> None:
    """A function (or a statement of a module or class) that mentions the NPU is left as it is."""
    utf8 = work.source.utf8
    if not _NPU.search(utf8):
        return
    comments = [(start, end) for start, end, kind in literal_areas(utf8) if kind == "comment"]
    places = [
        match.start()
        for match in _NPU.finditer(utf8)
        if not any(start <= match.start() < end for start, end in comments)
    ]
    regions = [region for region in _regions(work) if any(region[0] <= at < region[1] for at in places)]
    if not regions:
        return
    stays: list[Change] = []
    for change in work.changes:
        extent = work.source.extent(change.node)
        if any(start <= extent[0] and extent[1] <= end for start, end in regions):
            work.kept.append((*extent, "stands beside code for the NPU"))
        else:
            stays.append(change)
    work.changes = stays
    work.notes = [
        note
        for note in work.notes
        if not any(start <= note.extent[0] and note.extent[1] <= end for start, end in regions)
    ]
    work.kept += [(start, end, "stands beside code for the NPU") for start, end in regions]


def _regions(work: Work) -> list[tuple[int, int]]:
    """Innermost functions, and simple or conditional statements outside of functions."""
    regions = []
    stack: list[ast.stmt] = list(work.scan.tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ClassDef):
            stack += node.body
        elif isinstance(node, FUNCTIONS):
            inner = [item for item in node.body if isinstance(item, (*FUNCTIONS, ast.ClassDef))]
            stack += inner
            regions.append(work.source.extent(node))
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            regions.append(work.source.extent(node))
    return regions
