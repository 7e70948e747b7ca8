"""The scaler's state in checkpoints."""

from __future__ import annotations

import ast
import re

from transplt.edits.writer import Writer
from transplt.fixers.amp.checkpoints import Spelling, State, keys_of, write_states
from transplt.fixers.amp.optimizer_groups import Part
from transplt.fixers.amp.scaler_place import Home
from transplt.program.program import enclosing_function
from transplt.syntax.nodes import begins, class_of_method, ends

STATE = State(
    ("scaler", "grad_scaler"),
    "NPU744",
    saved="the checkpoint keeps the scaler's state",
    loaded="the scaler continues from the checkpoint, if it has the scaler's state",
    what="the scaler's",
    left="NPU744",
)
_HIDDEN = "checkpoints without the scaler's state: the scaler is not available here"
#: Files that keep optimizers' states, whatever these are called there.
_KEEPS = re.compile(rb"\bopt\w*(?:\[[^\]\n]*\])?\.state_dict\(|in self\.optimizers\b")


def write_checkpoints(writer: Writer, done: list[tuple[Part, str]]) -> None:
    """Save and load the scalers of the units that got one."""
    unit, first = done[0]

    def spelled(call: ast.Call) -> Spelling:
        seen = _scalers_at(done, call)
        if seen is not None:
            return seen
        return Spelling((first,), why=_HIDDEN, help="; the scaler must be created before, or passed to this code")

    if write_states(writer, unit.program, unit.file, STATE, spelled) or not unit.file.scan.calls:
        return
    for other in unit.program.files:
        text = other.source.utf8
        if other is not unit.file and b"torch.save(" in text and _KEEPS.search(text):
            key = next(iter(keys_of(unit.program, unit.file, STATE, Spelling((first,), apart=bool(unit.mark)))))
            writer.left(
                unit.first,
                f"checkpoints with the optimizer's state are written in {other.path}, without the scaler's",
                f'save "{key}": {first}.state_dict() there too, and load it where a checkpoint has it: '
                f'if "{key}" in checkpoint: {first}.load_state_dict(checkpoint["{key}"])',
                STATE.code,
            )
            return


def _scalers_at(done: list[tuple[Part, str]], node: ast.Call) -> Spelling | None:
    """The scalers that can be seen where an optimizer's state is saved or loaded; None where there is none.

    They are those of one piece of training code: one, or several that go by their names.
    """
    seen = [(part, scaler) for part, scaler in done if part.home is not None and _sees(part, part.home, node)]
    if not seen:
        return None
    first, scaler = seen[0]
    if not first.mark:
        return Spelling((scaler,))
    return Spelling(tuple(scaler for part, scaler in seen if part.scope is first.scope), apart=True)


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
    return all(enclosing_function(after) is not function or begins(node) >= ends(after) for after in home.after)
