"""What is written only when an option asks for it, and only holds together: several cards, mixed precision, tunings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Theme:
    """All edits with codes from `first` to `last`; `what` they make, and what is left to do without them."""

    what: str
    first: str
    last: str
    instead: str

    def has(self, code: str) -> bool:
        """True for a code of this theme."""
        return self.first <= code <= self.last


MANY_CARDS = Theme("made this file distributed", "NPU330", "NPU349", "make the script distributed by hand")
MIXED_PRECISION = Theme("gave this file mixed precision", "NPU740", "NPU749", "write the mixed precision by hand")
TUNINGS = Theme("tuned this file", "NPU750", "NPU789", "tune it by hand")
#: In the order in which they are taken back when what was written does not hold: the last written first.
THEMES = (TUNINGS, MIXED_PRECISION, MANY_CARDS)
