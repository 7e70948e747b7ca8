"""A device string that moves and is also handed to another library, which has names of its own for devices."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.marks import DEVICE
from transplt.flow.other_devices import libraries_of, library_given, takes_a_target, target_of
from transplt.syntax.nodes import arguments_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU203", rank=560)


@fixer.on(ast.Module)
def handed_to_another_library(work: Work, tree: ast.Module) -> Finds:
    """Report arguments of other libraries' calls that will hold an NPU string."""
    if not work.scan.strings:
        return
    slots = work.slots
    held = {slots.find(slot) for slot in slots.held}
    calls = work.scan.calls if libraries_of(work.scan) else [each for each in work.scan.calls if takes_a_target(each)]
    given = [
        (value, root) for call in calls for value in arguments_of(call)
        if isinstance(value, (ast.Name, ast.Attribute)) and (root := library_given(slots, call, parent(value)))
    ]  # fmt: skip
    limited = [taken for node in work.scan.strings if (taken := target_of(slots, node)) is not None] if given else []
    stays = {id(read) for taken in limited for read in taken.reads}  # it is said of the strings
    for value, root in given:
        slot = slots.of(value)
        if slot is not None and slots.find(slot) in held and DEVICE in slots.marks_of(slot) and id(value) not in stays:
            yield work.note(
                value,
                fixer.code,
                f"{root} gets torch's device string here, which now names the NPU",
                details=(("name", f"{root}.device"),),
                help=f"give {root} a device that it supports",
            )
