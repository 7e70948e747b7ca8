"""Slots that share a value, as the components of a union-find."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Components:
    """Which slots are one. The first of a component in the order of names stands for it, whatever the order of links.

    `above`: a slot -> another of its component, which is nearer to the one that stands for it, or is that one.
    """

    above: dict[str, str] = field(default_factory=dict)

    def find(self, slot: str) -> str:
        """The slot that stands for the component of a slot."""
        root = slot
        while (above := self.above.get(root, root)) != root:
            root = above
        while slot != root:
            self.above[slot], slot = root, self.above.get(slot, slot)
        return root

    def link(self, a: str, b: str) -> tuple[str, str] | None:
        """Make one component of two: who stands for it now, and who does no longer; None when they were one."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return None
        kept, gone = min(a, b), max(a, b)
        self.above[gone] = kept
        return kept, gone
