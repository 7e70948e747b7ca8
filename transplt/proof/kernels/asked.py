"""What `--kernels` takes beside the options of every proof."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Asked:
    """A file of recorded `calls` to use, one to `save` them to; so many `programs` of a launch are run (0: all), and
    floats may be apart by the share `tolerance` of the largest of their tensor."""

    calls: Path | None = None
    save: Path | None = None
    programs: int = 512
    tolerance: float = 0.0
