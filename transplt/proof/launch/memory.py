"""What a run held of the memory of a card, beside the sizes that cards have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transplt.base.grouped import grouped

#: Sizes of cards in GiB: Ascend 910 and the smallest 910B have 32, other 910B have 64 (a part is the driver's).
SIZES = (32, 64)
_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


@dataclass(frozen=True)
class Use:
    """What one process held of its card at most, in bytes; `state` is what optimizers keep, `state_at_peak` what of it
    was there at the most. `rank` is "" for a process of its own."""

    rank: str
    card: int
    peak: int
    state: int
    state_at_peak: int

    @property
    def needs(self) -> int:
        """What a step needs when all state is there: the peak may lie before the first step of an optimizer."""
        return self.peak + self.state - self.state_at_peak

    def as_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank or None,
            "card": self.card,
            "peak_bytes": self.peak,
            "optimizer_state_bytes": self.state,
            "optimizer_state_at_peak_bytes": self.state_at_peak,
            "needs_bytes": self.needs,
            "shares": {f"{size} GiB": round(self.needs / (size << 30), 4) for size in SIZES},
        }


def uses(processes: Iterable[dict[str, Any]]) -> list[Use]:
    """What the processes of a run held, each on each of its cards, the most first."""
    found = [
        Use(process["rank"] or "", row["card"], row["peak"], row["optimizer_state"], row["optimizer_state_at_peak"])
        for process in processes
        for row in process.get("memory", ())
    ]
    return sorted(found, key=lambda use: (-use.needs, use.rank, use.card))


def in_words(found: list[Use]) -> str:
    """One line about the process that needs the most; empty where no card held anything."""
    if not found:
        return ""
    use = found[0]
    of = f" of {len(found)}" if len(found) > 1 else ""
    who = f" (rank {use.rank}{of})" if use.rank else ""
    state = f", of which {shown(use.state_at_peak)} is optimizer state" if use.state_at_peak else ""
    text = f"{shown(use.peak)} at most on npu:{use.card}{who}{state}"
    if use.needs > use.peak:
        text += f"; {shown(use.needs)} with all optimizer state ({shown(use.state)})"
    shares = [(100 * use.needs / (size << 30), size) for size in SIZES]
    sizes = grouped((f"{share:.0f} %" if share >= 1 else "less than 1 %", str(size)) for share, size in shares)
    parts = [f"{part} of a {' or '.join(of)} GiB card" for part, of in sizes.items()]
    return f"{text}: {', '.join(parts)}"


def shown(size: int) -> str:
    """`1.50 GiB`."""
    for unit, one in _UNITS:
        if size >= one:
            return f"{size / one:.2f} {unit}"
    return f"{size} bytes"
