"""Copies of packages that handle NPUs themselves: nothing in them is edited or reported but by the user's own rules."""

from __future__ import annotations

from transplt.edits.edit import Kept
from transplt.edits.work import Work
from transplt.flow.vendored import around

_OF_COPIES = ("NPU0", "NPU28")


def leave_copies(work: Work) -> None:
    """Take back what was planned in a file of such a copy."""
    copy = around(work.project.copies, work.scan.path)
    if copy is None or not copy.handles_npu:
        return
    work.withdraw_edits(lambda edit: not edit.user)
    work.withdraw_notes(lambda note: not note.code.startswith(_OF_COPIES))
    work.kept = [Kept((0, len(work.source.utf8)), "copied-package", f"{copy.package} {copy.version}")]
