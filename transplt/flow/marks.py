"""Marks, which say whether a value is a device or a backend, and what the name of a value says of that."""

from __future__ import annotations

import re
from collections.abc import Iterable

DEVICE = "device"
BACKEND = "backend"
#: How the mark of a backend begins that a library, whose name follows, looks up among names of its own.
OWNED = "own backend of "

DEVICE_WORD = re.compile(r"(?:^|_|\b)(?:devices?|dev|map_?location|device_?types?)\d*(?:$|_|\b)|Device", re.I)
BACKEND_WORD = re.compile(r"backend", re.I)
#: How a name says what it stands for, by mark.
WORDS = {DEVICE: DEVICE_WORD, BACKEND: BACKEND_WORD}

#: What torch calls the kinds of device.
DEVICE_NAME = re.compile(r"(?:cuda|cpu|npu|mps|xpu|hpu|mlu|musa|xla|meta)(?::\d+)?")
#: Attribute and key names that say nothing about what they hold: uses of one class tell nothing of another's.
GENERIC = frozenset(
    "name names type types value values data key keys mode kind id ids args arg kwargs config cfg conf text label "
    "labels title index idx path shape size dtype func fn cls klass module model models options opts params param "
    "item items x y default description help result results state status tag tags category target targets source "
    "src dst op ops impl method style format fmt level output outputs input inputs content message msg raw string "
    "str line parent node children info meta version prefix suffix variant flavor choice choices".split()
)
#: The elements of what a function gives, behind its name; `<demo_ipynb>` before it is a module.
_ELEMENTS = re.compile(r"(?:<[^<>]*>)+$")
#: Answers of `marks_by_name`; the same names come again and again.
_KNOWN: dict[str, frozenset[str]] = {}
_NO_MARKS: frozenset[str] = frozenset()


def marks_by_name(slot: str) -> frozenset[str]:
    """The marks that the last name in a slot gives its values; `slot` may be that name alone."""
    lowered = slot.lower()
    if "dev" not in lowered and "location" not in lowered and "backend" not in lowered:
        return _NO_MARKS
    found = _KNOWN.get(slot)
    if found is None:
        name = _ELEMENTS.sub("", slot).rpartition(".")[2].rpartition(":")[2].rpartition("[")[2].rstrip("]")
        found = frozenset(mark for mark, word in WORDS.items() if word.search(name))
        if len(_KNOWN) < 100_000:
            _KNOWN[slot] = found
    return found


def owner(marks: Iterable[str]) -> str:
    """The library that looks values with some marks up among names of its own; empty where none does."""
    return next((mark.removeprefix(OWNED) for mark in sorted(marks) if mark.startswith(OWNED)), "")


def names_a_mark(name: str) -> bool:
    """True for a text in which some name speaks of devices or backends."""
    return bool(DEVICE_WORD.search(name) or BACKEND_WORD.search(name))
