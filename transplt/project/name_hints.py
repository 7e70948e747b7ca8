"""What a name says about the values it stands for."""

from __future__ import annotations

import re

DEVICE = "device"
BACKEND = "backend"

DEVICE_WORD = re.compile(r"(?:^|_|\b)(?:devices?|dev|map_?location|device_?types?)\d*(?:$|_|\b)|Device", re.I)
BACKEND_WORD = re.compile(r"backend", re.I)

#: What torch calls the kinds of device.
DEVICE_NAME = re.compile(r"(?:cuda|cpu|npu|mps|xpu|hpu|mlu|musa|xla|meta)(?::\d+)?")
#: Answers of `hint_of`; the same names come again and again.
_HINTS: dict[str, frozenset[str]] = {}
_NO_HINT: frozenset[str] = frozenset()


def hint_of(slot: str) -> frozenset[str]:
    """What the name of a slot says about its values."""
    lowered = slot.lower()
    if "dev" not in lowered and "location" not in lowered and "backend" not in lowered:
        return _NO_HINT
    found = _HINTS.get(slot)
    if found is None:
        name = slot.partition("<")[0].rpartition(".")[2].rpartition(":")[2].rpartition("[")[2].rstrip("]")
        found = frozenset(
            mark for mark, word in ((DEVICE, DEVICE_WORD), (BACKEND, BACKEND_WORD)) if word.search(name)
        )
        if len(_HINTS) < 100_000:
            _HINTS[slot] = found
    return found
