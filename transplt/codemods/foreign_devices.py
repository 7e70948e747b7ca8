"""A device string that moves and is also handed to another library, which has names of its own for devices."""

from __future__ import annotations

import ast

from transplt.edits.work import Work
from transplt.values.links import DEVICE
from transplt.values.reached import FOREIGN


def plan(work: Work) -> None:
    """Report arguments of other libraries' calls that will hold an NPU string."""
    if not work.scan.strings or not _roots(work):
        return
    flow = work.flow
    held = {flow.find(slot) for slot in flow.held}
    for call in work.scan.calls:
        root = (work.names.qualified(call.func) or "").partition(".")[0]
        if root not in FOREIGN:
            continue
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            if not isinstance(value, (ast.Name, ast.Attribute)):
                continue
            slot = flow.slot(value)
            if slot is not None and flow.find(slot) in held and DEVICE in flow.marks_of(slot):
                work.note(
                    value,
                    "NPU203",
                    f"the device string of torch reaches {root} here, and names the NPU now",
                    help=f"give {root} its own name of the device",
                )


def _roots(work: Work) -> set[str]:
    """The packages with devices of their own that a file imports."""
    bindings = (binding for found in work.scan.root.bindings.values() for binding in found if binding.kind == "import")
    return {binding.target.partition(".")[0] for binding in bindings} & FOREIGN
