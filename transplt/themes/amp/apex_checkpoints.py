"""The state of apex's amp in checkpoints: beside the optimizer's, and read only where a checkpoint has it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.edits.indenting import indent_unit
from transplt.edits.insertions import Insertion
from transplt.edits.writing import Writer
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.syntax.scan import parent, statement
from transplt.themes.amp.flag import follow
from transplt.themes.amp.reading import is_optimizer_object

CODE, KEY = "NPU746", "amp"


def write_checkpoints(
    writer: Writer, program: Program, own: File, amp: Callable[[], str], elsewhere: set[ast.AST]
) -> None:
    """Save and load the state of amp where the file saves and loads that of an optimizer. `amp` imports its name.

    `elsewhere` are functions that programs run which never call amp.initialize: amp has no state there.
    """
    saved: set[int] = set()
    for call in _uses(program, own, "state_dict"):
        if enclosing_function(call) in elsewhere:
            _left(writer, call, _SHARED)
        else:
            _save(writer, program, own, call, amp, saved)
    loads = _uses(program, own, "load_state_dict")
    for index, call in enumerate(loads):
        given = call.args[0] if call.args else None
        later = [other.args[0] for other in loads[index + 1 :] if other.args]
        if enclosing_function(call) in elsewhere:
            _left(writer, call, _SHARED)
        elif not any(_same_checkpoint(own, given, other) for other in later):
            _load(writer, program, own, call, amp)


_SHARED = "checkpoints without the state of amp: a program that does not train runs this code too"


def _uses(program: Program, file: File, method: str) -> list[ast.Call]:
    """The calls of a method of optimizers, by place."""
    found = []
    for node in file.scan.attributes.get(method, ()):
        call = parent(node)
        if isinstance(call, ast.Call) and call.func is node and is_optimizer_object(program, file, node.value):
            found.append(call)
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


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
    above, stored = parent(node), statement(node)
    if isinstance(above, ast.Call) and text_of(own, above.func).endswith("copy"):
        return
    holder = above if isinstance(above, ast.Dict) else None
    assigned = isinstance(stored, ast.Assign) and stored.value is node and isinstance(stored.targets[0], ast.Subscript)
    if holder is None and not (assigned and writer.layout.fits(stored)):
        _left(writer, node, "the optimizer's state is saved here without that of amp")
        return
    if holder is not None and (id(holder) in saved or any(getattr(key, "value", "") == KEY for key in holder.keys)):
        return
    text = _state(writer, program, own, node, amp)
    if not text:
        _left(writer, node, "the flag cannot be seen where the optimizer's state is saved")
    elif holder is not None:
        saved.add(id(holder))
        _entry(writer, own, holder, text)
    else:
        assert isinstance(stored, ast.Assign) and isinstance(stored.targets[0], ast.Subscript)
        target = stored.targets[0]
        key = _quoted(own, target.slice)
        writer.after(stored, [f"{text_of(own, target.value)}[{key}] = {text}"], CODE, _KEPT)


_KEPT = "the checkpoint keeps the state of amp"


def _entry(writer: Writer, own: File, holder: ast.Dict, text: str) -> None:
    """One more entry of a dict display, behind the last optimizer's, on a line of its own where entries have theirs."""
    inside = [
        (key, value)
        for key, value in zip(holder.keys, holder.values, strict=True)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "state_dict"
    ]
    key, value = inside[-1]
    source = own.source
    separator = ", "
    if key is not None:
        start = source.line_starts[key.lineno - 1]
        indent = source.slice(start, source.extent(key)[0])
        separator = f",{source.newline()}{indent}" if not indent.strip() else ", "
    offset = source.extent(value)[1]
    entry = f"{separator}{_quoted(own, key)}: {text}"
    writer.work.insertions.append(Insertion(offset, entry, CODE, _KEPT, writer.level))


def _load(writer: Writer, program: Program, own: File, node: ast.Call, amp: Callable[[], str]) -> None:
    stored = statement(node)
    given = node.args[0] if node.args else None
    known = (
        isinstance(stored, ast.Expr)
        and stored.value is node
        and isinstance(given, ast.Subscript)
        and isinstance(given.value, (ast.Name, ast.Attribute))
        and isinstance(given.slice, ast.Constant)
        and writer.layout.fits(stored)
    )
    if not known:
        _left(writer, node, "the optimizer's state is loaded here without that of amp")
        return
    assert isinstance(given, ast.Subscript)
    base, key = text_of(own, given.value), _quoted(own, given.slice)
    test = f"{key} in {base}"
    if writer.work.settings.amp_flag:
        value = follow(program.project, own)(node)[0]
        if not value:
            _left(writer, node, "the flag cannot be seen where the optimizer's state is loaded")
            return
        test = f"{value} and {base}.get({key})"
    unit = indent_unit(writer.work.source, writer.work.scan.tree)
    lines = [f"if {test}:", f"{unit}{amp()}.load_state_dict({base}[{key}])"]
    writer.after(stored, lines, CODE, "amp goes on where it was, if the checkpoint has its state")


def _left(writer: Writer, node: ast.Call, why: str) -> None:
    do = f'save "{KEY}": amp.state_dict() beside it, and load it where a checkpoint has it: amp.load_state_dict(...)'
    writer.left(node, why, do, "NPU743")


def _quoted(own: File, key: ast.expr | None) -> str:
    """The key of amp in the quotes of another key."""
    quote = "'" if key is not None and text_of(own, key).startswith("'") else '"'
    return f"{quote}{KEY}{quote}"
