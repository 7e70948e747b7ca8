"""The editor of shell scripts: its parts, one after the other, over one tree."""

from __future__ import annotations

from transplt.edits.edit import Finds
from transplt.files.document import Document
from transplt.files.shell.script import errors, read_script
from transplt.files.shell.variables import variable_changes


def changes(document: Document) -> Finds:
    """What becomes of a shell text on NPU; in the portable style it stays, with its findings."""
    script = read_script(document)
    if script is None:
        return
    if document.settings.style == "npu":
        yield from variable_changes(script, frozenset())


def broken(document: Document, changed: Document) -> str:
    """Why the changed text must not be written: the grammar reads less of it than before."""
    return "the shell would not read it" if errors(changed) > errors(document) else ""
