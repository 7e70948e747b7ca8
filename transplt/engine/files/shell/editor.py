"""The editor of shell scripts: its parts, one after the other, over one tree."""

from __future__ import annotations

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.engine.files.document import Document
from transplt.engine.files.shell import variables
from transplt.engine.files.shell.arguments import Reads, argument_changes
from transplt.engine.files.shell.embedded import embedded_changes
from transplt.engine.files.shell.held_values import held_changes
from transplt.engine.files.shell.launches import JOB, starts
from transplt.engine.files.shell.script import Script, errors, read_script
from transplt.engine.files.shell.texts import text_changes
from transplt.engine.files.shell.tools import tool_changes


def changes(document: Document) -> Finds:
    """What becomes of a shell text on NPU; in the portable style it stays, and what it keeps for itself is no
    work. Of a script for NPUs it is said what is left in it.
    """
    script = read_script(document)
    if script is None or script.lost == 0:
        return
    yield from text_changes(script)
    for each in _of_commands(script):
        match each:
            case _ if document.settings.style == "npu":
                yield each
            case Edit():
                pass  # it is for a script of the NPU's own
            case Kept(reason="reported-beside") | Note(level=Level.MANUAL) if script.for_both:
                pass
            case _:
                yield each


def needs_a_twin(script: Script) -> bool:
    """True where a script starts something that is another one on NPUs."""
    started, found = starts(script), _of_commands(script)
    work = (isinstance(each, Edit) or (isinstance(each, Note) and each.level is Level.MANUAL) for each in found)
    return bool(started) and (started == JOB or any(work))


def _of_commands(script: Script) -> Finds:
    elsewhere: set[int] = set()
    for node, found in embedded_changes(script):
        elsewhere.add(node.id)
        yield from found
    for owned, change in tool_changes(script, frozenset(elsewhere)):
        if owned is not None:
            elsewhere.add(owned.id)
        yield change
    yield from variables.variable_changes(script, frozenset(elsewhere))
    reads = Reads()
    yield from argument_changes(script, frozenset(elsewhere), reads)
    yield from held_changes(script, frozenset(elsewhere), reads)


def broken(document: Document, changed: Document) -> str:
    """Why the changed text must not be written: the grammar reads less of it than before."""
    return "the script would no longer be valid" if errors(changed) > errors(document) else ""
