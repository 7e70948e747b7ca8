"""What is written only when an option asks for it, and only holds together: several cards, mixed precision, tunings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Theme:
    """The edits whose codes begin with `prefixes`: `what` they make, and what to do `instead` of them."""

    what: str
    prefixes: tuple[str, ...]
    instead: str

    def has(self, code: str) -> bool:
        """True for a code of this theme."""
        return code.startswith(self.prefixes)


MANY_CARDS = Theme("made this file distributed", ("NPU33", "NPU34"), "make the script distributed by hand")
MIXED_PRECISION = Theme("gave this file mixed precision", ("NPU74",), "write the mixed precision by hand")
TUNINGS = Theme("tuned this file", ("NPU75", "NPU76", "NPU77", "NPU78"), "tune it by hand")
#: In the order in which they are taken back when what was written does not hold: the last written first.
THEMES = (TUNINGS, MIXED_PRECISION, MANY_CARDS)
