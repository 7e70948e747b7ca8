"""The state of apex's amp in checkpoints."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.edits.writer import Writer
from transplt.fixers.amp.checkpoints import Spelling, State, write_states
from transplt.fixers.amp.flag import follow
from transplt.program.program import File, Program, enclosing_function

STATE = State(
    ("amp", "amp_state"),
    "NPU746",
    saved="the checkpoint keeps the state of amp",
    loaded="amp continues from the checkpoint, if it has the state of amp",
    what="that of amp",
    left="NPU743",
)
_SHARED = "checkpoints without the state of amp: a program that does not train runs this code too"
_HIDDEN = "checkpoints without the state of amp: its flag is not available here"


def write_checkpoints(
    writer: Writer, program: Program, own: File, amp: Callable[[], str], elsewhere: set[ast.AST]
) -> None:
    """Save and load the state of amp where the file saves and loads that of an optimizer. `amp` imports its name.

    `elsewhere` are functions that programs run which never call amp.initialize: amp has no state there.
    """
    flags = follow(program.project, own) if writer.work.settings.amp_flag else None

    def spelled(call: ast.Call) -> Spelling:
        if enclosing_function(call) in elsewhere:
            return Spelling(("amp",), why=_SHARED)
        flag = flags(call)[0] or "" if flags is not None else ""
        if flags is not None and not flag:
            return Spelling(("amp",), why=_HIDDEN)
        return Spelling((amp(),), flag=flag)

    write_states(writer, program, own, STATE, spelled)
