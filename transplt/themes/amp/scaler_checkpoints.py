"""The scaler's state in checkpoints: beside the optimizer's, and read only where a checkpoint has it.

A checkpoint without it loads as before; the scale starts anew then.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from transplt.edits.writer import Writer
from transplt.program.program import enclosing_function, text_of
from transplt.syntax.asks import end_of, place_of
from transplt.syntax.scan import parent, statement
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
from transplt.themes.amp.home import Home
from transplt.themes.amp.parts import Part
from transplt.themes.amp.reading import class_of_method

STATE = State(
    "scaler",
    "NPU744",
    saved="the checkpoint keeps the scaler's state",
    loaded="the scaler goes on where it was, if the checkpoint has its state",
)
#: Files that keep optimizers' states, whatever these are called there.
_KEEPS = re.compile(rb"\bopt\w*(?:\[[^\]\n]*\])?\.state_dict\(|in self\.optimizers\b")


def write_checkpoints(writer: Writer, done: list[tuple[Part, str]]) -> None:
    """Save and load the scalers of the units that got one."""
    unit = done[0][0]
    scan = unit.file.scan
    kept = False
    saved: set[int] = set()
    for node in uses(unit.program, unit.file, "state_dict"):
        kept = True
        _save(writer, done, node, saved)
    for node in uses(unit.program, unit.file, "load_state_dict"):
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
                f'save "{STATE.key}": {scaler}.state_dict() there too, and load it where a checkpoint has it: '
                f'if "{STATE.key}" in checkpoint: {scaler}.load_state_dict(checkpoint["{STATE.key}"])',
                STATE.code,
            )
            return


def _scalers_at(done: list[tuple[Part, str]], node: ast.Call) -> dict[str, str]:
    """The scalers that can be seen where an optimizer's state is saved or loaded, by their keys in the checkpoint.

    Those of one piece of training code: one under the key `scaler`, or several by their names.
    """
    seen = [(part, scaler) for part, scaler in done if part.home is not None and _sees(part, part.home, node)]
    if not seen or not seen[0][0].mark:
        return {STATE.key: seen[0][1]} if seen else {}
    return {scaler.rpartition(".")[2]: scaler for part, scaler in seen if part.scope is seen[0][0].scope}


def _own_scaler(done: list[tuple[Part, str]], node: ast.Call) -> str:
    """The scaler that serves the optimizer whose state is saved."""
    assert isinstance(node.func, ast.Attribute)
    text = text_of(done[0][0].file, node.func.value)
    return next((scaler for part, scaler in done if text in part.texts), "")


def _sees(unit: Part, home: Home, node: ast.AST) -> bool:
    if home.kind == "module":
        return True
    function = enclosing_function(node)
    if home.kind == "attribute":
        cls = class_of_method(enclosing_function(home.after[0]))
        return class_of_method(function) is cls and _later(home, node, function)
    for after in home.after:
        owner = enclosing_function(after)
        if (function is owner and _later(home, node, function)) or (owner is None and function is not None):
            return True
    return any(function is taker for taker, _ in home.takes)


def _later(home: Home, node: ast.AST, function: ast.AST | None) -> bool:
    """False for code above the place where the scaler is made, in the same function."""
    return all(
        enclosing_function(after) is not function or place_of(node) >= end_of(after)
        for after in home.after
    )


def _save(writer: Writer, done: list[tuple[Part, str]], node: ast.Call, saved: set[int]) -> None:
    unit, file = done[0][0], done[0][0].file
    if is_copied(file, node):
        return
    scalers, holder = _scalers_at(done, node), holder_of(writer, node)
    if holder is None or not scalers:
        scaler = next(iter(scalers.values()), "")
        name = scaler or done[0][1]
        writer.left(
            node,
            "the optimizer's state is saved here without the scaler's",
            f"save {name}.state_dict() beside it" + ("" if scaler else "; the scaler has to be handed to this code"),
            STATE.code,
        )
        return
    value: ast.expr = node
    if isinstance(holder, ast.Dict):
        if id(holder) in saved or any(has_key(holder, replace(STATE, key=key)) for key in scalers):
            return
        saved.add(id(holder))
        optimizers = uses(unit.program, file, "state_dict")
        value = [row for row in holder.values if row in optimizers][-1]
    elif len(scalers) > 1:
        # Each optimizer has an entry of its own: so has its scaler.
        scalers = {key: scaler for key, scaler in scalers.items() if scaler == _own_scaler(done, node)} or scalers
    save(writer, file, STATE, holder, value, {key: f"{scaler}.state_dict()" for key, scaler in scalers.items()})


def _load(writer: Writer, done: list[tuple[Part, str]], node: ast.Call) -> None:
    file, scalers, given = done[0][0].file, _scalers_at(done, node), checkpoint_of(writer, node)
    if scalers and given is not None and isinstance(getattr(given.slice, "value", None), str):
        if not _loads_already(done, statement(node), text_of(file, given.value)):
            for key, scaler in scalers.items():
                load(writer, file, replace(STATE, key=key), node, given, scaler)
        return
    scaler = next(iter(scalers.values()), "")
    name = scaler or done[0][1]
    writer.left(
        node,
        "the optimizer's state is loaded here without the scaler's",
        f'if the checkpoint has it, {name}.load_state_dict(checkpoint["{STATE.key}"])'
        + ("" if scaler else "; the scaler has to be made before, and seen here"),
        STATE.code,
    )


def _loads_already(done: list[tuple[Part, str]], stored: ast.stmt, base: str) -> bool:
    """True when a later optimizer of the same checkpoint is loaded in the same block: the scaler follows that."""
    file = done[0][0].file
    block = getattr(parent(stored), "body", [])
    for call in uses(done[0][0].program, file, "load_state_dict"):
        other = statement(call)
        given = call.args[0] if call.args else None
        later = other in block and stored in block and place_of(other) > place_of(stored)
        if later and isinstance(given, ast.Subscript):
            return text_of(file, given.value) == base
    return False
