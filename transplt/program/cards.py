"""Whether anything of a training program is put on a card."""

from __future__ import annotations

import ast

from transplt.program.program import File, Program
from transplt.syntax.asks import call_of, last_name, string_of
from transplt.syntax.scan import parent

_CARDS = ("cuda", "npu")
#: What is asked or told of cards by programs that use none, too.
_KEEPING = frozenset(
    "manual_seed manual_seed_all seed seed_all is_available device_count empty_cache synchronize get_rng_state "
    "set_rng_state get_rng_state_all set_rng_state_all max_memory_allocated memory_allocated max_memory_reserved "
    "memory_reserved reset_peak_memory_stats get_device_name get_device_properties Event".split()
)
_PLACES = frozenset({"DataParallel", "DistributedDataParallel", "Accelerator", "accelerator", "set_default_device"})


def on_card(program: Program) -> bool:
    """True when a file of the program names a card, moves something to one, or to a device that comes from elsewhere.

    A comment does not, and neither does a seed for all cards, or a question whether there is one.
    """
    return any(_names_card(file) or _moves(program, file) for file in program.files)


def _names_card(file: File) -> bool:
    for node in file.scan.strings:
        text = string_of(node) or ""
        if text.lower().startswith(_CARDS) and not isinstance(parent(node), ast.Expr):
            return True
    for name in _CARDS:
        for attribute in file.scan.attributes.get(name, ()):
            above = parent(attribute)
            if call_of(attribute) is not None or (isinstance(above, ast.Attribute) and above.attr not in _KEEPING):
                return True
    return any(file.scan.attributes.get(name) or file.scan.names.get(name) for name in _PLACES)


def _moves(program: Program, file: File) -> bool:
    """`model.to(args.device)`: the device is an argument, or of a settings file."""
    for attribute in file.scan.attributes.get("to", ()):
        call = call_of(attribute)
        given = call.args[0] if call is not None and call.args else None
        if given is None or "device" not in last_name(given).lower():
            continue
        slot = program.slot(file, given)
        values = program.values.get(slot, ()) if slot is not None else ()
        strings = [string_of(node) or "" for value in values for node in ast.walk(value.node)]
        if not any(text.startswith("cpu") for text in strings):
            return True
    return False
