"""What the parts of mixed precision share: which files are to have it, and what writes into them."""

from __future__ import annotations

from transplt.base.finding import Level
from transplt.edits.groups import MIXED_PRECISION
from transplt.edits.work import Work
from transplt.edits.writer import Writer


def wanted(work: Work) -> bool:
    """False for a file for which the settings switch mixed precision off."""
    off = work.settings.ignored_codes(work.scan.path)
    return not any(code.startswith(off) for code in ("NPU740", "NPU741"))


def writer_for(
    work: Work, import_code: str = "NPU740", import_message: str = "an import for mixed precision"
) -> Writer:
    """Writes in the name of `--amp`."""
    return Writer(work, MIXED_PRECISION.name, import_code, import_message, Level.UNSAFE, asked=True)
