"""`--amp` on one file, after everything else was planned."""

from __future__ import annotations

from transplt.work import Work


def plan(work: Work) -> None:
    """Write mixed precision around what the other codemods wrote."""
