"""What a check found in one file, and what is left of that once its edits are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from transplt.base.finding import NO_TOKENS, Finding, Level, Status, TokenCount
from transplt.base.text.frames import decoded, frames
from transplt.base.text.source import Source
from transplt.engine.edited_lines import edits_in_order
from transplt.engine.patch import unified_diff
from transplt.project.checking.inputs import path_from_here

if TYPE_CHECKING:
    from transplt.project.worker import MigratedFile


#: Codes of transplt.edits.imports and transplt.engine.files.dependencies: a result that is remembered loads neither.
IMPORTED, ADDED, NOT_ADDED = "NPU403", "NPU841", "NPU844"
_IMPORT = b"import torch_npu"


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What a check found in one file; `path` is relative to its project.

    Without `fix` the findings hold the edits that could be made (`applied` is False). With it, `data` is the new
    content of a file that changes, `before` the content it was made from, `fixed` the number of edits in it, `made`
    their byte ranges in `before`, and the findings are what is left, at their places in the new content. `lines` are
    those around the findings. `tokens` sums up the CUDA-bound tokens of the file as it was; converted are those that
    an edit takes away.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    status: Status = Status.OK
    lines: tuple[tuple[int, str], ...] = ()
    data: bytes | None = None
    before: bytes = b""
    fixed: int = 0
    patch: bytes = b""
    tokens: TokenCount = NO_TOKENS
    made: tuple[tuple[int, int], ...] = ()


def checked(
    root: str,
    file: MigratedFile,
    *,
    fix: bool = False,
    diff: bool = False,
    only_lines: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> CheckedFile:
    """What a check keeps of a file of the project at `root`; nothing is written."""
    data, result = file.data, file.result
    if only_lines is not None:
        from transplt.engine.changed_lines import in_lines  # with the bench of the fixers

        result = in_lines(result, only_lines.get(result.path, ()))
    if file.large:
        return CheckedFile(result.path)
    patch = b""
    if diff:
        name = path_from_here(root, result.path) or result.path
        patch = unified_diff(name, data, result.data, result.findings)
    if fix and result.changed:
        new = decoded(result.data)
        findings = moved(result.findings, new)
        made = tuple((each.span.start, each.span.end) for each in edits_in_order(result.findings))
        lines = frames(new, findings)
        return CheckedFile(
            result.path, findings, result.status, lines, result.data, data, len(made), patch, result.tokens, made
        )
    findings = tuple(replace(each, applied=False) if each.applied else each for each in result.findings)
    lines = frames(decoded(data), findings)
    return CheckedFile(result.path, findings, result.status, lines, patch=patch, tokens=result.tokens)


def import_of_torch_npu(file: CheckedFile) -> Finding | None:
    """The import of torch_npu that goes into a file, at its place there once it is in."""
    if file.data is None:
        return next((each for each in file.findings if each.code == IMPORTED and each.edit is not None), None)
    at, line = file.data.find(_IMPORT), "" if _IMPORT in file.before else _IMPORT.decode()
    if at < 0 or not line:
        return None
    return Finding(file.path, decoded(file.data).span(at, at + len(_IMPORT)), IMPORTED, Level.SAFE, line)


def asks_for_torch_npu(file: CheckedFile) -> bool:
    """True for a file that asks for torch-npu once its edits are made, or that has a finding that it does not."""
    return adds_torch_npu(file) or any(each.code == NOT_ADDED for each in file.findings)


def adds_torch_npu(file: CheckedFile) -> bool:
    """True for a file that asks for torch-npu once its edits are made."""
    if file.data is not None and b"torch-npu" in file.data and b"torch-npu" not in file.before:
        return True
    return any(each.code == ADDED and each.edit is not None for each in file.findings)


def moved(findings: Sequence[Finding], new: Source) -> tuple[Finding, ...]:
    """What is left once the edits among `findings` are made, at its places in the new text."""
    edits = edits_in_order(findings)
    left = []
    for finding in findings:
        if finding.applied:
            continue
        start = end = 0
        for edit in edits:
            assert edit.edit is not None
            grown = len(edit.edit.after.encode()) - (edit.span.end - edit.span.start)
            if edit.span.end <= finding.span.start:
                start += grown
            if edit.span.start < finding.span.end or edit.span.end <= finding.span.start:
                end += grown
        size = len(new.utf8)
        first = min(max(finding.span.start + start, 0), size)
        span = new.span(first, min(max(finding.span.end + end, first), size))
        left.append(replace(finding, span=span))
    return tuple(left)
