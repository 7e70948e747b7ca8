"""What the ranks exchange, in order: one event as a collective begins, one as it ends."""

from __future__ import annotations


def install() -> None:
    """Watch torch.distributed; does nothing in a torch without it."""
