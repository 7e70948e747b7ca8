"""The state of mixed precision in checkpoints: beside the optimizer's, and read only where a checkpoint has it.

A checkpoint without it loads as before; the scale starts anew then. What is saved, and how it is spelled at a place,
is what `scaler_checkpoints` and `apex_checkpoints` say.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transplt.edits.shared_lines import indent_unit
from transplt.edits.trees.expressions import followed_by
from transplt.edits.writer import Writer
from transplt.program.checkpoints import Holder, Loaded, free_key, states_loaded, states_saved
from transplt.program.program import File, Program, text_of
from transplt.syntax.scan import statement


@dataclass(frozen=True, slots=True)
class State:
    """What goes into checkpoints, and what the records of it say. It goes by the first of the keys that is free.

    Several of a kind go by their own names.
    """

    keys: tuple[str, ...]
    code: str
    saved: str
    loaded: str
    what: str  # in "the optimizer's state is saved here without ..."
    left: str  # the code of what is left to a person


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the object whose state it is goes by at a place, and the flag it follows there; `why` it is not written.

    `apart`: there are several of them, and each goes into the checkpoint under its own name.
    """

    names: tuple[str, ...]
    apart: bool = False
    flag: str = ""
    why: str = ""
    help: str = ""


def write_states(
    writer: Writer, program: Program, file: File, state: State, spelled: Callable[[ast.Call], Spelling]
) -> bool:
    """Save and load a state where the file does so with that of an optimizer; False where it does neither."""
    saved, loaded = states_saved(program, file), states_loaded(program, file)
    for item in saved:
        at = spelled(item.call)
        keys = keys_of(program, file, state, at)
        no_room = isinstance(item.holder, ast.Subscript) and not writer.fits(statement(item.call))
        if at.why or item.holder is None or no_room:
            why = at.why or f"the optimizer's state is saved here without {state.what}"
            rows = ", ".join(f'"{key}": {name}.state_dict()' for key, name in keys.items())
            writer.left(item.call, why, f"save {rows} with it{at.help}", state.left)
        else:
            follows = f" if {at.flag} else None" if at.flag else ""
            texts = {key: f"{name}.state_dict(){follows}" for key, name in keys.items()}
            _save(writer, file, state, item.holder, item.call, texts)
    for each in loaded:
        at = spelled(each.call)
        keys = keys_of(program, file, state, at)
        if at.why or each.given is None or not writer.fits(statement(each.call)):
            why = at.why or f"the optimizer's state is loaded here without {state.what}"
            calls = ", ".join(f'{name}.load_state_dict(checkpoint["{key}"])' for key, name in keys.items())
            writer.left(each.call, why, f"if the checkpoint has it, {calls}{at.help}", state.left)
        else:
            _load(writer, file, state, each, each.given, keys, at.flag)
    return bool(saved or loaded)


def keys_of(program: Program, file: File, state: State, at: Spelling) -> dict[str, str]:
    """The objects whose states go into the checkpoints of a file, by their keys."""
    if not at.apart:
        return {free_key(program.project, file, state.keys): at.names[0]}
    found: dict[str, str] = {}
    for name in at.names:
        key = name.rpartition(".")[2]
        found[free_key(program.project, file, (key, f"{key}_state"))] = name
    return found


def _save(writer: Writer, file: File, state: State, holder: Holder, value: ast.Call, texts: Mapping[str, str]) -> None:
    """Put `texts`, by their keys, beside the state of an optimizer, which is `value` in its holder."""
    if isinstance(holder, ast.Dict):
        beside = holder.keys[holder.values.index(value)]
        between = _between_rows(file, beside)
        rows = between.join(f"{_quoted(file, beside, key)}: {text}" for key, text in texts.items())
        writer.rewrite(value, state.code, state.saved, followed_by(rows, between), apart=True)
    elif isinstance(holder, ast.keyword):
        rows = ", ".join(f"{key}={text}" for key, text in texts.items())
        writer.rewrite(value, state.code, state.saved, followed_by(rows), apart=True)
    else:
        base = text_of(file, holder.value)
        lines = [f"{base}[{_quoted(file, holder.slice, key)}] = {text}" for key, text in texts.items()]
        writer.after(statement(value), lines, state.code, state.saved)


def _load(
    writer: Writer, file: File, state: State, item: Loaded, given: ast.Subscript, keys: Mapping[str, str], flag: str
) -> None:
    """Load states behind that of an optimizer; with a flag only if that is set where the program runs."""
    base, unit = text_of(file, given.value), indent_unit(writer.work.source, writer.work.scan.tree)
    lines = []
    for key, name in keys.items():
        quoted = _quoted(file, given.slice, key)
        test = f"{flag} and {base}.get({quoted})" if flag else f"{quoted} in {base}"
        lines += [f"if {test}:", f"{unit}{name}.load_state_dict({base}[{quoted}])"]
    writer.after(statement(item.call), lines, state.code, state.loaded)


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
