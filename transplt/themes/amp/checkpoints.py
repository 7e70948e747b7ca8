"""The state of mixed precision in checkpoints: beside the optimizer's, and read only where a checkpoint has it.

What is saved, under which key and where that may be, is what `scaler_checkpoints` and `apex_checkpoints` say.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from transplt.edits.lines import indent_unit
from transplt.edits.writer import Writer
from transplt.program.program import File, Program, text_of
from transplt.syntax.asks import by_place, call_of
from transplt.syntax.scan import parent, statement
from transplt.themes.amp.reading import is_optimizer_object
from transplt.trees.calls import followed_by
from transplt.trees.displays import entry_behind

#: Where the state of an optimizer goes: a row of a dict display, an argument of `dict(...)`, an entry of a dict that
#: a statement of its own gives a value.
Holder = ast.Dict | ast.keyword | ast.Subscript


@dataclass(frozen=True, slots=True)
class State:
    """What goes into checkpoints, and what the records of it say."""

    key: str
    code: str
    saved: str
    loaded: str


def uses(program: Program, file: File, method: str) -> list[ast.Call]:
    """The calls of a method of optimizers, by place."""
    found = []
    for node in file.scan.attributes.get(method, ()):
        call = call_of(node)
        if call is not None and is_optimizer_object(program, file, node.value):
            found.append(call)
    return by_place(found)


def is_copied(file: File, call: ast.Call) -> bool:
    """True for `copy.deepcopy(optimizer.state_dict())`: that is kept for a while, not saved."""
    above = parent(call)
    return isinstance(above, ast.Call) and text_of(file, above.func).endswith("copy")


def holder_of(writer: Writer, call: ast.Call) -> Holder | None:
    """Where a state is put; None where another one cannot be put beside it."""
    above, stored = parent(call), statement(call)
    if isinstance(above, ast.Dict):
        return above
    if isinstance(above, ast.keyword):
        func = getattr(parent(above), "func", None)
        return above if isinstance(func, ast.Name) and func.id == "dict" else None
    if isinstance(stored, ast.Assign) and stored.value is call and writer.fits(stored):
        target = stored.targets[0]
        return target if isinstance(target, ast.Subscript) else None
    return None


def has_key(holder: Holder, state: State) -> bool:
    """True for a dict display that has the key of a state already."""
    return isinstance(holder, ast.Dict) and any(getattr(key, "value", "") == state.key for key in holder.keys)


def save(writer: Writer, file: File, state: State, holder: Holder, value: ast.expr, texts: Mapping[str, str]) -> None:
    """Put `texts`, by their keys, beside the state of an optimizer, which is `value` in its holder."""
    if isinstance(holder, ast.Dict):
        at = holder.keys[holder.values.index(value)]
        between = _between_rows(file, at)
        rows = between.join(f"{_quoted(file, at, key)}: {text}" for key, text in texts.items())
        writer.rewrite(value, state.code, state.saved, entry_behind(rows, between), apart=True)
    elif isinstance(holder, ast.keyword):
        rows = ", ".join(f"{key}={text}" for key, text in texts.items())
        writer.rewrite(value, state.code, state.saved, followed_by(rows), apart=True)
    else:
        base = text_of(file, holder.value)
        lines = [f"{base}[{_quoted(file, holder.slice, key)}] = {text}" for key, text in texts.items()]
        writer.after(statement(value), lines, state.code, state.saved)


def checkpoint_of(writer: Writer, call: ast.Call) -> ast.Subscript | None:
    """`checkpoint["optimizer"]` of `optimizer.load_state_dict(checkpoint["optimizer"])` on lines of its own."""
    stored, given = statement(call), call.args[0] if call.args else None
    if (
        isinstance(stored, ast.Expr)
        and stored.value is call
        and isinstance(given, ast.Subscript)
        and isinstance(given.value, (ast.Name, ast.Attribute))
        and isinstance(given.slice, ast.Constant)
        and writer.fits(stored)
    ):
        return given
    return None


def load(
    writer: Writer, file: File, state: State, call: ast.Call, given: ast.Subscript, name: str, flag: str = ""
) -> None:
    """Load a state of `name` behind that of an optimizer; with a flag only if that is set where the program runs."""
    base, key = text_of(file, given.value), _quoted(file, given.slice, state.key)
    test = f"{flag} and {base}.get({key})" if flag else f"{key} in {base}"
    unit = indent_unit(writer.work.source, writer.work.scan.tree)
    lines = [f"if {test}:", f"{unit}{name}.load_state_dict({base}[{key}])"]
    writer.after(statement(call), lines, state.code, state.loaded)


def _quoted(file: File, beside: ast.expr | None, key: str) -> str:
    """A key in the quotes of another key."""
    quote = "'" if beside is not None and text_of(file, beside).startswith("'") else '"'
    return f"{quote}{key}{quote}"


def _between_rows(file: File, key: ast.expr | None) -> str:
    """What stands between two rows of a dict display: a line break where its rows have lines of their own."""
    if key is None:
        return ", "
    start = file.source.line_starts[key.lineno - 1]
    indent = file.source.slice(start, file.source.extent(key)[0])
    return ", " if indent.strip() else f",{file.source.newline()}{indent}"
