"""The state of apex's amp in checkpoints: beside the optimizer's, and read only where a checkpoint has it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.edits.writer import Writer
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.themes.amp.checkpoints import (
    State,
    checkpoint_of,
    has_key,
    holder_of,
    is_copied,
    load,
    save,
    uses,
)
from transplt.themes.amp.flag import follow

STATE = State(
    "amp",
    "NPU746",
    saved="the checkpoint keeps the state of amp",
    loaded="amp goes on where it was, if the checkpoint has its state",
)
_SHARED = "checkpoints without the state of amp: a program that does not train runs this code too"


def write_checkpoints(
    writer: Writer, program: Program, own: File, amp: Callable[[], str], elsewhere: set[ast.AST]
) -> None:
    """Save and load the state of amp where the file saves and loads that of an optimizer. `amp` imports its name.

    `elsewhere` are functions that programs run which never call amp.initialize: amp has no state there.
    """
    saved: set[int] = set()
    for call in uses(program, own, "state_dict"):
        if enclosing_function(call) in elsewhere:
            _left(writer, call, _SHARED)
        else:
            _save(writer, program, own, call, amp, saved)
    loads = uses(program, own, "load_state_dict")
    for index, call in enumerate(loads):
        given = call.args[0] if call.args else None
        later = [other.args[0] for other in loads[index + 1 :] if other.args]
        if enclosing_function(call) in elsewhere:
            _left(writer, call, _SHARED)
        elif not any(_same_checkpoint(own, given, other) for other in later):
            _load(writer, program, own, call, amp)


def _same_checkpoint(file: File, one: ast.expr | None, other: ast.expr) -> bool:
    both = [item.value for item in (one, other) if isinstance(item, ast.Subscript)]
    return len(both) == 2 and text_of(file, both[0]) == text_of(file, both[1])


def _state(writer: Writer, program: Program, own: File, node: ast.Call, amp: Callable[[], str]) -> str:
    """What is saved; empty when the flag that it follows cannot be seen here."""
    if not writer.work.settings.amp_flag:
        return f"{amp()}.state_dict()"
    value = follow(program.project, own)(node)[0]
    return f"{amp()}.state_dict() if {value} else None" if value else ""


def _save(writer: Writer, program: Program, own: File, node: ast.Call, amp: Callable[[], str], saved: set[int]) -> None:
    if is_copied(own, node):
        return
    holder = holder_of(writer, node)
    if holder is None or isinstance(holder, ast.keyword):
        _left(writer, node, "the optimizer's state is saved here without that of amp")
        return
    if id(holder) in saved or has_key(holder, STATE):
        return
    text = _state(writer, program, own, node, amp)
    if not text:
        _left(writer, node, "the flag cannot be seen where the optimizer's state is saved")
        return
    value: ast.expr = node
    if isinstance(holder, ast.Dict):
        saved.add(id(holder))
        value = [row for row in holder.values if isinstance(row, ast.Call) and _is_state(row.func)][-1]
    save(writer, own, STATE, holder, value, {STATE.key: text})


def _is_state(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and func.attr == "state_dict"


def _load(writer: Writer, program: Program, own: File, node: ast.Call, amp: Callable[[], str]) -> None:
    given, flag = checkpoint_of(writer, node), ""
    if given is None:
        _left(writer, node, "the optimizer's state is loaded here without that of amp")
        return
    if writer.work.settings.amp_flag:
        flag = follow(program.project, own)(node)[0] or ""
        if not flag:
            _left(writer, node, "the flag cannot be seen where the optimizer's state is loaded")
            return
    load(writer, own, STATE, node, given, amp(), flag)


def _left(writer: Writer, node: ast.Call, why: str) -> None:
    do = 'save "amp": amp.state_dict() beside it, and load it where a checkpoint has it: amp.load_state_dict(...)'
    writer.left(node, why, do, "NPU743")
