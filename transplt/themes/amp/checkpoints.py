"""The scaler's state in checkpoints: beside the optimizer's, and read only where a checkpoint has it.

A checkpoint without it loads as before; the scale starts anew then.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.insertions import Insertion
from transplt.edits.writing import Writer
from transplt.program.program import text_of
from transplt.syntax.scan import parent, statement
from transplt.themes.amp.home import Home
from transplt.themes.amp.reading import class_around, function_of, is_optimizer_object
from transplt.themes.amp.shape import Unit

CODE = "NPU744"
_KEY = "scaler"
#: Files that keep optimizers' states, whatever these are called there.
_KEEPS = re.compile(rb"\bopt\w*(?:\[[^\]\n]*\])?\.state_dict\(|in self\.optimizers\b")


def write_checkpoints(writer: Writer, done: list[tuple[Unit, str]]) -> None:
    """Save and load the scalers of the units that got one."""
    unit = done[0][0]
    scan = unit.file.scan
    kept = False
    saved: set[int] = set()
    for node in _uses(unit, "state_dict"):
        kept = True
        _save(writer, done, node, saved)
    for node in _uses(unit, "load_state_dict"):
        kept = True
        _load(writer, done, node)
    if kept or not scan.calls:
        return
    for other in unit.program.files:
        text = other.source.utf8
        if other is not unit.file and b"torch.save(" in text and _KEEPS.search(text):
            scaler = done[0][1]
            writer.left(
                unit.first,
                f"checkpoints with the optimizer's state are written in {other.path}, without the scaler's",
                f'save "{_KEY}": {scaler}.state_dict() there too, and load it where a checkpoint has it: '
                f'if "{_KEY}" in checkpoint: {scaler}.load_state_dict(checkpoint["{_KEY}"])',
                CODE,
            )
            return


def _uses(unit: Unit, method: str) -> list[ast.Call]:
    """The calls of a method of optimizers, by place."""
    found = []
    for node in unit.file.scan.attributes.get(method, ()):
        call = parent(node)
        if (
            isinstance(call, ast.Call)
            and call.func is node
            and is_optimizer_object(unit.program, unit.file, node.value)
        ):
            found.append(call)
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _scaler_at(done: list[tuple[Unit, str]], node: ast.Call) -> str:
    """The scaler that can be seen where an optimizer's state is saved or loaded; empty when there is none."""
    for unit, scaler in done:
        if unit.home is not None and _sees(unit, unit.home, node):
            return scaler
    return ""


def _sees(unit: Unit, home: Home, node: ast.AST) -> bool:
    if home.kind == "module":
        return True
    function = function_of(node)
    if home.kind == "attribute":
        cls = class_around(function_of(home.after[0]))
        return class_around(function) is cls and _later(home, node, function)
    for after in home.after:
        owner = function_of(after)
        if (function is owner and _later(home, node, function)) or (owner is None and function is not None):
            return True
    return any(function is taker for taker, _ in home.takes)


def _later(home: Home, node: ast.AST, function: ast.AST | None) -> bool:
    """False for code above the place where the scaler is made, in the same function."""
    return all(
        function_of(after) is not function or getattr(node, "lineno", 0) > (after.end_lineno or 0)
        for after in home.after
    )


def _left(writer: Writer, node: ast.Call, what: str, do: str) -> None:
    writer.left(node, what, do, CODE)


def _save(writer: Writer, done: list[tuple[Unit, str]], node: ast.Call, saved: set[int]) -> None:
    above = parent(node)
    if isinstance(above, ast.Call) and text_of(done[0][0].file, above.func).endswith("copy"):
        return
    scaler = _scaler_at(done, node)
    stored = statement(node)
    if isinstance(above, ast.Dict) and scaler:
        if id(above) in saved or any(getattr(key, "value", "") == _KEY for key in above.keys):
            return
        saved.add(id(above))
        inside = [value for value in above.values if value in _uses(done[0][0], "state_dict")]
        _entry(writer, above, inside[-1], scaler)
    elif (
        isinstance(above, ast.keyword) and getattr(getattr(parent(above), "func", None), "id", "") == "dict" and scaler
    ):
        _put(writer, node, f", {_KEY}={scaler}.state_dict()")
    elif (
        isinstance(stored, ast.Assign)
        and stored.value is node
        and isinstance(stored.targets[0], ast.Subscript)
        and scaler
        and writer.layout.fits(stored)
    ):
        base = text_of(done[0][0].file, stored.targets[0].value)
        quote = _quote(writer, stored.targets[0].slice)
        text = f"{base}[{quote}{_KEY}{quote}] = {scaler}.state_dict()"
        writer.after(stored, [text], CODE, "the checkpoint keeps the scaler's state")
    else:
        name = scaler or done[0][1]
        _left(
            writer,
            node,
            "the optimizer's state is saved here without the scaler's",
            f"save {name}.state_dict() beside it" + ("" if scaler else "; the scaler has to be handed to this code"),
        )


def _entry(writer: Writer, node: ast.Dict, value: ast.expr, scaler: str) -> None:
    """One more entry of a dict display, on a line of its own where its entries have theirs."""
    key = node.keys[node.values.index(value)]
    quote = _quote(writer, key)
    text = f"{quote}{_KEY}{quote}: {scaler}.state_dict()"
    separator = ", "
    if key is not None:
        source = writer.work.source
        start = source.line_starts[key.lineno - 1]
        indent = source.slice(start, source.extent(key)[0])
        if not indent.strip():
            separator = f",{source.newline()}{indent}"
    _put(writer, value, separator + text)


def _put(writer: Writer, value: ast.expr, text: str) -> None:
    offset = writer.work.source.extent(value)[1]
    message = "the checkpoint keeps the scaler's state"
    writer.work.insertions.append(Insertion(offset, text, CODE, message, writer.level))


def _quote(writer: Writer, key: ast.expr | None) -> str:
    text = writer.work.source.slice(*writer.work.source.extent(key)) if key is not None else ""
    return "'" if text.startswith("'") else '"'


def _load(writer: Writer, done: list[tuple[Unit, str]], node: ast.Call) -> None:
    scaler = _scaler_at(done, node)
    stored = statement(node)
    given = node.args[0] if node.args else None
    file = done[0][0].file
    if (
        scaler
        and isinstance(stored, ast.Expr)
        and stored.value is node
        and isinstance(given, ast.Subscript)
        and isinstance(given.value, (ast.Name, ast.Attribute))
        and isinstance(given.slice, ast.Constant)
        and isinstance(given.slice.value, str)
        and writer.layout.fits(stored)
    ):
        base, quote = text_of(file, given.value), _quote(writer, given.slice)
        key = f"{quote}{_KEY}{quote}"
        unit = _unit_of_indent(writer)
        lines = [f"if {key} in {base}:", f"{unit}{scaler}.load_state_dict({base}[{key}])"]
        if not _loads_already(done, stored, base):
            writer.after(stored, lines, CODE, "the scaler goes on where it was, if the checkpoint has its state")
        return
    name = scaler or done[0][1]
    _left(
        writer,
        node,
        "the optimizer's state is loaded here without the scaler's",
        f'if the checkpoint has it, {name}.load_state_dict(checkpoint["{_KEY}"])'
        + ("" if scaler else "; the scaler has to be made before, and seen here"),
    )


def _loads_already(done: list[tuple[Unit, str]], stored: ast.stmt, base: str) -> bool:
    """True when a later optimizer of the same checkpoint is loaded in the same block: the scaler follows that."""
    file = done[0][0].file
    block = getattr(parent(stored), "body", [])
    for call in _uses(done[0][0], "load_state_dict"):
        other = statement(call)
        given = call.args[0] if call.args else None
        if other in block and stored in block and other.lineno > stored.lineno and isinstance(given, ast.Subscript):
            return text_of(file, given.value) == base
    return False


def _unit_of_indent(writer: Writer) -> str:
    from transplt.edits.indenting import indent_unit

    return indent_unit(writer.work.source, writer.work.scan.tree)
