"""A device string that moves and is also handed to another library, which has names of its own for devices."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.callees import FOREIGN, OTHER_DEVICES
from transplt.flow.marks import DEVICE
from transplt.flow.other_devices import libraries_of
from transplt.syntax.asks import arguments_of

fixer = Fixer(__name__, code="NPU203", rank=560)


@fixer.on(ast.Module)
def handed_to_another_library(work: Work, tree: ast.Module) -> Finds:
    """Report arguments of other libraries' calls that will hold an NPU string."""
    if not work.scan.strings or not libraries_of(work.scan):
        return
    slots = work.slots
    held = {slots.find(slot) for slot in slots.held}
    for call in work.scan.calls:
        root = (work.names.qualified(call.func) or "").partition(".")[0]
        if root not in FOREIGN and root not in OTHER_DEVICES:
            continue
        for value in arguments_of(call):
            if not isinstance(value, (ast.Name, ast.Attribute)):
                continue
            slot = slots.of(value)
            if slot is not None and slots.find(slot) in held and DEVICE in slots.marks_of(slot):
                yield work.note(
                    value,
                    fixer.code,
                    f"the device string of torch reaches {root} here, and names the NPU now",
                    help=f"give {root} its own name of the device",
                )
