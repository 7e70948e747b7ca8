"""The state of mixed precision in checkpoints: beside the optimizer's, and read only where a checkpoint has it.

A checkpoint without it loads as before; the scale starts anew then. What is saved, and how it is spelled at a place,
is what `scaler_checkpoints` and `apex_checkpoints` say.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from transplt.edits.parting import indent_unit
from transplt.edits.writer import Writer
from transplt.program.checkpoints import Holder, Loaded, Saved, free_key, states_loaded, states_saved
from transplt.program.program import File, Program, text_of
from transplt.syntax.scan import statement
from transplt.trees.calls import followed_by
from transplt.trees.displays import entry_behind


@dataclass(frozen=True, slots=True)
class State:
    """What goes into checkpoints, and what the records of it say. It goes by the first of the keys that is free."""

    keys: tuple[str, ...]
    code: str
    saved: str
    loaded: str
    what: str  # in "the optimizer's state is saved here without ..."
    left: str  # the code of what is left to a person


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the object whose state it is goes by at a place, and the flag it follows there; `why` it is not written."""

    name: str
    flag: str = ""
    why: str = ""
    help: str = ""


def write_states(
    writer: Writer, program: Program, file: File, state: State, spelled: Callable[[ast.Call], Spelling]
) -> bool:
    """Save and load a state where the file does so with that of an optimizer; False where it does neither."""
    saved, loaded = states_saved(program, file), states_loaded(program, file)
    key = free_key(program.project, file, state.keys) if saved or loaded else ""
    for item in saved:
        at = spelled(item.call)
        if at.why or item.holder is None or not _has_room(writer, item):
            why = at.why or f"the optimizer's state is saved here without {state.what}"
            writer.left(item.call, why, f'save "{key}": {at.name}.state_dict() beside it{at.help}', state.left)
        else:
            text = f"{at.name}.state_dict()" + (f" if {at.flag} else None" if at.flag else "")
            _save(writer, file, state, item.holder, item.call, key, text)
    for each in loaded:
        at = spelled(each.call)
        if at.why or each.given is None or not writer.fits(statement(each.call)):
            why = at.why or f"the optimizer's state is loaded here without {state.what}"
            do = f'if the checkpoint has it, {at.name}.load_state_dict(checkpoint["{key}"]){at.help}'
            writer.left(each.call, why, do, state.left)
        else:
            _load(writer, file, state, each, each.given, key, at)
    return bool(saved or loaded)


def _has_room(writer: Writer, item: Saved) -> bool:
    return not isinstance(item.holder, ast.Subscript) or writer.fits(statement(item.call))


def _save(writer: Writer, file: File, state: State, holder: Holder, value: ast.Call, key: str, text: str) -> None:
    """Put `text` beside the state of an optimizer, which is `value` in its holder."""
    if isinstance(holder, ast.Dict):
        beside = holder.keys[holder.values.index(value)]
        row = entry_behind(f"{_quoted(file, beside, key)}: {text}", _between_rows(file, beside))
        writer.rewrite(value, state.code, state.saved, row, apart=True)
    elif isinstance(holder, ast.keyword):
        writer.rewrite(value, state.code, state.saved, followed_by(f"{key}={text}"), apart=True)
    else:
        line = f"{text_of(file, holder.value)}[{_quoted(file, holder.slice, key)}] = {text}"
        writer.after(statement(value), [line], state.code, state.saved)


def _load(
    writer: Writer, file: File, state: State, item: Loaded, given: ast.Subscript, key: str, at: Spelling
) -> None:
    """Load a state behind that of an optimizer; with a flag only if that is set where the program runs."""
    base, quoted = text_of(file, given.value), _quoted(file, given.slice, key)
    test = f"{at.flag} and {base}.get({quoted})" if at.flag else f"{quoted} in {base}"
    unit = indent_unit(writer.work.source, writer.work.scan.tree)
    lines = [f"if {test}:", f"{unit}{at.name}.load_state_dict({base}[{quoted}])"]
    writer.after(statement(item.call), lines, state.code, state.loaded)


def _quoted(file: File, beside: ast.expr | None, key: str) -> str:
    """The key of a state in the quotes of another key."""
    quote = "'" if beside is not None and text_of(file, beside).startswith("'") else '"'
    return f"{quote}{key}{quote}"


def _between_rows(file: File, key: ast.expr | None) -> str:
    """What stands between two rows of a dict display: a line break where its rows have lines of their own."""
    if key is None:
        return ", "
    start = file.source.line_starts[key.lineno - 1]
    indent = file.source.slice(start, file.source.extent(key)[0])
    return ", " if indent.strip() else f",{file.source.newline()}{indent}"
