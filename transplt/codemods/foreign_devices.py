"""A device string that moves and is also handed to another library, which has names of its own for devices."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.project.marks import DEVICE
from transplt.syntax.asks import arguments_of
from transplt.values.callees import FOREIGN

fixer = Fixer(__name__, code="NPU203", rank=560)


@fixer.on(ast.Module)
def handed_to_another_library(work: Work, tree: ast.Module) -> Finds:
    """Report arguments of other libraries' calls that will hold an NPU string."""
    if not work.scan.strings or not _is_imported(work):
        return
    slots = work.slots
    held = {slots.find(slot) for slot in slots.held}
    for call in work.scan.calls:
        root = (work.names.qualified(call.func) or "").partition(".")[0]
        if root not in FOREIGN:
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


def _is_imported(work: Work) -> bool:
    """True for a file that imports a package with devices of its own."""
    bindings = (binding for found in work.scan.root.bindings.values() for binding in found if binding.kind == "import")
    return any(binding.target.partition(".")[0] in FOREIGN for binding in bindings)
