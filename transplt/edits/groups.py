"""What is written only when an option asks for it, and only holds together: adaptors, several cards, mixed precision,
tunings.
"""

from __future__ import annotations

from dataclasses import dataclass

from transplt.base.finding import Finding


@dataclass(frozen=True, slots=True)
class Group:
    """Edits that are applied together: `what` they make of a file, and what to do `instead` of them.

    `code` is the finding where what was written does not hold by the rules of its theme.
    """

    name: str
    what: str
    instead: str
    code: str = "NPU992"

    def taken_back(self, why: str) -> str:
        """The message of the finding for edits that were taken back."""
        return f"undone: everything that {self.what} ({why})"

    def why_taken_back(self, finding: Finding) -> str:
        """Why edits of this group were taken back by a finding; empty where it says nothing of them."""
        return finding.detail(f"undone: {self.name}")


MANY_CARDS = Group("distributed", "made this file distributed", "make the script distributed by hand")
MIXED_PRECISION = Group("amp", "gave this file mixed precision", "write the mixed precision by hand", "NPU743")
TUNINGS = Group("tune", "tuned this file", "tune it by hand")
ADAPTORS = Group("adapt", "wrote what blocks here", "write it by hand")
#: With what the names of tunings begin where they stand beside those of adaptors.
TUNED = "tune:"
#: In the order in which they are taken back when what was written does not hold: the last written first.
GROUPS = (TUNINGS, MIXED_PRECISION, MANY_CARDS, ADAPTORS)
