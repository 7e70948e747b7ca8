"""Keys and values of torch.npu.set_option: torch_npu raises for those that it does not know, when the script runs.

Facts: rules/support/npu_options.json.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from functools import partial
from typing import Any

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.rules.tables import read_table
from transplt.syntax.nodes import by_place, string_of
from transplt.syntax.scan import parent

_table = partial(read_table, "support/npu_options.json")

fixer = Fixer(__name__, code="NPU558", needs=(b"set_option",), words=("set_option",))

_MODULES = ("torch.npu", "torch.npu.npu_config", "torch_npu.npu", "torch_npu.npu.npu_config")
_API = "torch.npu.set_option"


@fixer.on(ast.Call, name=tuple(f"{module}.set_option" for module in _MODULES))
def options(work: Work, call: ast.Call) -> Finds:
    """Report keys that torch_npu does not know, and values that it refuses."""
    given = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "option"), None)
    for key, value in _items(work, given):
        name = string_of(key)
        if name is None:
            continue
        known = _table()["options"].get(name)
        if known is None:
            close = difflib.get_close_matches(name, _table()["options"], n=1, cutoff=0.6)
            hint = f"did you mean {close[0]}?" if close else "remove it; transplt explain NPU558 lists the keys"
            message = f"torch.npu.set_option has no option {name}, and raises an error"
            yield work.note(key, fixer.code, message, api=_API, help=hint)
        elif isinstance(value, ast.Constant) and (wanted := _refused(known, str(value.value))):
            message = f"torch.npu.set_option takes {wanted} for {name}, not {value.value!s}"
            yield work.note(value, fixer.code, message, api=_API, help="pass one of these")
        elif known.get("deprecated"):
            message = f"torch_npu advises against {name} of torch.npu.set_option"
            yield work.note(key, fixer.code, message, level=Level.INFO, api=_API, help="measure with and without it")


def _refused(known: dict[str, Any], value: str) -> str:
    """What a key takes, for a value that it does not take; torch_npu compares the text of a value."""
    if "range" in known:
        first, last = known["range"]
        return "" if value.isdigit() and first <= int(value) <= last else f"{first} to {last}"
    values = known.get("values", [value])
    return "" if value in values else " or ".join(values)


def _items(work: Work, given: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Keys and values of a dict that is written out: in the call, or in a variable that only one statement sets."""
    if isinstance(given, ast.Dict):
        yield from ((key, value) for key, value in zip(given.keys, given.values, strict=True) if key is not None)
    bindings = work.names.bindings_of(given)
    if not isinstance(given, ast.Name) or len(bindings) != 1:
        return
    match parent(bindings[0].node):
        case ast.Assign(value=ast.Dict() as display) | ast.AnnAssign(value=ast.Dict() as display):
            yield from _items(work, display)
    for name in by_place(work.scan.names.get(given.id, ())):
        entry = parent(name)
        match parent(entry):
            case ast.Assign(targets=targets, value=value) if isinstance(entry, ast.Subscript) and entry in targets:
                if work.names.bindings_of(name) is bindings:
                    yield entry.slice, value
